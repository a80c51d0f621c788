#pragma once

#include <vector>

#include "ops/scan/cpu/kernel.h"

/// How the recurrences of a batch are spread over groups of lanes.

namespace fastweights {

struct LaneGroup {
  int64_t first_lane, lanes;
  int64_t steps;  // of its longest lane
  int64_t part;   // of the heads of its samples: a sample with more heads than lanes has several
  int64_t kept;   // packs before its own
};

/// A sample's heads stand in one group if they fit, always in the same order and division, so that its bits
/// do not depend on its neighbours. Samples of similar length stand together.
struct LanePlan {
  std::vector<kernels::ScanLane> lanes;
  std::vector<LaneGroup> groups;
  int64_t parts = 1;
  int64_t kept = 0;              // packs of all groups
  std::vector<int64_t> bundles;  // first group of each bundle, and the end: a bundle goes to one thread
};

struct BatchSteps {
  const int64_t* offsets;         // [B + 1]
  const int64_t* output_steps;    // [M]
  const int64_t* output_offsets;  // [B + 1]
  int64_t samples;
};

LanePlan plan_lanes(const kernels::ScanPlan& plan, const BatchSteps& batch, int64_t lanes);

/// Steps between two kept matrices: what is between them fits into a fast cache.
int64_t scan_stretch(int64_t width, int64_t lanes, int64_t bytes);

}  // namespace fastweights
