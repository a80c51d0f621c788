#pragma once

#include "fastweights/network.h"
#include "model/batch.h"
#include "model/block.h"
#include "model/output_index.h"

/// A batch as a fast weight programmer takes it: steps, the signal, and where the outputs lie. On a GPU, and
/// on the CPU for batches that are used often, the signal is sampled at all stages of all steps; otherwise
/// every pass samples it block by block.

namespace fastweights {

/// Bytes of a sampled signal that a batch on the CPU may hold.
constexpr int64_t kSampledLimit = int64_t{1} << 30;

/// The steps of a sample.
struct SampleSteps {
  int64_t steps = 0;
  std::vector<int64_t> requested;       // steps after which W is requested, rising
  std::vector<OutputPosition> outputs;  // among those
  OutputPosition last;                  // the last output
};

struct PreparedSteps final : PreparedBatch::Contents {
  std::shared_ptr<const ModelParts> parts;
  ModelInput input;                        // if the signal is not sampled yet
  std::shared_ptr<const ModelBatch> lazy;  // or null: the signal is sampled
  Samples begin;                           // [B, C]: the signal at the beginning
  Tensor first;                            // [B, C]: the first observation
  Tensor static_features;                  // [B, F], or undefined
  Tensor start;                            // [B, L, H, V, K], or undefined: W at the beginning
  Samples query;                           // [M, C]: the signal where the query reads it
  Tensor sample_index;                     // [M]: samples of the outputs
  // on the CPU
  RaggedTimes times;  // of outputs, as in ModelOutput
  Tensor last_times;  // [B]

  // of the fused engine; absent if only the definition can compute this
  std::vector<SampleSteps> per_sample;
  StepRows rows;  // offsets and the longest; times and dt unless sampled
  SharedRows shared;
  Method method;
  int64_t stages = 1;
  OutputIndex outputs, last;
  std::optional<SampledSteps> sampled;
  std::shared_ptr<const Block> block;  // all steps, if sampled
  bool independent = true;             // whether samples do not depend on each other
  bool refillable = false;             // made by with_capacity()

  int64_t samples() const override { return first.size(0); }
  int64_t bytes() const override;
  PreparedBatch select(const std::vector<int64_t>& samples) const override;
  bool separable() const override { return !lazy && independent; }
  std::vector<BatchRows> sample_rows() const override;
  std::shared_ptr<PreparedBatch::Contents> with_capacity(const BatchRows& rows) const override;
  bool can_assign(const PreparedBatch::Contents& batch) const override;
  void assign(const PreparedBatch::Contents& batch) const override;
};

/// Differentiable with respect to the series' values, the static features and the start.
std::shared_ptr<const PreparedSteps> prepare_steps(const std::shared_ptr<const ModelParts>& parts,
                                                   const ModelInput& input, Reuse reuse);

}  // namespace fastweights
