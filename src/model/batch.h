#pragma once

#include "model/parts.h"
#include "model/schedule.h"
#include "model/signal.h"

/// An input as the model sees it: checked, on the model's clock, with its steps. The series is on the CPU;
/// the signal of a float32 model on a GPU is there, unless gradients of the series' values are recorded.

namespace fastweights {

struct ModelBatch {
  RaggedSeries series;
  Tensor static_features;
  RaggedTimes requested;  // output times in the time of the series ...
  Signal signal;
  RaggedTimes outputs;  // ... and on the signal's clock
  Tensor begin;         // [B] on the clock
  Schedule schedule;

  int64_t samples() const { return series.samples(); }
  Tensor all() const { return at::arange(samples() + 1, at::kLong); }
};

ModelBatch make_model_batch(const ModelParts& parts, const ModelInput& input);

CheckedInput check_input(const SharedOptions& config, at::ScalarType type, const ModelInput& input);

/// The same for any architecture: the signal is made on `device`.
ModelBatch make_model_batch(const SharedOptions& config, const CheckedInput& checked,
                            const std::optional<FastWeightState>& start, const at::Device& device);

/// The signal where the query looks, one row per output.
Samples query_samples(const ModelParts& parts, const ModelBatch& batch, const ForwardOptions& options);

/// When each sample's last output is, in the time of the series: [B]
Tensor last_times(const ModelInput& input, const ModelBatch& batch);

}  // namespace fastweights
