#pragma once

#include <string>
#include <vector>

#include "fastweights/model.h"
#include "selftest/engine_cases.h"

/// Models and batches of the sizes that the paper trains, with random data.

namespace fastweights::bench {

struct ScanShape {
  std::string name;
  ProgrammerConfig config;
  std::vector<int64_t> points;   ///< of each series
  int64_t definition_steps = 0;  ///< on which the definition is timed; 0: on all
  CaseBatch gate = {};           ///< a small batch of the same model

  int64_t samples() const { return static_cast<int64_t>(points.size()); }
  /// Observations between which there is one step, or windows.
  int64_t points_per_step() const;
  int64_t longest_steps() const;
};

/// E: EigenWorms, Delta post, 181 x 4,496 windows. S: Speech Commands, Delta-CDE, 1,024 x 160 steps. P:
/// sepsis, Delta-CDE with observation intensity, 1,024 x up to 71 steps. S-hebb and S-oja: as S with their
/// rules and sizes.
std::vector<ScanShape> all_shapes();

/// The same model on series of so many steps (those that are longer are cut), and on so many of them.
/// The softmax form of Oja's rule has no flow; its linear form takes its place.
ScanShape with_method(ScanShape shape, const std::string& method);
ScanShape with_steps(ScanShape shape, int64_t steps);
ScanShape with_samples(ScanShape shape, int64_t samples);
/// With so many heads of the width that it had.
ScanShape with_heads(ScanShape shape, int64_t heads);

/// A few series of a few steps, to see that everything works.
ScanShape tiny(const ScanShape& shape);

/// Random series, always the same, and labels of the classes [B] (for one output: 0 or 1).
struct ScanBatch {
  RaggedSeries series;
  Tensor labels;  // [B] int64
};
ScanBatch make_batch(const ScanShape& shape);

}  // namespace fastweights::bench
