#include "ops/scan/cpu/normalise.h"

#include "kernels/instruction_set.h"
#include "ops/scan/cpu/kernel.h"

namespace fastweights::kernels {

#define FW_DECLARE_NORMALISE(isa)                                              \
  namespace isa {                                                              \
  template <typename T>                                                        \
  void normalise(const NormaliseTask<T>&, T*) noexcept;                        \
  template <typename T>                                                        \
  void normalise_backward(const NormaliseTask<T>&, const T*, T*, T*) noexcept; \
  }
FW_DECLARE_NORMALISE(baseline)
FW_DECLARE_NORMALISE(avx2)
FW_DECLARE_NORMALISE(avx512)

int64_t normalise_row(int64_t channels, int64_t bytes) noexcept {
  const int64_t lanes = scan_lanes(bytes);
  return (channels / lanes + 1) * lanes;
}

template <typename T>
void normalise(const NormaliseTask<T>& task, T* out) noexcept {
#if defined(FASTWEIGHTS_X86)
  if (instruction_set() == InstructionSet::Avx512) return avx512::normalise<T>(task, out);
  if (instruction_set() == InstructionSet::Avx2) return avx2::normalise<T>(task, out);
#endif
  baseline::normalise<T>(task, out);
}

template <typename T>
void normalise_backward(const NormaliseTask<T>& task, const T* grad, T* grad_x, T* grad_gram) noexcept {
#if defined(FASTWEIGHTS_X86)
  if (instruction_set() == InstructionSet::Avx512)
    return avx512::normalise_backward<T>(task, grad, grad_x, grad_gram);
  if (instruction_set() == InstructionSet::Avx2)
    return avx2::normalise_backward<T>(task, grad, grad_x, grad_gram);
#endif
  baseline::normalise_backward<T>(task, grad, grad_x, grad_gram);
}

template void normalise<float>(const NormaliseTask<float>&, float*) noexcept;
template void normalise<double>(const NormaliseTask<double>&, double*) noexcept;
template void normalise_backward<float>(const NormaliseTask<float>&, const float*, float*, float*) noexcept;
template void normalise_backward<double>(const NormaliseTask<double>&, const double*, double*,
                                         double*) noexcept;

}  // namespace fastweights::kernels
