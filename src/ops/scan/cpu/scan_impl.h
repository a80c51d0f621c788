#pragma once

#include "ops/scan/cpu/group_impl.h"

/// scan_forward and scan_backward of one instruction set.

namespace fastweights::kernels::FW_ISA {

// D values of a lane at (row of R, stage, query) of an array [R, S, queries, H, D]
template <typename T, int Width>
T* stage_row(const Work<T, Width>& work, T* base, const ScanLane& lane, int64_t n, int64_t stage,
             int64_t query, int64_t queries) noexcept {
  const int64_t row = ((lane.first + n) * work.plan.stages + stage) * queries + query;
  return base + (row * work.plan.heads + lane.head) * work.width();
}

template <typename T, int Width>
void load_stage(const Work<T, Width>& work, T* base, int64_t n, int64_t stage, int64_t query, int64_t queries,
                Pack<T>* out) noexcept {
  for (int64_t i = 0; i < work.width(); ++i) out[i] = Pack<T>{};
  for (int64_t l = 0; l < work.group.count; ++l) {
    const ScanLane& lane = work.group.lanes[l];
    if (n >= lane.steps) continue;
    const T* from = stage_row(work, base, lane, n, stage, query, queries);
    for (int64_t i = 0; i < work.width(); ++i) element<T>(out, i, l) = from[i];
  }
}

template <typename T, int Width>
void store_stage(const Work<T, Width>& work, T* base, int64_t n, int64_t stage, int64_t query,
                 int64_t queries, Pack<T>* from) noexcept {
  for (int64_t l = 0; l < work.group.count; ++l) {
    const ScanLane& lane = work.group.lanes[l];
    if (n >= lane.steps) continue;
    T* to = stage_row(work, base, lane, n, stage, query, queries);
    for (int64_t i = 0; i < work.width(); ++i) to[i] = element<T>(from, i, l);
  }
}

// reads and slopes at the stages of step n, which is the k-th of its stretch
template <typename T, int Width>
void store_stages(const Work<T, Width>& work, int64_t n, int64_t k, const Stages<T>& stages,
                  const Pack<T>* m) noexcept {
  const ScanPlan& plan = work.plan;
  Pack<T>*q = work.packs + work.at.q, *y = work.packs + work.at.y;
  for (int64_t i = 0; i < plan.stages; ++i) {
    if (work.arrays.g) store_stage(work, work.arrays.g, n, i, 0, 1, stages.g + i * work.width());
    for (int64_t query = 0; query < plan.queries; ++query) {
      load_stage(work, work.arrays.q, n, i, query, plan.queries, q);
      if (plan.step == ScanStep::Flow) {
        read_middle<T, Width>(plan, work.program(k), stages.g + work.width(), m, q, y);
      } else {
        read_stage<T, Width>(plan, work.program(k), stages.g, m, i, q, y);
      }
      store_stage(work, work.arrays.y, n, i, query, plan.queries, y);
    }
  }
}

// M of the lanes that want it after n steps; `next` counts what each one has got
template <typename T, int Width>
void store_outputs(const Work<T, Width>& work, int64_t n, Pack<T>* m, int64_t* next) noexcept {
  for (int64_t l = 0; l < work.group.count; ++l) {
    const ScanLane& lane = work.group.lanes[l];
    for (; next[l] < lane.outputs && lane.output_steps[next[l]] == n; ++next[l]) {
      T* out = work.arrays.out + ((lane.first_output + next[l]) * work.plan.heads + lane.head) * work.size();
      for (int64_t i = 0; i < work.width(); ++i) {
        for (int64_t j = 0; j < work.width(); ++j)
          out[work.index(i, j)] = element<T>(m, i * work.width() + j, l);
      }
    }
  }
}

// gradients of these outputs, added to lambda
template <typename T, int Width>
void add_output_gradients(const Work<T, Width>& work, const ScanArrays<T>& grads, int64_t n, Pack<T>* lambda,
                          int64_t* left) noexcept {
  for (int64_t l = 0; l < work.group.count; ++l) {
    const ScanLane& lane = work.group.lanes[l];
    for (; left[l] > 0 && lane.output_steps[left[l] - 1] == n; --left[l]) {
      if (!grads.out) continue;
      const T* out =
          grads.out + ((lane.first_output + left[l] - 1) * work.plan.heads + lane.head) * work.size();
      for (int64_t i = 0; i < work.width(); ++i) {
        for (int64_t j = 0; j < work.width(); ++j)
          element<T>(lambda, i * work.width() + j, l) += out[work.index(i, j)];
      }
    }
  }
}

template <typename T, int Width>
void load_start(const Work<T, Width>& work, Pack<T>* m) noexcept {
  for (int64_t i = 0; i < work.size(); ++i) m[i] = Pack<T>{};
  for (int64_t l = 0; l < work.group.count; ++l) {
    const ScanLane& lane = work.group.lanes[l];
    const T* from = work.arrays.start + (lane.sample * work.plan.heads + lane.head) * work.size();
    for (int64_t i = 0; i < work.width(); ++i) {
      for (int64_t j = 0; j < work.width(); ++j)
        element<T>(m, i * work.width() + j, l) = from[work.index(i, j)];
    }
  }
}

// what a step writes, from M before it
template <typename T, int Width>
void make_step(const ScanPlan& plan, const Program<T>& step, const Pack<T>* m, Stages<T>& out) noexcept {
  if (plan.step == ScanStep::Flow) {
    make_flow<T, Width>(plan, step, m, out);
  } else {
    make_stages<T, Width>(plan, step, m, out);
  }
}

template <typename T, int Width>
void forward_group(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanGroup& group, T* kept,
                   T* scratch) noexcept {
  const FlushSmallNumbers flush;
  const Work<T, Width> work = begin_work<T, Width>(plan, arrays, group, scratch);
  const int64_t steps = work.longest();
  Pack<T>* m = work.packs + work.at.m;
  load_start(work, m);
  int64_t next[kLanes<T>] = {};
  store_outputs(work, 0, m, next);
  const bool extras = plan.queries > 0 || arrays.g;
  for (int64_t first = 0; first < steps; first += plan.stretch) {
    const int64_t count = steps - first < plan.stretch ? steps - first : plan.stretch;
    if (kept) {
      Pack<T>* to = reinterpret_cast<Pack<T>*>(kept) + first / plan.stretch * work.size();
      for (int64_t i = 0; i < work.size(); ++i) to[i] = m[i];
    }
    make_programs<T, Width>(work, first, count);
    for (int64_t k = 0; k < count; ++k) {
      Stages<T> stages = work.stages(0);
      make_step<T, Width>(plan, work.program(k), m, stages);
      if (extras) store_stages(work, first + k, k, stages, m);
      write_matrix<T, Width>(plan, work.program(k), stages.g, m, m);
      store_outputs(work, first + k + 1, m, next);
    }
  }
}

// a step of a flow whose M and e are known
template <typename T, int Width>
void flow_backward(const Work<T, Width>& work, const ScanArrays<T>& grads, int64_t n, int64_t k) noexcept {
  const ScanPlan& plan = work.plan;
  const int64_t width = work.width();
  constexpr int64_t kRows = Width > 0 ? Width : kScanWidth;
  const Program<T> step = work.program(k);
  const Pack<T>* m = work.packs + work.at.m + k * work.size();
  Pack<T>*lambda = work.packs + work.at.lambda, *grad_g = work.packs + work.at.inner_g;
  const Stages<T> stages = work.stages(k);
  const Pack<T> norm = dot<T>(step.p, step.p, width), half = *step.dt * T(0.5);
  const bool queried = grads.y && plan.queries > 0;
  flow_slopes<T, Width>(plan, *step.beta, *step.beta * *step.dt * norm, stages.phi, stages.g);
  if (queried)
    flow_slopes<T, Width>(plan, *step.beta, *step.beta * half * norm, stages.phi, stages.g + width);

  Program<T> grad = work.gradient(k);
  Pack<T> grad_e[kRows], grad_q[kRows];
  *grad.dt = Pack<T>{};
  for (int64_t i = 0; i < width; ++i) grad_e[i] = grad_g[i] = grad_g[width + i] = Pack<T>{};
  if (grads.g) load_stage(work, grads.g, n, 0, 0, 1, grad_g);
  flow_write_backward<T, Width>(plan, step, stages.g, lambda, grad, grad_g);
  FlowGradient<T> inner = {grad_e, Pack<T>{}, Pack<T>{}, Pack<T>{}};
  slopes_backward<T, Width>(plan, *step.beta, norm, *step.dt, stages.phi, grad_g, inner);
  Pack<T>*q = work.packs + work.at.q, *grad_y = work.packs + work.at.y;
  for (int64_t query = 0; queried && query < plan.queries; ++query) {
    load_stage(work, work.arrays.q, n, 0, query, plan.queries, q);
    load_stage(work, grads.y, n, 0, query, plan.queries, grad_y);
    read_matrix_by_backward<T, Width>(plan, m, q, grad_y, grad_q, lambda);
    add_write_backward<T, Width>(plan, T(0.5), *step.dt, step.p, stages.g + width, q, grad_y, *grad.dt,
                                 grad_g + width, grad.p, grad_q);
    if (grads.q) store_stage(work, grads.q, n, 0, query, plan.queries, grad_q);
  }
  if (queried) {
    FlowGradient<T> first = {grad_e, Pack<T>{}, Pack<T>{}, Pack<T>{}};
    slopes_backward<T, Width>(plan, *step.beta, norm, half, stages.phi, grad_g + width, first);
    inner.beta += first.beta;
    inner.duration += first.duration * T(0.5);
    inner.norm += first.norm;
  }
  *grad.beta = inner.beta;
  *grad.dt += inner.duration;
  flow_read_backward<T, Width>(plan, step, m, grad_e, inner.norm, lambda, grad);
}

// step n, the k-th of its stretch, whose M and phi are known
template <typename T, int Width>
void step_backward(const Work<T, Width>& work, const ScanArrays<T>& grads, int64_t n, int64_t k) noexcept {
  const ScanPlan& plan = work.plan;
  const int64_t width = work.width();
  const Program<T> step = work.program(k);
  const Pack<T>* m = work.packs + work.at.m + k * work.size();
  Pack<T>* lambda = work.packs + work.at.lambda;
  Stages<T> stages = work.stages(k);
  for (int64_t i = 0; i < plan.stages; ++i) {
    const Pack<T> beta = step.beta[row_of(plan.beta, i)];
    for (int64_t row = 0; row < width; ++row) stages.g[i * width + row] = beta * stages.phi[i * width + row];
  }
  const bool reads = plan.phi != ScanPhi::Value;
  if (reads) make_gram<T, Width>(plan, step.p, stages);

  Program<T> grad = work.gradient(k);
  StepGradient<T> inner = {work.packs + work.at.inner_g, work.packs + work.at.inner_read, {}};
  *grad.dt = Pack<T>{};
  for (int64_t c = 0; c < plan.beta.rows; ++c) grad.beta[c] = Pack<T>{};
  for (int64_t i = 0; i < plan.s.rows * width; ++i) grad.s[i] = Pack<T>{};
  for (int64_t i = 0; i < plan.p.rows * width; ++i) inner.read[i] = Pack<T>{};
  for (int64_t i = 0; i < plan.stages; ++i) {
    if (grads.g) {
      load_stage(work, grads.g, n, i, 0, 1, inner.g + i * width);
    } else {
      for (int64_t row = 0; row < width; ++row) inner.g[i * width + row] = Pack<T>{};
    }
  }
  write_backward<T, Width>(plan, step, stages, lambda, grad, inner);

  constexpr int64_t kRows = Width > 0 ? Width : kScanWidth;
  Pack<T> grad_s[kRows], grad_q[kRows];
  Pack<T>*q = work.packs + work.at.q, *grad_y = work.packs + work.at.y;
  for (int64_t i = plan.stages - 1; i >= 0; --i) {
    for (int64_t query = 0; grads.y && query < plan.queries; ++query) {
      load_stage(work, work.arrays.q, n, i, query, plan.queries, q);
      load_stage(work, grads.y, n, i, query, plan.queries, grad_y);
      read_stage_backward<T, Width>(plan, step, stages.g, m, i, q, grad_y, grad_q, lambda, grad, inner);
      if (grads.q) store_stage(work, grads.q, n, i, query, plan.queries, grad_q);
    }
    const int64_t c = row_of(plan.beta, i);
    phi_backward<T, Width>(plan, step.beta[c], stages.phi + i * width, inner.g + i * width, grad_s,
                           grad.beta[c]);
    Pack<T>* to = grad.s + row_of(plan.s, i) * width;
    for (int64_t row = 0; row < width; ++row) to[row] += grad_s[row];
    if (reads) stage_read_backward<T, Width>(plan, step, stages, i, grad_s, grad, inner);
  }
  if (reads) read_backward<T, Width>(plan, step, m, inner, lambda, grad);
}

template <typename T, int Width>
void store_start_gradient(const Work<T, Width>& work, T* to, Pack<T>* lambda) noexcept {
  for (int64_t l = 0; l < work.group.count; ++l) {
    const ScanLane& lane = work.group.lanes[l];
    T* out = to + (lane.sample * work.plan.heads + lane.head) * work.size();
    for (int64_t i = 0; i < work.width(); ++i) {
      for (int64_t j = 0; j < work.width(); ++j)
        out[work.index(i, j)] = element<T>(lambda, i * work.width() + j, l);
    }
  }
}

// each lane's part goes to its head
template <typename T>
inline void store_weight_gradient(const PartArrays<T>& part, const ScanGroup& group, Pack<T>* grad,
                                  T* to) noexcept {
  const int64_t size = part.entries * part.part->count;
  for (int64_t l = 0; l < group.count; ++l) {
    for (int64_t i = 0; i < size; ++i) to[group.lanes[l].head * size + i] += element<T>(grad, i, l);
  }
}

template <typename T, int Width>
void backward_group(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanArrays<T>& grads,
                    const ScanGroup& group, const T* kept, T* scratch) noexcept {
  const FlushSmallNumbers flush;
  const Work<T, Width> work = begin_work<T, Width>(plan, arrays, group, scratch);
  const int64_t steps = work.longest(), size = work.size();
  Pack<T>*lambda = work.packs + work.at.lambda, *m = work.packs + work.at.m;
  for (int64_t i = 0; i < size; ++i) lambda[i] = Pack<T>{};
  const bool made = plan.source == ScanSource::Features;
  for (int i = 0; made && i < 3; ++i) {
    const PartArrays<T> part = part_arrays<T>(plan, arrays, i);
    Pack<T>* to = work.packs + work.at.grad_weight[i];
    for (int64_t j = 0; j < part.entries * part.part->count; ++j) to[j] = Pack<T>{};
  }
  int64_t left[kLanes<T>] = {};
  for (int64_t l = 0; l < group.count; ++l) left[l] = group.lanes[l].outputs;
  for (int64_t first = (steps - 1) / plan.stretch * plan.stretch; steps > 0 && first >= 0;
       first -= plan.stretch) {
    const int64_t count = steps - first < plan.stretch ? steps - first : plan.stretch;
    // the stretch once more, now with all matrices and stages
    const Pack<T>* from = reinterpret_cast<const Pack<T>*>(kept) + first / plan.stretch * size;
    for (int64_t i = 0; i < size; ++i) m[i] = from[i];
    make_programs<T, Width>(work, first, count);
    for (int64_t k = 0; k < count; ++k) {
      Stages<T> stages = work.stages(k);
      make_step<T, Width>(plan, work.program(k), m + k * size, stages);
      if (k + 1 < count)
        write_matrix<T, Width>(plan, work.program(k), stages.g, m + k * size, m + (k + 1) * size);
    }
    for (int64_t k = count - 1; k >= 0; --k) {
      add_output_gradients(work, grads, first + k + 1, lambda, left);
      if (plan.step == ScanStep::Flow) {
        flow_backward(work, grads, first + k, k);
      } else {
        step_backward(work, grads, first + k, k);
      }
    }
    programs_backward<T, Width>(work, grads, first, count);
  }
  add_output_gradients(work, grads, 0, lambda, left);
  if (grads.start) store_start_gradient(work, grads.start, lambda);
  for (int i = 0; made && i < 3; ++i) {
    store_weight_gradient<T>(part_arrays<T>(plan, arrays, i), group, work.packs + work.at.grad_weight[i],
                             part_arrays<T>(plan, grads, i).weight);
  }
}

// single precision has code of its own for the widths that occur
template <typename T, typename Call>
inline void with_width(int64_t width, const Call& call) noexcept {
  if constexpr (sizeof(T) == sizeof(float)) {
    switch (width) {
      case 4:
        return call.template operator()<4>();
      case 5:
        return call.template operator()<5>();
      case 8:
        return call.template operator()<8>();
      case 10:
        return call.template operator()<10>();
      case 16:
        return call.template operator()<16>();
      case 20:
        return call.template operator()<20>();
      case 32:
        return call.template operator()<32>();
    }
  }
  call.template operator()<0>();
}

template <typename T>
void scan_forward(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanGroup& group, T* kept,
                  T* scratch) noexcept {
  with_width<T>(plan.width,
                [&]<int Width>() { forward_group<T, Width>(plan, arrays, group, kept, scratch); });
}

template <typename T>
void scan_backward(const ScanPlan& plan, const ScanArrays<T>& arrays, const ScanArrays<T>& grads,
                   const ScanGroup& group, const T* kept, T* scratch) noexcept {
  with_width<T>(plan.width,
                [&]<int Width>() { backward_group<T, Width>(plan, arrays, grads, group, kept, scratch); });
}

template void scan_forward<float>(const ScanPlan&, const ScanArrays<float>&, const ScanGroup&, float*,
                                  float*) noexcept;
template void scan_forward<double>(const ScanPlan&, const ScanArrays<double>&, const ScanGroup&, double*,
                                   double*) noexcept;
template void scan_backward<float>(const ScanPlan&, const ScanArrays<float>&, const ScanArrays<float>&,
                                   const ScanGroup&, const float*, float*) noexcept;
template void scan_backward<double>(const ScanPlan&, const ScanArrays<double>&, const ScanArrays<double>&,
                                    const ScanGroup&, const double*, double*) noexcept;

}  // namespace fastweights::kernels::FW_ISA
