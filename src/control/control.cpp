#include "fastweights/control.h"

#include <cmath>

#include "base/error.h"
#include "control/cuda/on_device.h"
#include "control/straight.h"
#include "kernels/path.h"
#include "tensor/autograd.h"
#include "tensor/device.h"
#include "tensor/large.h"
#include "tensor/parallel.h"

namespace fastweights {
namespace {

using kernels::Knots;
using kernels::PathKind;
using kernels::Pieces;

PathKind path_kind(const ControlOptions& options) {
  if (const auto* cubic = std::get_if<NaturalCubic>(&options.interpolation)) {
    return cubic->end_filling == EndFilling::WholeGap ? PathKind::NaturalWholeGap : PathKind::NaturalEndPoint;
  }
  return std::holds_alternative<HermiteCubic>(options.interpolation) ? PathKind::Hermite : PathKind::Linear;
}

// calls body(type tag) with float or double
template <typename Body>
void with_type(const Tensor& tensor, Body body) {
  if (tensor.scalar_type() == at::kFloat) {
    body(float{});
  } else {
    body(double{});
  }
}

// body(sample, first row, length) for every sample, on all threads; `cost` is a rough count of operations per
// row
template <typename Body>
void for_samples(const Tensor& offsets, int64_t cost, Body body) {
  const int64_t* o = offsets.data_ptr<int64_t>();
  const int64_t samples = offsets.size(0) - 1;
  const int64_t rows = samples > 0 ? std::max<int64_t>(1, o[samples] / samples) : 1;
  const int64_t grain = std::max<int64_t>(1, 20000 / (rows * cost));
  parallel_for(samples, grain, [&](int64_t begin, int64_t end) { body(begin, end, o); });
}

int64_t longest_series(const int64_t* offsets, int64_t begin, int64_t end) {
  int64_t longest = 0;
  for (int64_t b = begin; b < end; ++b) longest = std::max(longest, offsets[b + 1] - offsets[b]);
  return longest;
}

// [N, C] data to [N - B, K, C] coefficients
Tensor coefficients_value(PathKind kind, const Tensor& values, const Tensor& times, const Tensor& offsets) {
  const int64_t channels = values.size(1), samples = offsets.size(0) - 1, terms = kernels::path_terms(kind);
  Tensor out = empty_large({values.size(0) - samples, terms, channels}, values.options());
  with_type(values, [&](auto tag) {
    using T = decltype(tag);
    const T* data = values.data_ptr<T>();
    T* result = out.data_ptr<T>();
    const double* t = times.data_ptr<double>();
    for_samples(offsets, channels, [&](int64_t begin, int64_t end, const int64_t* o) {
      std::vector<double> scratch(kernels::path_scratch(longest_series(o, begin, end)));
      for (int64_t b = begin; b < end; ++b) {
        const Knots knots = {t + o[b], o[b + 1] - o[b], channels};
        kernels::path_coefficients(kind, knots, data + o[b] * channels,
                                   result + (o[b] - b) * terms * channels, scratch.data());
      }
    });
  });
  return out;
}

Tensor coefficients_gradient(PathKind kind, const Tensor& grad, const Tensor& values, const Tensor& times,
                             const Tensor& offsets) {
  const int64_t channels = values.size(1), terms = kernels::path_terms(kind);
  Tensor out = at::zeros_like(values);
  with_type(values, [&](auto tag) {
    using T = decltype(tag);
    const T *data = values.data_ptr<T>(), *g = grad.data_ptr<T>();
    T* result = out.data_ptr<T>();
    const double* t = times.data_ptr<double>();
    for_samples(offsets, channels, [&](int64_t begin, int64_t end, const int64_t* o) {
      std::vector<double> scratch(kernels::path_scratch(longest_series(o, begin, end)));
      for (int64_t b = begin; b < end; ++b) {
        const Knots knots = {t + o[b], o[b + 1] - o[b], channels};
        kernels::path_coefficients_backward(kind, knots, data + o[b] * channels,
                                            g + (o[b] - b) * terms * channels, result + o[b] * channels,
                                            scratch.data());
      }
    });
  });
  return out;
}

Tensor path_coefficients(PathKind kind, const Tensor& values, const Tensor& times, const Tensor& offsets) {
  const Tensor data = values.detach().contiguous();
  Tensor out = coefficients_value(kind, data, times, offsets);
  const auto backward = [=](const std::vector<Tensor>& grads,
                            const std::vector<Tensor>&) -> std::vector<Tensor> {
    return {coefficients_gradient(kind, grads[0].contiguous(), data, times, offsets)};
  };
  return differentiable("control", {out}, {values}, {values}, backward)[0];
}

// doubled knots of a rectilinear path: [N, C] to [2 N - B, C]
Tensor double_knots(const Tensor& values, const Tensor& offsets, int64_t time_channel) {
  if (!values.device().is_cpu()) return device_rectilinear_knots(values, offsets, time_channel);
  const int64_t channels = values.size(1), samples = offsets.size(0) - 1;
  const Tensor data = values.detach().contiguous();
  Tensor out = at::empty({2 * values.size(0) - samples, channels}, values.options());
  with_type(data, [&](auto tag) {
    using T = decltype(tag);
    for_samples(offsets, channels, [&](int64_t begin, int64_t end, const int64_t* o) {
      for (int64_t b = begin; b < end; ++b) {
        kernels::rectilinear_knots(Knots{nullptr, o[b + 1] - o[b], channels},
                                   data.data_ptr<T>() + o[b] * channels, time_channel,
                                   out.data_ptr<T>() + (2 * o[b] - b) * channels);
      }
    });
  });
  const auto backward = [=](const std::vector<Tensor>& grads,
                            const std::vector<Tensor>&) -> std::vector<Tensor> {
    const Tensor grad = grads[0].contiguous();
    Tensor result = at::zeros_like(data);
    with_type(data, [&](auto tag) {
      using T = decltype(tag);
      for_samples(offsets, channels, [&](int64_t begin, int64_t end, const int64_t* o) {
        for (int64_t b = begin; b < end; ++b) {
          kernels::rectilinear_knots_backward(
              Knots{nullptr, o[b + 1] - o[b], channels}, data.data_ptr<T>() + o[b] * channels, time_channel,
              grad.data_ptr<T>() + (2 * o[b] - b) * channels, result.data_ptr<T>() + o[b] * channels);
        }
      });
    });
    return {result};
  };
  return differentiable("control", {out}, {values}, {values}, backward)[0];
}

}  // namespace

void check_observed(const RaggedSeries& series) {
  const Tensor missing = at::isnan(series.values.detach());
  const int64_t* o = series.offsets.data_ptr<int64_t>();
  for (int64_t b = 0; b < series.samples(); ++b) {
    const Tensor never = at::nonzero(missing.slice(0, o[b], o[b + 1]).all(0));
    FW_CHECK(never.size(0) == 0, "[control] sample ", b, ": channel ", never[0][0].item<int64_t>(),
             " is never observed in its ", o[b + 1] - o[b], " points");
  }
}

bool is_causal(const Interpolation& interpolation) {
  return !std::holds_alternative<NaturalCubic>(interpolation);
}

Control::Control(const RaggedSeries& series, const ControlOptions& options) {
  check_series(series, "control", 2);
  has_missing(series, "control");
  if (options.never_observed == NeverObserved::Reject) check_observed(series);
  make_path(series, options);
}

Control Control::on_device(const RaggedSeries& series, const ControlOptions& options) {
  FW_CHECK(series.values.defined() && series.values.dim() == 2 && series.values.device().is_cuda() &&
               series.values.scalar_type() == at::kFloat && !needs_gradient({series.values}),
           "[control] values on a GPU must be float32 [N, C] without gradients");
  check_series({at::empty({series.values.size(0), 1}, at::kFloat), series.times, series.offsets}, "control",
               2);
  Control control;
  control.make_path(series, options);
  return control;
}

void Control::set_knots(const Tensor& knots, const Tensor& offsets, const at::Device& device) {
  knots_ = knots;
  offsets_ = offsets;
  one_each_ = at::arange(offsets.size(0), at::kLong);
  device_knots_ = fastweights::on_device(knots_, device);
  device_offsets_ = fastweights::on_device(offsets_, device);
}

void Control::make_path(const RaggedSeries& series, const ControlOptions& options) {
  const at::Device device = series.values.device();
  const auto coefficients = [&](PathKind kind, const Tensor& values) {
    if (device.is_cpu()) return path_coefficients(kind, values, knots_, offsets_);
    return device_coefficients(kind, values, {device_knots_, device_offsets_}, offsets_);
  };
  // copies: what was checked must not change under us
  const Tensor offsets = series.offsets.clone();
  const auto* rectilinear = std::get_if<Rectilinear>(&options.interpolation);
  if (!rectilinear) {
    set_knots(series.times.detach().clone(at::MemoryFormat::Contiguous), offsets, device);
    coefficients_ = coefficients(path_kind(options), series.values);
    return;
  }
  const int64_t time_channel = rectilinear->time_channel;
  FW_CHECK(time_channel >= 0 && time_channel < series.channels(), "[control] the time channel must be 0 to ",
           series.channels() - 1, ", got ", time_channel);
  const Tensor doubled = double_knots(series.values, offsets, time_channel);
  const Tensor twice = 2 * offsets - at::arange(offsets.size(0), at::kLong);
  const Tensor lengths = twice.slice(0, 1) - twice.slice(0, 0, -1);
  set_knots((at::arange(doubled.size(0), at::kLong) - twice.slice(0, 0, -1).repeat_interleave(lengths))
                .to(at::kDouble),
            twice, device);
  coefficients_ = coefficients(PathKind::Linear, doubled);
}

Control Control::piecewise_constant(const RaggedTimes& knots, const Tensor& values) {
  FW_CHECK(values.dim() == 2 && at::isFloatingType(values.scalar_type()),
           "[control] values must be floating-point [N - B, C], got ", values.sizes());
  FW_CHECK(values.device().is_cpu() || (values.scalar_type() == at::kFloat && !values.requires_grad()),
           "[control] values on ", values.device(), " must be float32 without gradient, got ",
           values.scalar_type());
  // knots must be what the times of a series must be
  check_series({at::zeros({knots.times.size(0), 1}, at::kDouble), knots.times, knots.offsets}, "control", 2);
  const int64_t pieces = knots.times.size(0) - (knots.offsets.size(0) - 1);
  FW_CHECK(values.size(0) == pieces, "[control] ", knots.times.size(0), " knots of ",
           knots.offsets.size(0) - 1, " samples have ", pieces, " pieces, got ", values.size(0), " values");
  Control control;
  control.set_knots(knots.times.detach().clone(at::MemoryFormat::Contiguous), knots.offsets.clone(),
                    values.device());
  control.coefficients_ = at::stack({values, at::zeros_like(values)}, 1);
  return control;
}

Tensor Control::begin() const { return knots_.index_select(0, offsets_.slice(0, 0, -1)); }

Tensor Control::end() const { return knots_.index_select(0, offsets_.slice(0, 1) - 1); }

Samples Control::sample_ragged(const Tensor& times, const Tensor& offsets) const {
  if (!coefficients_.device().is_cpu())
    return device_samples({device_knots_, device_offsets_, coefficients_}, times, offsets);
  const Tensor coefficients = coefficients_.detach().contiguous(), t = times.detach().contiguous();
  const Tensor knots = knots_, knot_offsets = offsets_;
  const int64_t channels = this->channels(), terms = coefficients.size(1);
  // pieces of sample b and the range of its queries, as raw pointers
  const auto pieces_of = [knots, knot_offsets, coefficients, channels, terms](int64_t b, auto tag) {
    using T = decltype(tag);
    const int64_t* o = knot_offsets.data_ptr<int64_t>();
    return Pieces<T>{{knots.data_ptr<double>() + o[b], o[b + 1] - o[b], channels},
                     terms,
                     coefficients.data_ptr<T>() + (o[b] - b) * terms * channels};
  };
  Tensor value = empty_large({t.size(0), channels}, coefficients.options());
  Tensor derivative = empty_large({t.size(0), channels}, coefficients.options());
  with_type(coefficients, [&](auto tag) {
    using T = decltype(tag);
    for_samples(offsets, 4 * channels, [&](int64_t begin, int64_t end, const int64_t* q) {
      for (int64_t b = begin; b < end; ++b) {
        kernels::path_sample(pieces_of(b, tag), t.data_ptr<double>() + q[b], q[b + 1] - q[b],
                             value.data_ptr<T>() + q[b] * channels,
                             derivative.data_ptr<T>() + q[b] * channels);
      }
    });
  });
  const auto backward = [=](const std::vector<Tensor>& grads,
                            const std::vector<Tensor>&) -> std::vector<Tensor> {
    const Tensor grad_value = grads[0].defined() ? grads[0].contiguous() : Tensor();
    const Tensor grad_derivative = grads[1].defined() ? grads[1].contiguous() : Tensor();
    Tensor grad_coefficients = at::zeros_like(coefficients), grad_times = at::zeros_like(t);
    with_type(coefficients, [&](auto tag) {
      using T = decltype(tag);
      for_samples(offsets, 8 * channels, [&](int64_t begin, int64_t end, const int64_t* q) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t from = q[b] * channels;
          const int64_t first_piece = (knot_offsets.data_ptr<int64_t>()[b] - b) * terms * channels;
          kernels::path_sample_backward(
              pieces_of(b, tag), t.data_ptr<double>() + q[b], q[b + 1] - q[b],
              grad_value.defined() ? grad_value.data_ptr<T>() + from : nullptr,
              grad_derivative.defined() ? grad_derivative.data_ptr<T>() + from : nullptr,
              grad_coefficients.data_ptr<T>() + first_piece, grad_times.data_ptr<double>() + q[b]);
        }
      });
    });
    return {grad_coefficients, grad_times};
  };
  std::vector<Tensor> out = differentiable("control", {value, derivative}, {coefficients_, times},
                                           {coefficients_, times}, backward);
  return {out[0], out[1]};
}

Samples Control::sample(const Tensor& times) const {
  FW_CHECK(times.scalar_type() == at::kDouble && (times.dim() == 1 || times.dim() == 2),
           "[control] times must be float64 [Q] or [B, Q], got ", times.scalar_type(), " ", times.sizes());
  FW_CHECK(times.dim() == 1 || times.size(0) == samples(), "[control] got times for ", times.size(0),
           " samples, there are ", samples());
  const int64_t count = times.size(-1);
  const Tensor all = times.expand({samples(), count}).reshape({-1});
  const Samples flat = sample_ragged(all, at::arange(samples() + 1, at::kLong) * count);
  const std::vector<int64_t> shape = {samples(), count, channels()};
  return {flat.value.view(shape), flat.derivative.view(shape)};
}

Samples Control::sample(const RaggedTimes& times) const {
  FW_CHECK(times.times.dim() == 1 && times.times.scalar_type() == at::kDouble,
           "[control] times must be float64 [N]");
  FW_CHECK(times.offsets.dim() == 1 && times.offsets.scalar_type() == at::kLong &&
               times.offsets.size(0) == samples() + 1 && times.offsets[0].item<int64_t>() == 0 &&
               times.offsets[-1].item<int64_t>() == times.times.size(0) &&
               (times.offsets.slice(0, 1) >= times.offsets.slice(0, 0, -1)).all().item<bool>(),
           "[control] offsets of the times must be int64 [", samples() + 1, "], rising from 0 to ",
           times.times.size(0));
  return sample_ragged(times.times, times.offsets.contiguous());
}

Samples Control::at(const Time& time) const {
  FW_CHECK(time.shared() || time.tensor().size(0) == samples(), "[control] got times for ",
           time.tensor().numel(), " samples, there are ", samples());
  const Tensor times = time.tensor().expand({samples()});
  return sample_ragged(times, one_each_);
}

Control straight_path(const RaggedSeries& series) {
  const ControlOptions straight = {.interpolation = Linear{}};
  return series.values.device().is_cpu() ? Control(series, straight) : Control::on_device(series, straight);
}

RaggedSeries fill_missing(const RaggedSeries& series) {
  const Tensor line = straight_path(series).sample(RaggedTimes{series.times, series.offsets}).value;
  // observations stay as they are, to the last bit
  return {.values = at::where(at::isnan(series.values), line, series.values),
          .times = series.times,
          .offsets = series.offsets};
}

}  // namespace fastweights
