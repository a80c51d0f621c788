#include "ops/scan/cpu/kernel.h"

#include "kernels/instruction_set.h"

namespace fastweights::kernels {

#define FW_DECLARE_SCAN(isa)                                                                        \
  namespace isa {                                                                                   \
  template <typename T>                                                                             \
  void scan_forward(const ScanPlan&, const ScanArrays<T>&, const ScanGroup&, T*, T*) noexcept;      \
  template <typename T>                                                                             \
  void scan_backward(const ScanPlan&, const ScanArrays<T>&, const ScanArrays<T>&, const ScanGroup&, \
                     const T*, T*) noexcept;                                                        \
  }
FW_DECLARE_SCAN(baseline)
FW_DECLARE_SCAN(avx2)
FW_DECLARE_SCAN(avx512)

ScanLayout scan_layout(const ScanPlan& plan) noexcept {
  const int64_t width = plan.width, size = width * width, stretch = plan.stretch;
  const bool made = plan.source == ScanSource::Features;
  const ScanPart parts[] = {plan.p, plan.s, plan.beta};
  const int64_t entries[] = {width, width, 1};
  ScanLayout layout = {};
  const auto take = [&](int64_t packs) {
    const int64_t here = layout.size;
    layout.size += packs;
    return here;
  };
  layout.m = take((stretch + 1) * size);
  layout.phi = take(stretch * plan.stages * width);
  // a flow has slopes of the step and of its first half
  const int64_t slopes = plan.step == ScanStep::Flow ? 2 : plan.stages;
  layout.g = take(slopes * width);
  layout.p = take(stretch * plan.p.rows * width);
  layout.s = take(stretch * plan.s.rows * width);
  layout.beta = take(stretch * plan.beta.rows);
  layout.dt = take(stretch);
  layout.grad_p = take(stretch * plan.p.rows * width);
  layout.grad_s = take(stretch * plan.s.rows * width);
  layout.grad_beta = take(stretch * plan.beta.rows);
  layout.grad_dt = take(stretch);
  layout.lambda = take(size);
  layout.inner_g = take(slopes * width);
  layout.inner_read = take(plan.p.rows * width);
  layout.q = take(width);
  layout.y = take(width);
  for (int i = 0; i < 3; ++i) {
    layout.weight[i] = take(made ? entries[i] * parts[i].count : 0);
    layout.mask[i] = take(made ? entries[i] : 0);
    layout.grad_weight[i] = take(made ? entries[i] * parts[i].count : 0);
  }
  const int64_t batch = plan.batch() < stretch ? plan.batch() : stretch;
  layout.z = take(made ? batch * plan.z_rows * plan.features : 0);
  layout.grad_z = take(made ? batch * plan.z_rows * plan.features : 0);
  return layout;
}

int64_t scan_lanes(int64_t bytes) noexcept {
  switch (instruction_set()) {
    case InstructionSet::Avx512:
      return 64 / bytes;
    case InstructionSet::Avx2:
      return 32 / bytes;
    default:
      return 16 / bytes;
  }
}

template <typename T>
void scan_forward(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanGroup& group, T* kept,
                  T* scratch) noexcept {
#if defined(FASTWEIGHTS_X86)
  if (instruction_set() == InstructionSet::Avx512)
    return avx512::scan_forward<T>(plan, arrays, group, kept, scratch);
  if (instruction_set() == InstructionSet::Avx2)
    return avx2::scan_forward<T>(plan, arrays, group, kept, scratch);
#endif
  baseline::scan_forward<T>(plan, arrays, group, kept, scratch);
}

template <typename T>
void scan_backward(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanArrays<T>& grads,
                   const ScanGroup& group, const T* kept, T* scratch) noexcept {
#if defined(FASTWEIGHTS_X86)
  if (instruction_set() == InstructionSet::Avx512)
    return avx512::scan_backward<T>(plan, arrays, grads, group, kept, scratch);
  if (instruction_set() == InstructionSet::Avx2)
    return avx2::scan_backward<T>(plan, arrays, grads, group, kept, scratch);
#endif
  baseline::scan_backward<T>(plan, arrays, grads, group, kept, scratch);
}

template void scan_forward<float>(const ScanPlan&, const ScanArrays<float>&, const ScanGroup&, float*,
                                  float*) noexcept;
template void scan_forward<double>(const ScanPlan&, const ScanArrays<double>&, const ScanGroup&, double*,
                                   double*) noexcept;
template void scan_backward<float>(const ScanPlan&, const ScanArrays<float>&, const ScanArrays<float>&,
                                   const ScanGroup&, const float*, float*) noexcept;
template void scan_backward<double>(const ScanPlan&, const ScanArrays<double>&, const ScanArrays<double>&,
                                    const ScanGroup&, const double*, double*) noexcept;

}  // namespace fastweights::kernels
