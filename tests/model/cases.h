#pragma once

#include <vector>

#include "fastweights/model.h"
#include "model/programmer_config.h"

/// Random models and random ragged series for tests of properties that hold for every model.

namespace fastweights::testing {

/// One series with what a model wants to know about it.
struct Sample {
  Tensor times;                      // [L] float64
  Tensor values;                     // [L, C] float64
  Tensor features = {};              // [F] float64, if the model has them
  std::vector<double> outputs = {};  // output times
};

/// A configuration that check_config accepts: a few dozen seeds meet every rule, drive, control, kind of
/// W(t0) and step rule that does not look at the whole batch. `deterministic` is off.
ProgrammerConfig random_config(uint64_t seed);

/// Series of 2 to 7 points that begin at different times, a third of the values missing, with 0 to 3 output
/// times each: the first time, the end, observations and times in between. The first sample has outputs.
std::vector<Sample> random_samples(const ProgrammerConfig& config, int64_t count, uint64_t seed);

/// The batch of these samples, with values of this type.
ModelInput input_of(const std::vector<Sample>& samples, at::ScalarType type = at::kDouble);

/// These samples, in this order.
std::vector<Sample> chosen(const std::vector<Sample>& samples, const std::vector<int64_t>& which);

/// What belongs to each sample, one row of tensors per sample.
using PerSample = std::vector<std::vector<Tensor>>;

/// What a forward and a backward pass give: of each sample its outputs [m, O], its fast weights at them per
/// layer [m, H, V, K], the gradients of its values [L, C] and of its features [F]; of all together the
/// gradients of the parameters. The loss weighs every output and fast weight of a sample with a number of its
/// own that does not depend on the rest of the batch.
struct Passes {
  PerSample samples;
  std::vector<Tensor> parameters;
  ModelOutput output;
};
Passes run_passes(const Model& model, const std::vector<Sample>& samples);

/// All numbers in one tensor, for errors relative to the largest of them all.
Tensor flat(const std::vector<Tensor>& tensors);

/// Same shape, same type, same bits.
bool same_bits(const Tensor& a, const Tensor& b);

}  // namespace fastweights::testing
