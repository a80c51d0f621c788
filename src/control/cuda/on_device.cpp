#include "control/cuda/on_device.h"

#include <algorithm>

#include "kernels/cuda/path.h"
#include "kernels/cuda/signature.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

using kernels::CudaSeries;
using kernels::PathKind;

// scratch of the splines that are solved together
constexpr int64_t kScratch = 1 << 25;

// tensors of a series on the device, and where they are
struct Series {
  Tensor values, times, offsets;

  Series(const Tensor& data, const Tensor& knots, const Tensor& samples)
      : values(data.detach().contiguous()),
        times(on_device(knots, data.device())),
        offsets(on_device(samples, data.device())) {}

  CudaSeries pointers() const {
    return {.data = values.data_ptr<float>(),
            .times = times.defined() ? times.data_ptr<double>() : nullptr,
            .offsets = offsets.data_ptr<int64_t>(),
            .rows = values.size(0),
            .samples = offsets.size(0) - 1,
            .channels = values.size(1)};
  }
};

// samples after each other, as many at a time as scratch has room for
void natural_coefficients(PathKind kind, const Series& series, const Tensor& offsets, Tensor& out) {
  const int64_t* o = offsets.data_ptr<int64_t>();
  const int64_t samples = offsets.size(0) - 1, channels = series.values.size(1);
  void* stream = cuda_stream(out);
  Tensor scratch;
  for (int64_t first = 0, last = 0; first < samples; first = last) {
    const auto room = [&](int64_t end) { return kernels::path_scratch(o[end] - o[first]) * channels; };
    last = first + 1;
    while (last < samples && room(last + 1) <= kScratch) ++last;
    if (!scratch.defined() || scratch.numel() < room(last))
      scratch = at::empty({std::max(room(last), std::min(kScratch, room(samples)))},
                          out.options().dtype(at::kDouble));
    kernels::cuda_natural_path(kind, series.pointers(), first, last - first, out.data_ptr<float>(),
                               scratch.data_ptr<double>(), stream);
  }
}

}  // namespace

Tensor device_coefficients(PathKind kind, const Tensor& values, const RaggedTimes& knots,
                           const Tensor& offsets) {
  const Series series(values, knots.times, knots.offsets);
  const int64_t samples = offsets.size(0) - 1;
  Tensor out = at::empty({values.size(0) - samples, kernels::path_terms(kind), values.size(1)},
                         series.values.options());
  if (kind == PathKind::Linear || kind == PathKind::Hermite) {
    kernels::cuda_straight_path(kind, series.pointers(), out.data_ptr<float>(), cuda_stream(out));
  } else {
    natural_coefficients(kind, series, offsets, out);
  }
  return out;
}

Tensor device_rectilinear_knots(const Tensor& values, const Tensor& offsets, int64_t time_channel) {
  const Series series(values, {}, offsets);
  Tensor out =
      at::empty({2 * values.size(0) - (offsets.size(0) - 1), values.size(1)}, series.values.options());
  kernels::cuda_rectilinear_knots(series.pointers(), time_channel, out.data_ptr<float>(), cuda_stream(out));
  return out;
}

Tensor device_last_observations(const Tensor& values, const Tensor& offsets) {
  const Series series(values, {}, offsets);
  Tensor out = at::empty_like(series.values);
  kernels::cuda_last_observations(series.pointers(), out.data_ptr<float>(), cuda_stream(out));
  return out;
}

Samples device_samples(const DevicePieces& pieces, const Tensor& times, const Tensor& offsets) {
  const at::Device device = pieces.coefficients.device();
  const Tensor coefficients = pieces.coefficients.contiguous();
  const Tensor t = on_device(times.detach().contiguous(), device), o = on_device(offsets, device);
  const int64_t count = t.size(0), channels = coefficients.size(2);
  Tensor value = at::empty({count, channels}, coefficients.options());
  Tensor derivative = at::empty({count, channels}, coefficients.options());
  kernels::cuda_path_sample({.knots = pieces.knots.data_ptr<double>(),
                             .knot_offsets = pieces.offsets.data_ptr<int64_t>(),
                             .coefficients = coefficients.data_ptr<float>(),
                             .times = t.data_ptr<double>(),
                             .offsets = o.data_ptr<int64_t>(),
                             .count = count,
                             .samples = o.size(0) - 1,
                             .terms = coefficients.size(1),
                             .channels = channels,
                             .value = value.data_ptr<float>(),
                             .derivative = derivative.data_ptr<float>()},
                            cuda_stream(value));
  return {value, derivative};
}

Tensor device_logsignature(const kernels::SignaturePlan& plan, const Tensor& points, const Tensor& first,
                           const Tensor& count) {
  const at::Device device = points.device();
  const auto table = [&](const int32_t* entries) {
    // what comes back is a copy
    return on_device(at::tensor(at::ArrayRef<int32_t>(entries, static_cast<size_t>(plan.words)), at::kInt),
                     device);
  };
  const Tensor data = points.detach().contiguous(), length = table(plan.length),
               position = table(plan.position);
  const Tensor f = on_device(first, device), n = on_device(count, device);
  Tensor out = at::empty({first.size(0), plan.words}, data.options());
  const kernels::CudaSignature task = {.plan = plan,
                                       .points = data.data_ptr<float>(),
                                       .first = f.data_ptr<int64_t>(),
                                       .count = n.data_ptr<int64_t>(),
                                       .length = length.data_ptr<int32_t>(),
                                       .position = position.data_ptr<int32_t>(),
                                       .windows = first.size(0),
                                       .out = out.data_ptr<float>()};
  const int64_t room = kernels::cuda_logsignature_scratch(task);
  const Tensor scratch = room > 0 ? at::empty({room}, data.options().dtype(at::kDouble)) : Tensor();
  kernels::cuda_logsignature(task, room > 0 ? scratch.data_ptr<double>() : nullptr, cuda_stream(out));
  return out;
}

}  // namespace fastweights
