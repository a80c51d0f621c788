#pragma once

#include "model/batch.h"
#include "model/block.h"
#include "model/engine.h"
#include "model/programmer.h"

/// A batch in the memory of a GPU: what passes need of it, and nothing that they would have to wait for.

namespace fastweights {

/// An output lies at, or on a straight line between, two of its sample's wanted steps.
struct ResidentOutput {
  int64_t left, right;
  double part;
};

/// What the CPU knows of a sample.
struct ResidentSample {
  int64_t steps;
  std::vector<int64_t> wanted;  // steps after which W is wanted, rising
  std::vector<ResidentOutput> outputs;
  ResidentOutput last;
};

/// Where outputs are among the wanted W, sample after sample.
struct ResidentIndex {
  Tensor left, right;  // [M]
  Tensor part;         // [M, 1, 1, 1, 1]; undefined: all are at steps
};

struct Resident {
  std::vector<ResidentSample> samples;
  SampledSteps steps;
  SharedRows shared;
  ScanMethod method;
  int64_t stages = 1;
  Samples begin;           // [B, C]: the signal at the beginning
  Tensor first;            // [B, C]: the first observation
  Tensor static_features;  // [B, F], or undefined
  Tensor start;            // [B, L, H, V, K], or undefined: W at the beginning
  Samples query;           // [M, C]: the signal where the query looks
  Tensor sample_index;     // [M]: whose the outputs are
  ResidentIndex outputs, last;
  std::shared_ptr<const Block> block;  // all steps
  // on the CPU
  Tensor times, offsets, last_times;  // as in ModelOutput
  StepRows rows;                      // offsets and the longest
  std::vector<std::vector<int64_t>> wanted;
  bool separable = true;    // whether samples can be picked
  bool refillable = false;  // made by with_room()

  int64_t bytes() const;
};

/// Differentiable with respect to the series' values, the static features and the start.
std::shared_ptr<const Resident> make_resident(const ModelParts& parts, const ModelInput& input);

std::shared_ptr<const Resident> select(const Resident& resident, const std::vector<int64_t>& samples);

/// A copy of a batch, with room for so many rows, that stays where it is while its samples are exchanged:
/// work that was recorded with one of them does all.
std::shared_ptr<Resident> with_room(const Resident& batch, int64_t rows);
/// Whether a batch can take the place of the one that is there: as many samples and outputs, no more rows.
bool has_room(const Resident& place, const Resident& batch);
void refill(const Resident& place, const Resident& batch);

/// Whether a training step can be recorded: it is not cut into blocks or pieces of time.
bool can_be_recorded(const std::shared_ptr<const ModelParts>& parts, const Resident& resident);

/// What a training step will take.
MemoryPlan plan_resident(const std::shared_ptr<const ModelParts>& parts, const Resident& resident);

/// W at the outputs, and the plan.
EngineRun run_resident(const std::shared_ptr<const ModelParts>& parts, const Resident& resident,
                       const Masks& masks, const Tensor& w0);

}  // namespace fastweights
