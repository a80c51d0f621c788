#include "ops/scan/cuda/device_scan.h"

#include <memory>

#include "base/error.h"
#include "ops/scan/cuda/device_tensors.h"
#include "ops/scan/cuda/scan.h"
#include "ops/scan/cuda/time_parallel.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

kernels::ScanArrays<float> pointers(const DeviceArrays& a) {
  kernels::ScanArrays<float> result = {};
  result.p = pointer(a.p);
  result.s = pointer(a.s);
  result.beta = pointer(a.beta);
  result.dt = pointer(a.dt);
  result.start = pointer(a.start);
  result.out = pointer(a.out);
  result.q = pointer(a.q);
  result.y = pointer(a.y);
  result.g = pointer(a.g);
  return result;
}

kernels::CudaSamples samples_of(const ScanIndex& index) {
  return {index.offsets.data_ptr<int64_t>(), index.output_steps.data_ptr<int64_t>(),
          index.output_offsets.data_ptr<int64_t>(), index.offsets.size(0) - 1};
}

// rows behind the last sample's, of a batch that was recorded with room for more
void clear_unused(const Tensor& x, const ScanIndex& index) {
  if (!x.defined()) return;
  const int64_t* used = index.offsets.data_ptr<int64_t>() + index.offsets.size(0) - 1;
  kernels::cuda_clear_unused(pointer(x), x.size(0), x.stride(0), used, cuda_stream(x));
}

// in the order that autograd knows
std::vector<Tensor> inputs_of(const DeviceArrays& a) { return {a.p, a.s, a.beta, a.dt, a.start, a.q}; }

DeviceArrays arrays_of(const std::vector<Tensor>& inputs) {
  DeviceArrays a;
  a.p = inputs[0];
  a.s = inputs[1];
  a.beta = inputs[2];
  a.dt = inputs[3];
  a.start = inputs[4];
  a.q = inputs[5];
  return a;
}

}  // namespace

void DeviceCall::keep(const DeviceArrays& arrays) {
  const int64_t heads = plan.heads, width = plan.width, rows = arrays.dt.size(0);
  phi = buffer({rows, plan.stages, heads, width}, arrays.start);
  const bool matrices = plan.phi != kernels::ScanPhi::Value || plan.queries > 0;
  if (matrices)
    m = buffer({kernels::cuda_kept_rows(rows, index.offsets.size(0) - 1), heads, width, width}, arrays.start);
}

void DeviceCall::forward(DeviceArrays& arrays, StageSlopes slopes) const {
  const int64_t heads = plan.heads, width = plan.width, rows = arrays.dt.size(0);
  arrays.out = buffer({index.output_steps.size(0), heads, width, width}, arrays.start);
  if (plan.queries > 0) arrays.y = buffer({rows, plan.stages, plan.queries, heads, width}, arrays.start);
  if (slopes == StageSlopes::Yes) arrays.g = buffer({rows, plan.stages, heads, width}, arrays.start);
  kernels::cuda_scan_forward(plan, pointers(arrays), samples_of(index), {pointer(phi), pointer(m)},
                             cuda_stream(arrays.start));
  clear_unused(arrays.y, index);
  clear_unused(arrays.g, index);
}

DeviceArrays DeviceCall::backward(const DeviceArrays& arrays, const DeviceArrays& incoming) const {
  const auto like = [&](const Tensor& tensor) {
    return tensor.defined() ? buffer(tensor.sizes(), arrays.start) : Tensor();
  };
  DeviceArrays grads = incoming;
  grads.p = like(arrays.p);
  grads.s = like(arrays.s);
  grads.beta = like(arrays.beta);
  if (arrays.dt.requires_grad()) grads.dt = buffer({arrays.dt.size(0), plan.heads}, arrays.start);
  grads.start = like(arrays.start);
  // queries without a gradient of their reads get none
  grads.q = grads.y.defined() ? like(arrays.q) : Tensor();
  kernels::cuda_scan_backward(plan, pointers(arrays), pointers(grads), samples_of(index),
                              {pointer(phi), pointer(m)}, cuda_stream(arrays.start));
  clear_unused(grads.q, index);
  if (grads.dt.defined()) grads.dt = grads.dt.sum(1);
  return grads;
}

namespace {

KernelOutput run(DeviceCall call, DeviceArrays arrays, StageSlopes slopes) {
  const std::vector<Tensor> inputs = inputs_of(arrays);
  const bool record = needs_gradient(inputs);
  if (record) call.keep(arrays);
  call.forward(arrays, slopes);
  std::vector<Tensor> outputs = {arrays.out, arrays.y, arrays.g};
  if (record) {
    std::vector<Tensor> defined;
    for (const Tensor& output : outputs)
      defined.push_back(output.defined() ? output
                                         : at::empty({0}, arrays.start.options().requires_grad(false)));
    const auto shared = std::make_shared<const DeviceCall>(std::move(call));
    outputs = differentiable("scan", defined, inputs, inputs,
                             [shared](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
                               DeviceArrays incoming;
                               incoming.out = plain(grads[0]);
                               incoming.y = plain(grads[1]);
                               incoming.g = plain(grads[2]);
                               return inputs_of(shared->backward(arrays_of(saved), incoming));
                             });
  }
  return {outputs[0], arrays.y.defined() ? outputs[1] : Tensor(), arrays.g.defined() ? outputs[2] : Tensor()};
}

}  // namespace

ScanIndex index_on_device(const ScanInput& input) {
  const at::Device device = input.w0.device();
  return {on_device(plain(input.offsets), device), on_device(plain(input.output_steps), device),
          on_device(plain(input.output_offsets), device)};
}

KernelOutput device_scan(const ScanInput& input, const ScanOptions& options, StageSlopes slopes) {
  DeviceCall call;
  call.plan = scan_plan(options, input.w0.size(1), input.w0.size(2));
  set_given(call.plan, input, options);
  call.index = input.on_device.offsets.defined() ? input.on_device : index_on_device(input);
  const bool oja = is_oja(options.rule);
  DeviceArrays arrays;
  arrays.p = plain(oja ? input.v : input.k);
  arrays.s = plain(oja ? input.k : input.v);
  arrays.beta = plain(input.beta);
  arrays.dt = plain(input.dt);
  arrays.start = plain(input.w0);
  if (call.plan.queries > 0) arrays.q = plain(input.q);
  const bool whole = options.time_parallel == TimeParallel::Never || slopes == StageSlopes::Yes;
  if (const int64_t steps = whole ? 0 : parallel_steps(call.plan, input); steps > 0)
    return {time_parallel_scan(call, arrays, input, steps), {}, {}};
  return run(std::move(call), std::move(arrays), slopes);
}

std::string device_scan_refusal(const Tensor& w0) {
  if (w0.scalar_type() != at::kFloat) return message("tensors are ", w0.scalar_type(), ", not float32");
  return "";
}

std::string device_backend() { return "cuda"; }

}  // namespace fastweights
