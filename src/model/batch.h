#pragma once

#include "model/parts.h"
#include "model/schedule.h"
#include "model/signal.h"

/// An input as the model sees it: checked, on the model's clock, with its steps. The series is on the CPU;
/// the signal of a model on a GPU is there, unless somebody wants gradients of the series' values.

namespace fastweights {

struct ModelBatch {
  RaggedSeries series;
  Tensor static_features;
  RaggedTimes wanted;  // output times in the time of the series ...
  Signal signal;
  RaggedTimes outputs;  // ... and on the signal's clock
  Tensor begin;         // [B] on the clock
  Schedule schedule;

  int64_t samples() const { return series.samples(); }
  Tensor all() const { return at::arange(samples() + 1, at::kLong); }
};

ModelBatch make_model_batch(const ModelParts& parts, const ModelInput& input);

/// What all systems ask of an input, after checks; values and static features have this type.
struct CheckedInput {
  RaggedSeries series;
  Tensor static_features;
  RaggedTimes wanted;
};
CheckedInput check_input(const SharedOptions& config, at::ScalarType type, const ModelInput& input);

/// The same for any system: `place` is where the signal is made.
ModelBatch make_model_batch(const SharedOptions& config, const CheckedInput& checked, const ModelInput& input,
                            const at::Device& place);

/// The signal where the query looks, one row per output.
Samples query_samples(const ModelParts& parts, const ModelBatch& batch, const ForwardOptions& options);

/// When each sample's last output is, in the time of the series: [B]
Tensor last_times(const ModelInput& input, const ModelBatch& batch);

}  // namespace fastweights
