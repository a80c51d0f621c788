#pragma once

#include "ops/scan/cpu/flow_impl.h"
#include "ops/scan/cpu/program_impl.h"

/// The way of a group of lanes through its steps, forward and backward.

namespace fastweights::kernels::FW_ISA {

// flushes denormals to zero while this lives: computing with them is slow
class FlushSmallNumbers {
 public:
#if defined(__x86_64__)
  FlushSmallNumbers() noexcept : before_(__builtin_ia32_stmxcsr()) {
    __builtin_ia32_ldmxcsr(before_ | 0x8040);
  }
  ~FlushSmallNumbers() { __builtin_ia32_ldmxcsr(before_); }

 private:
  unsigned before_;
#else
  FlushSmallNumbers() noexcept {}
#endif
};

// a group at work
template <typename T, int Width>
struct Work {
  const ScanPlan& plan;
  const ScanArrays<T>& arrays;
  const ScanGroup& group;
  ScanLayout at;
  Pack<T>* packs;

  int64_t width() const noexcept { return width_of<Width>(plan); }
  int64_t size() const noexcept { return width() * width(); }
  int64_t longest() const noexcept {
    int64_t steps = 0;
    for (int64_t l = 0; l < group.count; ++l)
      steps = group.lanes[l].steps > steps ? group.lanes[l].steps : steps;
    return steps;
  }
  // of step n of a stretch
  Program<T> program(int64_t n) const noexcept {
    return {packs + at.p + n * plan.p.rows * width(), packs + at.s + n * plan.s.rows * width(),
            packs + at.beta + n * plan.beta.rows, packs + at.dt + n};
  }
  Program<T> gradient(int64_t n) const noexcept {
    return {packs + at.grad_p + n * plan.p.rows * width(), packs + at.grad_s + n * plan.s.rows * width(),
            packs + at.grad_beta + n * plan.beta.rows, packs + at.grad_dt + n};
  }
  Stages<T> stages(int64_t n) const noexcept {
    return {packs + at.phi + n * plan.stages * width(), packs + at.g, {}};
  }
  PartPacks<T> part(int which) const noexcept { return {packs + at.weight[which], packs + at.mask[which]}; }
  int64_t batch() const noexcept { return plan.batch() < plan.stretch ? plan.batch() : plan.stretch; }
  // of a matrix in memory
  int64_t index(int64_t i, int64_t j) const noexcept {
    return plan.matrix == ScanMatrix::Plain ? i * width() + j : j * width() + i;
  }
};

template <typename T, int Width>
Work<T, Width> begin_work(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanGroup& group,
                          T* scratch) noexcept {
  Work<T, Width> work = {plan, arrays, group, scan_layout(plan), reinterpret_cast<Pack<T>*>(scratch)};
  if (plan.source == ScanSource::Features) {
    for (int i = 0; i < 3; ++i) load_weights<T>(plan, part_arrays<T>(plan, arrays, i), group, work.part(i));
  }
  return work;
}

// p, s, beta and dt of steps first .. first + steps
template <typename T, int Width>
void make_programs(const Work<T, Width>& work, int64_t first, int64_t steps) noexcept {
  const ScanPlan& plan = work.plan;
  load_rows<T>(work.group, work.arrays.dt, 1, first, steps, work.packs + work.at.dt);
  // also of lanes alone: a lane that has arrived does not move
  for (int64_t l = work.group.count; l < kLanes<T>; ++l) {
    for (int64_t n = 0; n < steps; ++n) element<T>(work.packs + work.at.dt, n, l) = T{0};
  }
  if (plan.source == ScanSource::Given) {
    for (int64_t n = 0; n < steps; ++n) {
      const Program<T> step = work.program(n);
      load_given<T>(plan, part_arrays<T>(plan, work.arrays, 0), work.group, first + n, step.p);
      load_given<T>(plan, part_arrays<T>(plan, work.arrays, 1), work.group, first + n, step.s);
      load_given<T>(plan, part_arrays<T>(plan, work.arrays, 2), work.group, first + n, step.beta);
    }
  } else {
    Pack<T>* z = work.packs + work.at.z;
    for (int64_t n = 0; n < steps; n += work.batch()) {
      const int64_t count = steps - n < work.batch() ? steps - n : work.batch();
      load_rows<T>(work.group, work.arrays.z, plan.z_rows * plan.features, first + n, count, z);
      const Program<T> step = work.program(n);
      Pack<T>* out[] = {step.p, step.s, step.beta};
      for (int i = 0; i < 3; ++i)
        make_part<T>(plan, part_arrays<T>(plan, work.arrays, i), work.part(i), z, count, out[i]);
    }
  }
}

// of all lanes, in pairs
template <typename T>
inline T tree_sum(const T* lanes) noexcept {
  constexpr int64_t kHalf = kLanes<T> / 2;
  T sums[kHalf];
#pragma GCC unroll 8
  for (int64_t l = 0; l < kHalf; ++l) sums[l] = lanes[l] + lanes[l + kHalf];
#pragma GCC unroll 8
  for (int64_t size = kHalf / 2; size > 0; size /= 2) {
#pragma GCC unroll 8
    for (int64_t l = 0; l < size; ++l) sums[l] += sums[l + size];
  }
  return sums[0];
}

// sums over the heads of each sample of packs [steps][row] to rows [R, row]
template <typename T>
inline void store_sums(const ScanGroup& group, int64_t first, int64_t steps, int64_t row, Pack<T>* from,
                       T* to) noexcept {
  for (int64_t l = 0; l < group.count;) {
    const ScanLane& lane = group.lanes[l];
    int64_t end = l + 1;
    while (end < group.count && group.lanes[end].sample == lane.sample) ++end;
    const int64_t valid = lane.steps - first < steps ? lane.steps - first : steps;
    T* out = to + (lane.first + first) * row;
    if (end - l == kLanes<T>) {
      for (int64_t i = 0; i < valid * row; ++i) out[i] = tree_sum<T>(&element<T>(from, i, 0));
      return;
    }
    for (int64_t i = 0; i < valid * row; ++i) {
      T sum = element<T>(from, i, l);
      for (int64_t k = l + 1; k < end; ++k) sum += element<T>(from, i, k);
      out[i] = sum;
    }
    l = end;
  }
}

template <typename T, int Width>
void programs_backward(const Work<T, Width>& work, const ScanArrays<T>& grads, int64_t first,
                       int64_t steps) noexcept {
  const ScanPlan& plan = work.plan;
  if (grads.dt) store_sums<T>(work.group, first, steps, 1, work.packs + work.at.grad_dt, grads.dt);
  if (plan.source == ScanSource::Given) {
    for (int64_t n = 0; n < steps; ++n) {
      const Program<T> grad = work.gradient(n);
      store_given<T>(plan, part_arrays<T>(plan, grads, 0), work.group, first + n, grad.p);
      store_given<T>(plan, part_arrays<T>(plan, grads, 1), work.group, first + n, grad.s);
      store_given<T>(plan, part_arrays<T>(plan, grads, 2), work.group, first + n, grad.beta);
    }
    return;
  }
  Pack<T>*z = work.packs + work.at.z, *grad_z = work.packs + work.at.grad_z;
  const int64_t row = plan.z_rows * plan.features;
  for (int64_t n = 0; n < steps; n += work.batch()) {
    const int64_t count = steps - n < work.batch() ? steps - n : work.batch();
    load_rows<T>(work.group, work.arrays.z, row, first + n, count, z);
    for (int64_t i = 0; i < count * row; ++i) grad_z[i] = Pack<T>{};
    const Program<T> made = work.program(n), grad = work.gradient(n);
    Pack<T>*from[] = {made.p, made.s, made.beta}, *to[] = {grad.p, grad.s, grad.beta};
    for (int i = 0; i < 3; ++i) {
      part_backward<T>(plan, part_arrays<T>(plan, work.arrays, i), work.part(i), z, count, from[i], to[i],
                       grad_z, work.packs + work.at.grad_weight[i]);
    }
    store_sums<T>(work.group, first + n, count, row, grad_z, grads.z);
  }
}

}  // namespace fastweights::kernels::FW_ISA
