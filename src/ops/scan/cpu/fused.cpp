#include "ops/scan/cpu/fused.h"

#include <atomic>
#include <memory>

#include "base/error.h"
#include "kernels/instruction_set.h"
#include "ops/scan/cpu/kernel.h"
#include "ops/scan/cpu/lanes.h"
#include "ops/scan/plan.h"
#include "tensor/autograd.h"
#include "tensor/parallel.h"
#include "tensor/runtime.h"

namespace fastweights {
namespace {

using kernels::ScanForm;
using kernels::ScanPlan;

Tensor buffer(at::IntArrayRef shape, at::ScalarType type) {
  return scan_buffer(shape, at::TensorOptions(type));
}

template <typename T>
T* pointer(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<T>() : nullptr;
}

// the tensors of a call; absent ones are undefined
struct Arrays {
  Tensor p, s, beta, z, p_weight, s_weight, beta_weight, p_mask, s_mask, dt, start, out, q, y, g;

  template <typename T>
  kernels::ScanArrays<T> pointers() const {
    return {pointer<T>(p),           pointer<T>(s),        pointer<T>(beta),
            pointer<T>(z),           pointer<T>(p_weight), pointer<T>(s_weight),
            pointer<T>(beta_weight), pointer<T>(p_mask),   pointer<T>(s_mask),
            pointer<T>(dt),          pointer<T>(start),    pointer<T>(out),
            pointer<T>(q),           pointer<T>(y),        pointer<T>(g)};
  }
};

// one call: everything that the forward and the backward pass share
struct Call {
  ScanPlan plan;
  Tensor offsets, output_steps, output_offsets;  // the lanes point into them
  LanePlan lanes;
  at::ScalarType type;
  Tensor kept;

  int64_t lane_count() const { return kernels::scan_lanes(static_cast<int64_t>(at::elementSize(type))); }
};

kernels::ScanGroup group_of(const Call& call, const LaneGroup& group) {
  return {call.lanes.lanes.data() + group.first_lane, group.lanes};
}

// bundles of groups on all threads; body(group, bundle, scratch)
template <typename T, typename Body>
void for_each_group(const Call& call, const Body& body) {
  const auto bundles = static_cast<int64_t>(call.lanes.bundles.size()) - 1;
  const int64_t workers = std::min<int64_t>(thread_count(), bundles);
  const int64_t size = kernels::scan_layout(call.plan).size * call.lane_count();
  // memory for each worker, at a multiple of 64 bytes
  const int64_t row = (size + 63) / 64 * 64;
  const Tensor scratch = buffer({workers, row}, call.type);
  std::atomic<int64_t> next = 0;
  parallel_for(workers, 1, [&](int64_t begin, int64_t) {
    for (int64_t bundle = next++; bundle < bundles; bundle = next++) {
      for (int64_t i = call.lanes.bundles[bundle]; i < call.lanes.bundles[bundle + 1]; ++i)
        body(call.lanes.groups[i], bundle, scratch.data_ptr<T>() + begin * row);
    }
  });
}

template <typename T>
void run_forward(const Call& call, const Arrays& arrays) {
  const kernels::ScanArrays<T> pointers = arrays.pointers<T>();
  T* kept = pointer<T>(call.kept);
  for_each_group<T>(call, [&](const LaneGroup& group, int64_t, T* scratch) {
    T* own = kept ? kept + group.kept * call.lane_count() : nullptr;
    kernels::scan_forward<T>(call.plan, pointers, group_of(call, group), own, scratch);
  });
}

// gradients of weights are summed per bundle: [bundles, ...]; of z and dt per part: [parts, ...]
template <typename T>
void run_backward(const Call& call, const Arrays& arrays, const Arrays& grads) {
  const kernels::ScanArrays<T> pointers = arrays.pointers<T>(), all = grads.pointers<T>();
  const T* kept = call.kept.data_ptr<T>();
  const auto slice = [](const Tensor& tensor) { return tensor.defined() ? tensor[0].numel() : 0; };
  const int64_t p_size = slice(grads.p_weight), s_size = slice(grads.s_weight),
                beta_size = slice(grads.beta_weight), z_size = slice(grads.z), dt_size = slice(grads.dt);
  for_each_group<T>(call, [&](const LaneGroup& group, int64_t bundle, T* scratch) {
    kernels::ScanArrays<T> own = all;
    if (own.p_weight) own.p_weight += bundle * p_size;
    if (own.s_weight) own.s_weight += bundle * s_size;
    if (own.beta_weight) own.beta_weight += bundle * beta_size;
    if (own.z) own.z += group.part * z_size;
    if (own.dt) own.dt += group.part * dt_size;
    kernels::scan_backward<T>(call.plan, pointers, own, group_of(call, group),
                              kept + group.kept * call.lane_count(), scratch);
  });
}

// in order, so that the result does not depend on the number of threads
Tensor sum_in_order(const Tensor& parts) {
  if (!parts.defined()) return {};
  Tensor sum = parts[0];
  for (int64_t i = 1; i < parts.size(0); ++i) sum.add_(parts[i]);
  return sum;
}

// in the order that autograd knows
std::vector<Tensor> inputs_of(const Arrays& a) {
  return {a.p, a.s, a.beta, a.z, a.p_weight, a.s_weight, a.beta_weight, a.dt, a.start, a.q};
}

Arrays arrays_of(const std::vector<Tensor>& inputs, const std::pair<Tensor, Tensor>& masks) {
  Arrays a;
  a.p = inputs[0];
  a.s = inputs[1];
  a.beta = inputs[2];
  a.z = inputs[3];
  a.p_weight = inputs[4];
  a.s_weight = inputs[5];
  a.beta_weight = inputs[6];
  a.dt = inputs[7];
  a.start = inputs[8];
  a.q = inputs[9];
  a.p_mask = masks.first;
  a.s_mask = masks.second;
  return a;
}

std::vector<Tensor> backward(const Call& call, const Arrays& arrays, const std::vector<Tensor>& incoming) {
  const auto plain = [](const Tensor& grad) { return grad.defined() ? grad.contiguous() : grad; };
  const auto like = [&](const Tensor& tensor) {
    return tensor.defined() ? buffer(tensor.sizes(), call.type) : Tensor();
  };
  const auto several = [&](const Tensor& tensor, int64_t count) {
    if (!tensor.defined()) return Tensor();
    std::vector<int64_t> shape = tensor.sizes().vec();
    shape.insert(shape.begin(), count);
    return buffer(shape, call.type);
  };
  const auto bundles = static_cast<int64_t>(call.lanes.bundles.size()) - 1;
  Arrays grads;
  grads.out = plain(incoming[0]);
  grads.y = plain(incoming[1]);
  grads.g = plain(incoming[2]);
  grads.p = like(arrays.p);
  grads.s = like(arrays.s);
  grads.beta = like(arrays.beta);
  grads.z = several(arrays.z, call.lanes.parts);
  for (auto [to, from] : {std::pair(&grads.p_weight, &arrays.p_weight),
                          {&grads.s_weight, &arrays.s_weight},
                          {&grads.beta_weight, &arrays.beta_weight}}) {
    *to = several(*from, bundles);
    if (to->defined()) to->zero_();
  }
  grads.dt = arrays.dt.requires_grad() ? several(arrays.dt, call.lanes.parts) : Tensor();
  grads.start = like(arrays.start);
  // queries without a gradient of their reads get none
  grads.q = grads.y.defined() ? like(arrays.q) : Tensor();
  if (call.type == at::kFloat) {
    run_backward<float>(call, arrays, grads);
  } else {
    run_backward<double>(call, arrays, grads);
  }
  for (Tensor* summed : {&grads.z, &grads.p_weight, &grads.s_weight, &grads.beta_weight, &grads.dt})
    *summed = sum_in_order(*summed);
  return inputs_of(grads);
}

KernelOutput run(Call call, Arrays arrays, StageSlopes slopes) {
  const int64_t heads = call.plan.heads, width = call.plan.width, rows = arrays.dt.size(0);
  const std::vector<Tensor> inputs = inputs_of(arrays);
  const bool record = needs_gradient(inputs);
  const BatchSteps batch = {call.offsets.data_ptr<int64_t>(), call.output_steps.data_ptr<int64_t>(),
                            call.output_offsets.data_ptr<int64_t>(), call.offsets.size(0) - 1};
  call.lanes = plan_lanes(call.plan, batch, call.lane_count());
  if (record) call.kept = buffer({call.lanes.kept * call.lane_count()}, call.type);
  arrays.out = buffer({call.output_steps.size(0), heads, width, width}, call.type);
  if (call.plan.queries > 0)
    arrays.y = buffer({rows, call.plan.stages, call.plan.queries, heads, width}, call.type);
  if (slopes == StageSlopes::Yes) arrays.g = buffer({rows, call.plan.stages, heads, width}, call.type);
  if (call.type == at::kFloat) {
    run_forward<float>(call, arrays);
  } else {
    run_forward<double>(call, arrays);
  }
  std::vector<Tensor> outputs = {arrays.out, arrays.y, arrays.g};
  if (record) {
    std::vector<Tensor> defined;
    for (const Tensor& output : outputs) defined.push_back(output.defined() ? output : at::empty({0}));
    const auto shared = std::make_shared<const Call>(std::move(call));
    outputs = differentiable("scan", defined, inputs, inputs,
                             [shared, masks = std::pair(arrays.p_mask, arrays.s_mask)](
                                 const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
                               return backward(*shared, arrays_of(saved, masks), grads);
                             });
  }
  return {outputs[0], arrays.y.defined() ? outputs[1] : Tensor(), arrays.g.defined() ? outputs[2] : Tensor()};
}

Tensor plain(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

// what both kinds of input have
template <typename Input>
Call call_of(const Input& input, const ScanOptions& options) {
  check_instruction_set();
  Call call;
  call.type = input.w0.scalar_type();
  call.plan = scan_plan(options, input.w0.size(1), input.w0.size(2));
  const auto bytes = static_cast<int64_t>(at::elementSize(call.type));
  call.plan.stretch = scan_stretch(call.plan.width, kernels::scan_lanes(bytes), bytes);
  call.offsets = plain(input.offsets);
  call.output_steps = plain(input.output_steps);
  call.output_offsets = plain(input.output_offsets);
  return call;
}

}  // namespace

std::string cpu_backend() { return std::string("cpu-") + kernels::name(kernels::instruction_set()); }

KernelOutput fused_scan(const ScanInput& input, const ScanOptions& options, StageSlopes slopes) {
  Call call = call_of(input, options);
  set_given(call.plan, input, options);
  const bool oja = is_oja(options.rule);
  Arrays arrays;
  arrays.p = plain(oja ? input.v : input.k);
  arrays.s = plain(oja ? input.k : input.v);
  arrays.beta = plain(input.beta);
  arrays.dt = plain(input.dt);
  arrays.start = plain(input.w0);
  if (call.plan.queries > 0) arrays.q = plain(input.q);
  return run(std::move(call), std::move(arrays), slopes);
}

KernelOutput fused_scan(const ScanFeatures& input, const ProgramForms& forms, const ScanOptions& options) {
  Call call = call_of(input, options);
  call.plan.source = kernels::ScanSource::Features;
  const bool oja = is_oja(options.rule);
  const int64_t features = input.z.size(2), keys = input.k_weight.size(2), values = input.v_weight.size(2);
  const kernels::ScanPart k = {input.key_rows, 0, keys, form_of(forms.key)},
                          v = {input.value_rows, features - values, values, form_of(forms.value)};
  call.plan.p = oja ? v : k;
  call.plan.s = oja ? k : v;
  call.plan.beta = {input.key_rows, 0, keys, form_of(forms.rate)};
  call.plan.z_rows = input.z.size(1);
  call.plan.features = features;
  Arrays arrays;
  arrays.z = plain(input.z);
  arrays.p_weight = plain(oja ? input.v_weight : input.k_weight);
  arrays.s_weight = plain(oja ? input.k_weight : input.v_weight);
  arrays.beta_weight = plain(input.beta_weight);
  (oja ? arrays.p_mask : arrays.s_mask) = plain(input.v_mask);
  arrays.dt = plain(input.dt);
  arrays.start = plain(input.w0);
  return run(std::move(call), std::move(arrays), StageSlopes::No);
}

ScanMemory fused_memory(const std::vector<int64_t>& steps, int64_t heads, int64_t width, int64_t stages,
                        int64_t z_rows, int64_t features, at::ScalarType type) {
  ScanPlan plan = {};
  const auto bytes = static_cast<int64_t>(at::elementSize(type));
  const int64_t lanes = kernels::scan_lanes(bytes);
  plan.heads = heads;
  plan.width = width;
  plan.stages = stages;
  plan.stretch = scan_stretch(width, lanes, bytes);
  plan.source = features > 0 ? kernels::ScanSource::Features : kernels::ScanSource::Given;
  plan.z_rows = z_rows;
  plan.features = features;
  plan.p = plan.s = plan.beta = {z_rows, 0, features, ScanForm::Raw};
  std::vector<int64_t> offsets = {0};
  for (int64_t count : steps) offsets.push_back(offsets.back() + count);
  const std::vector<int64_t> none(offsets.size(), 0);
  const BatchSteps batch = {offsets.data(), none.data(), none.data(), static_cast<int64_t>(steps.size())};
  return {plan_lanes(plan, batch, lanes).kept * lanes * bytes,
          kernels::scan_layout(plan).size * lanes * bytes * thread_count()};
}

}  // namespace fastweights
