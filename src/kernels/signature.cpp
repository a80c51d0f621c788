#include "kernels/signature.h"

#include <cmath>

#include "kernels/instruction_set.h"

namespace fastweights::kernels {

#define FW_DECLARE_SIGNATURE(isa)                                                                            \
  namespace isa {                                                                                            \
  template <typename T>                                                                                      \
  void signature(const SignaturePlan&, const SignatureTask<T>*, int64_t, double*) noexcept;                  \
  template <typename T>                                                                                      \
  void signature_backward(const SignaturePlan&, const SignatureBackwardTask<T>*, int64_t, double*) noexcept; \
  }
FW_DECLARE_SIGNATURE(baseline)
FW_DECLARE_SIGNATURE(avx2)
FW_DECLARE_SIGNATURE(avx512)

int64_t SignaturePlan::stretch(int64_t points) const {
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(points)));
  return root > 1 ? root : 1;
}

int64_t SignaturePlan::forward_scratch() const {
  // x, the segment, Horner's levels, the quotients, and one entry for alignment
  return 1 + start[depth + 1] + channels + start[depth] + depth * start[depth];
}

int64_t SignaturePlan::backward_scratch(int64_t points) const {
  const int64_t states = stretch(points) + 1 + points / stretch(points) + 1;
  return 1 + (states + 1) * start[depth + 1] + 2 * channels + 2 * start[depth] + 2 * depth * start[depth];
}

template <typename T>
void signature(const SignaturePlan& plan, const SignatureTask<T>* tasks, int64_t count,
               double* scratch) noexcept {
#if defined(FASTWEIGHTS_X86)
  if (instruction_set() == InstructionSet::Avx512) return avx512::signature<T>(plan, tasks, count, scratch);
  if (instruction_set() == InstructionSet::Avx2) return avx2::signature<T>(plan, tasks, count, scratch);
#endif
  baseline::signature<T>(plan, tasks, count, scratch);
}

template <typename T>
void signature_backward(const SignaturePlan& plan, const SignatureBackwardTask<T>* tasks, int64_t count,
                        double* scratch) noexcept {
#if defined(FASTWEIGHTS_X86)
  if (instruction_set() == InstructionSet::Avx512)
    return avx512::signature_backward<T>(plan, tasks, count, scratch);
  if (instruction_set() == InstructionSet::Avx2)
    return avx2::signature_backward<T>(plan, tasks, count, scratch);
#endif
  baseline::signature_backward<T>(plan, tasks, count, scratch);
}

template void signature<float>(const SignaturePlan&, const SignatureTask<float>*, int64_t, double*) noexcept;
template void signature<double>(const SignaturePlan&, const SignatureTask<double>*, int64_t,
                                double*) noexcept;
template void signature_backward<float>(const SignaturePlan&, const SignatureBackwardTask<float>*, int64_t,
                                        double*) noexcept;
template void signature_backward<double>(const SignaturePlan&, const SignatureBackwardTask<double>*, int64_t,
                                         double*) noexcept;

}  // namespace fastweights::kernels
