#include "ops/scan/cuda/device_program.h"

#include "ops/scan/cuda/collapse.h"
#include "ops/scan/cuda/device_tensors.h"
#include "ops/scan/cuda/net.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

DeviceRows contiguous(const DeviceRows& rows) {
  return {plain(rows.mask), plain(rows.samples), rows.times, rows.steps};
}

const int64_t* steps_of(const DeviceRows& rows) {
  return rows.steps.defined() ? rows.steps.data_ptr<int64_t>() : nullptr;
}

kernels::CudaProgram task_of(const DeviceProjections& input, const DeviceRows& rows,
                             const ProgramForms& forms) {
  kernels::CudaProgram task = {};
  task.rows = input.projections.size(0);
  task.heads = input.projections.size(1);
  task.width = input.values.defined() ? input.values.size(2) : (input.projections.size(2) - 1) / 2;
  task.projections = pointer(input.projections);
  task.values = pointer(input.values);
  task.mask = pointer(rows.mask);
  task.samples = rows.mask.defined() ? rows.samples.data_ptr<int64_t>() : nullptr;
  task.times = rows.times;
  task.key = form_of(forms.key);
  task.value = form_of(forms.value);
  task.rate = form_of(forms.rate);
  task.steps = steps_of(rows);
  return task;
}

}  // namespace

ProgramTensors device_program(const DeviceProjections& given, const DeviceRows& rows,
                              const ProgramForms& forms) {
  const DeviceProjections input = {plain(given.projections), plain(given.values)};
  const DeviceRows plain_rows = contiguous(rows);
  const kernels::CudaProgram task = task_of(input, plain_rows, forms);
  const Tensor k = buffer({task.rows, task.heads, task.width}, input.projections),
               v = buffer(k.sizes(), input.projections),
               beta = buffer({task.rows, task.heads}, input.projections);
  kernels::cuda_program(task, {pointer(k), pointer(v), pointer(beta)}, cuda_stream(k));
  // the backward pass needs the shapes of the projections alone; it keeps the mask that the task points to
  const std::vector<int64_t> shape = input.projections.sizes().vec();
  const auto backward = [task, shape, plain_rows](const std::vector<Tensor>& grads,
                                                  const std::vector<Tensor>& saved) {
    const Tensor gk = or_zeros(grads[0], saved[0]), gv = or_zeros(grads[1], saved[1]),
                 gb = or_zeros(grads[2], saved[2]);
    const Tensor projections = buffer(shape, gk), values = task.values ? buffer(gv.sizes(), gk) : Tensor();
    kernels::cuda_program_backward(task, {pointer(saved[0]), pointer(saved[1]), pointer(saved[2])},
                                   {pointer(gk), pointer(gv), pointer(gb)}, pointer(projections),
                                   pointer(values), cuda_stream(gk));
    return std::vector<Tensor>{projections, values};
  };
  // what is saved must not know its own history
  const std::vector<Tensor> saved = {k.detach(), v.detach(), beta.detach()};
  const std::vector<Tensor> out =
      differentiable("program", {k, v, beta}, {input.projections, input.values}, saved, backward);
  return {out[0], out[1], out[2]};
}

bool device_normalises(int64_t channels) { return channels <= kernels::kCudaNormaliseChannels; }

namespace {

kernels::CudaNormalise normalise_task(const Tensor& x, const Tensor& gram, double epsilon,
                                      const DeviceRows& rows) {
  kernels::CudaNormalise task = {};
  task.rows = x.size(0);
  task.channels = x.size(1);
  task.x = pointer(x);
  task.gram = gram.data_ptr<double>();
  task.epsilon = epsilon;
  task.out_row = task.channels + 2;
  task.steps = steps_of(rows);
  task.times = rows.times;
  return task;
}

// partial sums of the gradient of the gram
Tensor gram_parts(const kernels::CudaNormalise& task, const Tensor& like) {
  return buffer({kernels::cuda_normalise_parts(task), task.channels + 1, task.channels + 1}, like);
}

Tensor summed(const Tensor& parts) { return parts.sum(0, /*keepdim=*/false, at::kDouble); }

}  // namespace

Tensor device_normalise(const Tensor& given, const Tensor& gram, double epsilon, const DeviceRows& rows) {
  const Tensor x = plain(given), metric = plain(gram);
  const kernels::CudaNormalise task = normalise_task(x, metric, epsilon, rows);
  const Tensor out = at::ones({task.rows, task.out_row}, x.options().requires_grad(false));
  const Tensor r = buffer({task.rows}, x);
  kernels::cuda_normalise(task, pointer(out), pointer(r), cuda_stream(x));
  const bool signal_gradient = given.requires_grad();
  const auto backward = [=](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
    const kernels::CudaNormalise again = normalise_task(saved[0], saved[1], epsilon, rows);
    const Tensor grad = grads[0].contiguous(),
                 grad_x = signal_gradient ? buffer(saved[0].sizes(), r) : Tensor();
    const Tensor grams = gram_parts(again, r);
    kernels::cuda_normalise_backward(again, {pointer(grad), nullptr, 0}, pointer(r), pointer(grad_x),
                                     pointer(grams), cuda_stream(grad));
    return std::vector<Tensor>{grad_x, summed(grams)};
  };
  return differentiable("features", {out}, {given, gram}, {x, metric}, backward)[0];
}

Tensor device_scale(const Tensor& given, const Tensor& gram, double epsilon, const DeviceRows& rows) {
  const Tensor x = plain(given), metric = plain(gram);
  const Tensor r = buffer({x.size(0)}, x);
  kernels::cuda_normalise(normalise_task(x, metric, epsilon, rows), nullptr, pointer(r), cuda_stream(x));
  const auto backward = [=](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
    const kernels::CudaNormalise again = normalise_task(saved[0], saved[1], epsilon, rows);
    const Tensor grad = grads[0].contiguous(), grams = gram_parts(again, saved[0]);
    kernels::cuda_normalise_backward(again, {nullptr, pointer(grad), 1}, pointer(saved[2]), nullptr,
                                     pointer(grams), cuda_stream(grad));
    return std::vector<Tensor>{summed(grams)};
  };
  // what is saved must not know its own history
  return differentiable("scale", {r}, {gram}, {x, metric, r.detach()}, backward)[0];
}

namespace {

std::vector<Tensor> list_of(const DeviceLayers& l) {
  return {l.in_weight, l.in_bias, l.norm_weight, l.norm_bias, l.out_weight, l.out_bias};
}

kernels::CudaLayers layers_of(const std::vector<Tensor>& l) {
  return {l[0].size(1),  l[0].size(0),  l[4].size(0),  pointer(l[0]), pointer(l[1]),
          pointer(l[2]), pointer(l[3]), pointer(l[4]), pointer(l[5])};
}

}  // namespace

CollapsedNet device_collapse(const DeviceLayers& given) {
  const std::vector<Tensor> inputs = list_of(given);
  std::vector<Tensor> layers;
  for (const Tensor& x : inputs) layers.push_back(plain(x));
  const kernels::CudaLayers task = layers_of(layers);
  const Tensor map = buffer({task.projections, task.channels + 2}, layers[0]),
               gram = at::empty({task.channels + 1, task.channels + 1},
                                layers[0].options().requires_grad(false).dtype(at::kDouble));
  kernels::cuda_collapse(task, pointer(map), gram.data_ptr<double>(), cuda_stream(map));
  const auto backward = [](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
    const kernels::CudaLayers again = layers_of(saved);
    const Tensor grad_map = plain(grads[0]), grad_gram = plain(grads[1]);
    std::vector<Tensor> to;
    for (const Tensor& x : saved) to.push_back(buffer(x.sizes(), x));
    const Tensor centred = at::empty({again.units, again.channels + 1},
                                     saved[0].options().requires_grad(false).dtype(at::kDouble));
    kernels::cuda_collapse_backward(again, pointer(grad_map),
                                    grad_gram.defined() ? grad_gram.data_ptr<double>() : nullptr,
                                    {pointer(to[0]), pointer(to[1]), pointer(to[2]), pointer(to[3]),
                                     pointer(to[4]), pointer(to[5]), centred.data_ptr<double>()},
                                    cuda_stream(saved[0]));
    return to;
  };
  const std::vector<Tensor> out = differentiable("collapse", {map, gram}, inputs, layers, backward);
  return {out[0], out[1]};
}

bool device_net_pays(int64_t channels, int64_t width) { return kernels::cuda_net_pays(channels, width); }

namespace {

kernels::CudaMap map_of(const DeviceMap& map) {
  return {pointer(map.x), pointer(map.r), pointer(map.weight)};
}

kernels::CudaNet net_of(const DeviceMap& keys, const DeviceMap& values, int64_t heads, const DeviceRows& rows,
                        const ProgramForms& forms) {
  kernels::CudaNet net = {};
  net.rows = keys.x.size(0);
  net.channels = keys.x.size(1);
  net.heads = heads;
  const int64_t each = keys.weight.size(0) / heads;
  net.width = values.x.defined() ? each - 1 : (each - 1) / 2;
  net.keys = map_of(keys);
  net.values = map_of(values);
  net.mask = pointer(rows.mask);
  net.samples = rows.mask.defined() ? rows.samples.data_ptr<int64_t>() : nullptr;
  net.times = rows.times;
  net.key = form_of(forms.key);
  net.value = form_of(forms.value);
  net.rate = form_of(forms.rate);
  net.steps = steps_of(rows);
  return net;
}

// gradients of k, v and beta to those of the keys' scale and weight, and of the values'
std::vector<Tensor> net_backward(const kernels::CudaNet& net, const std::vector<Tensor>& grads,
                                 const std::vector<Tensor>& made, const DeviceMap& keys,
                                 const DeviceMap& values) {
  const Tensor gk = or_zeros(grads[0], made[0]), gv = or_zeros(grads[1], made[1]),
               gb = or_zeros(grads[2], made[2]);
  const kernels::CudaNetParts parts = kernels::cuda_net_parts(net);
  const auto weights = [&](const DeviceMap& map) {
    return map.x.defined() ? buffer({parts.weights, map.weight.size(0), map.weight.size(1)}, gk) : Tensor();
  };
  const auto scales = [&](const DeviceMap& map) {
    return map.r.defined() ? buffer({parts.scales, net.rows}, gk) : Tensor();
  };
  const Tensor key_weight = weights(keys), value_weight = weights(values), key_scale = scales(keys),
               value_scale = scales(values);
  kernels::cuda_net_backward(
      net, {pointer(made[0]), pointer(made[1]), pointer(made[2])}, {pointer(gk), pointer(gv), pointer(gb)},
      {pointer(key_weight), pointer(value_weight), pointer(key_scale), pointer(value_scale)},
      cuda_stream(gk));
  const auto total = [&](const Tensor& x) { return x.defined() ? x.sum(0) : x; };
  const auto scale = [&](const Tensor& x) { return x.defined() && x.size(0) == 1 ? x[0] : total(x); };
  return {scale(key_scale), total(key_weight), scale(value_scale), total(value_weight)};
}

}  // namespace

ProgramTensors device_net(const DeviceMap& given_keys, const DeviceMap& given_values, int64_t heads,
                          const DeviceRows& given_rows, const ProgramForms& forms) {
  const auto made = [](const DeviceMap& map) {
    const auto own = [](const Tensor& x) { return x.defined() ? x.detach().contiguous() : x; };
    return DeviceMap{own(map.x), own(map.r), own(map.weight)};
  };
  const DeviceMap keys = made(given_keys), values = made(given_values);
  const DeviceRows rows = contiguous(given_rows);
  const kernels::CudaNet net = net_of(keys, values, heads, rows, forms);
  const Tensor k = buffer({net.rows, heads, net.width}, keys.x), v = buffer(k.sizes(), keys.x),
               beta = buffer({net.rows, heads}, keys.x);
  kernels::cuda_net(net, {pointer(k), pointer(v), pointer(beta)}, cuda_stream(k));
  // maps and rows live as long as the net points to them
  const auto backward = [net, keys, values, rows](const std::vector<Tensor>& grads,
                                                  const std::vector<Tensor>& saved) {
    return net_backward(net, grads, saved, keys, values);
  };
  const std::vector<Tensor> inputs = {given_keys.r, given_keys.weight, given_values.r, given_values.weight};
  // what is saved must not know its own history
  const std::vector<Tensor> saved = {k.detach(), v.detach(), beta.detach()};
  const std::vector<Tensor> out = differentiable("net", {k, v, beta}, inputs, saved, backward);
  return {out[0], out[1], out[2]};
}

}  // namespace fastweights
