#include "model/batch.h"

#include "base/error.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

void check_static_features(const SharedOptions& config, const Tensor& features, int64_t samples) {
  const int64_t count = config.static_features;
  FW_CHECK(count > 0 || !features.defined(), "[model] this model takes no static features");
  if (count == 0) return;
  FW_CHECK(
      features.defined() && features.dim() == 2 && features.size(0) == samples && features.size(1) == count,
      "[model] static features must be [", samples, ", ", count, "], got ",
      features.defined() ? message(features.sizes()) : "nothing");
  const Tensor bad = at::nonzero(at::isfinite(features.detach()).logical_not());
  FW_CHECK(bad.size(0) == 0, "[model] sample ", bad[0][0].item<int64_t>(), ": static feature ",
           bad[0][1].item<int64_t>(), " is ",
           features[bad[0][0].item<int64_t>()][bad[0][1].item<int64_t>()].item<double>(),
           "; static features must be finite");
}

// output times in the time of the series: as asked for, or the end of each
RaggedTimes requested_times(const ModelInput& input) {
  const RaggedSeries& series = input.series;
  const Tensor ends = series.times.index_select(0, series.offsets.slice(0, 1) - 1);
  if (!input.output_times) return {ends, at::arange(series.samples() + 1, at::kLong)};
  const RaggedTimes& requested = *input.output_times;
  FW_CHECK(requested.times.defined() && requested.times.dim() == 1 &&
               requested.times.scalar_type() == at::kDouble && requested.offsets.defined() &&
               requested.offsets.dim() == 1 && requested.offsets.scalar_type() == at::kLong &&
               requested.offsets.size(0) == series.samples() + 1,
           "[model] output times must be float64 [M] with int64 offsets [", series.samples() + 1, "]");
  const Tensor times = requested.times.detach().contiguous(), offsets = requested.offsets.contiguous();
  const double* t = times.data_ptr<double>();
  const int64_t* o = offsets.data_ptr<int64_t>();
  FW_CHECK(o[0] == 0 && o[series.samples()] == times.size(0),
           "[model] offsets of output times must run from 0 to ", times.size(0), ", got ", o[0], " to ",
           o[series.samples()]);
  const Tensor begins =
      input.start ? input.start->t : series.times.index_select(0, series.offsets.slice(0, 0, -1));
  for (int64_t b = 0; b < series.samples(); ++b) {
    FW_CHECK(o[b + 1] >= o[b], "[model] offsets of output times fall at sample ", b);
  }
  for (int64_t b = 0; b < series.samples(); ++b) {
    const double begin = begins[b].item<double>(), end = ends[b].item<double>();
    for (int64_t i = o[b]; i < o[b + 1]; ++i) {
      FW_CHECK(t[i] >= begin && t[i] <= end, "[model] sample ", b, ": output time ", i - o[b], " is ", t[i],
               ", outside of its series from ", begin, " to ", end);
      FW_CHECK(i == o[b] || t[i] > t[i - 1], "[model] sample ", b, ": output times must rise, but time ",
               i - o[b], " is ", t[i], " after ", t[i - 1]);
    }
  }
  return {times, offsets};
}

void check_start(const FastWeightState& start, const ModelParts& parts, const RaggedSeries& series) {
  const int64_t samples = series.samples();
  FW_CHECK(start.t.defined() && start.t.dim() == 1 && start.t.size(0) == samples &&
               start.t.scalar_type() == at::kDouble,
           "[model] the start's times must be float64 [", samples, "]");
  FW_CHECK(static_cast<int64_t>(start.w.size()) == parts.layer_count(),
           "[model] the start has fast weights of ", start.w.size(), " layers, the model has ",
           parts.layer_count());
  std::vector<int64_t> shape = parts.weight_shape(samples);
  shape.erase(shape.begin() + 1);
  for (const Tensor& w : start.w) {
    FW_CHECK(w.defined() && w.sizes().vec() == shape, "[model] the start's fast weights must be ",
             at::IntArrayRef(shape), ", got ", w.defined() ? message(w.sizes()) : "nothing");
    FW_CHECK(at::isFloatingType(w.scalar_type()),
             "[model] the start's fast weights must be floating-point, got ", w.scalar_type());
  }
  const Tensor begins = series.times.index_select(0, series.offsets.slice(0, 0, -1));
  const Tensor ends = series.times.index_select(0, series.offsets.slice(0, 1) - 1);
  const Tensor outside = at::nonzero((start.t >= begins).logical_and(start.t <= ends).logical_not());
  FW_CHECK(outside.size(0) == 0, "[model] the start of sample ", outside[0].item<int64_t>(),
           " is outside of its series");
}

}  // namespace

CheckedInput check_input(const SharedOptions& config, at::ScalarType type, const ModelInput& input) {
  RaggedSeries series = input.series;
  FW_CHECK(series.offsets.defined() && series.offsets.dim() == 1 && series.samples() > 0,
           "[model] the batch is empty: there must be at least one series");
  series.offsets = series.offsets.contiguous();
  check_series(series, "model", 2);
  FW_CHECK(series.channels() == config.channels, "[model] the series have ", series.channels(),
           " channels, the model takes ", config.channels);
  check_static_features(config, input.static_features, series.samples());
  const RaggedTimes requested = requested_times(input);
  series.values = series.values.to(type);
  const Tensor& features = input.static_features;
  return {series, features.defined() ? features.to(type) : features, requested, !input.output_times};
}

ModelBatch make_model_batch(const SharedOptions& config, const CheckedInput& checked,
                            const std::optional<FastWeightState>& start, const at::Device& device) {
  const RaggedSeries& series = checked.series;
  // kernels for paths are float32 without gradients
  const bool kernels = device.is_cuda() && series.values.scalar_type() == at::kFloat;
  const at::Device signal_device =
      kernels && !needs_gradient({series.values}) ? device : at::Device(at::kCPU);
  ModelBatch batch = {.series = series,
                      .static_features = checked.static_features,
                      .requested = checked.requested,
                      .signal = Signal(config, series, signal_device),
                      .outputs = {},
                      .begin = {},
                      .schedule = {}};
  const Signal& signal = batch.signal;
  const RaggedTimes& requested = checked.requested;
  batch.outputs = {checked.at_ends ? signal.end() : signal.clock(requested), requested.offsets};
  batch.begin = start ? signal.clock({start->t, batch.all()}) : signal.begin();
  batch.schedule = make_schedule(config, signal, batch.begin, batch.outputs);
  return batch;
}

ModelBatch make_model_batch(const ModelParts& parts, const ModelInput& input) {
  const SharedOptions shared = parts.config.shared();
  const CheckedInput checked = check_input(shared, parts.type(), input);
  if (input.start) check_start(*input.start, parts, checked.series);
  return make_model_batch(shared, checked, input.start, parts.device());
}

Samples query_samples(const ModelParts& parts, const ModelBatch& batch, const ForwardOptions& options) {
  const Signal& signal = batch.signal;
  const Tensor& sample_index = batch.schedule.sample_index;
  const QueryTime when = parts.config.query;
  const auto rows = [&](const Tensor& x) {
    return x.defined() ? x.index_select(0, on_device(sample_index, x.device())) : x;
  };
  if (when == QueryTime::FirstObservation) {
    const Tensor x = rows(nn::linear(*parts.first, {signal.first(), {}}, parts.wiring.products).value);
    return {x, x};
  }
  RaggedTimes times = batch.outputs;
  if (when == QueryTime::LastOfBatch) {
    const Tensor end = signal.end();
    times = {end.max().expand({end.size(0)}).contiguous(), at::arange(end.size(0) + 1, at::kLong)};
  }
  const Samples x = signal.sample(times);
  if (options.observe) options.observe(Time(times.times), x);
  return when == QueryTime::LastOfBatch ? Samples{rows(x.value), rows(x.derivative)} : x;
}

Tensor last_times(const ModelInput& input, const ModelBatch& batch) {
  const RaggedSeries& series = batch.series;
  const Tensor starts =
      input.start ? input.start->t : series.times.index_select(0, series.offsets.slice(0, 0, -1));
  const RaggedTimes& requested = batch.requested;
  if (requested.times.size(0) == 0) return starts;
  const Tensor counts = requested.offsets.slice(0, 1) - requested.offsets.slice(0, 0, -1);
  const Tensor last_row = at::clamp(requested.offsets.slice(0, 1) - 1, 0, requested.times.size(0) - 1);
  return at::where(counts > 0, requested.times.index_select(0, last_row), starts);
}

}  // namespace fastweights
