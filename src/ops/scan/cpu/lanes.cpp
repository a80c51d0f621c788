#include "ops/scan/cpu/lanes.h"

#include <algorithm>
#include <numeric>

namespace fastweights {
namespace {

constexpr int64_t kLongestStretch = 64;
constexpr int64_t kCacheBytes = int64_t{1} << 19;
// more than threads, so that they end together; a sum over bundles has the same order with any number of them
constexpr int64_t kBundles = 64;

std::vector<int64_t> longest_first(const BatchSteps& batch) {
  std::vector<int64_t> order(batch.samples);
  std::iota(order.begin(), order.end(), 0);
  const auto steps = [&](int64_t b) { return batch.offsets[b + 1] - batch.offsets[b]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return steps(a) > steps(b); });
  return order;
}

}  // namespace

int64_t scan_stretch(int64_t width, int64_t lanes, int64_t bytes) {
  const int64_t matrix = width * width * lanes * bytes;
  return std::clamp<int64_t>(kCacheBytes / matrix, 4, kLongestStretch);
}

namespace {

// heads first .. last - 1 of a sample
void add_lanes(const BatchSteps& batch, int64_t b, int64_t first, int64_t last,
               std::vector<kernels::ScanLane>& lanes) {
  const int64_t begin = batch.output_offsets[b], outputs = batch.output_offsets[b + 1] - begin;
  for (int64_t h = first; h < last; ++h) {
    lanes.push_back({b, h, batch.offsets[b], batch.offsets[b + 1] - batch.offsets[b],
                     batch.output_steps + begin, begin, outputs});
  }
}

}  // namespace

LanePlan plan_lanes(const kernels::ScanPlan& plan, const BatchSteps& batch, int64_t lanes) {
  LanePlan result;
  const int64_t heads = plan.heads;
  const int64_t together = std::max<int64_t>(1, lanes / heads), at_once = std::min(heads, lanes);
  result.parts = (heads + lanes - 1) / lanes;
  const std::vector<int64_t> order = longest_first(batch);
  for (int64_t first = 0; first < batch.samples; first += together) {
    const int64_t last = std::min(first + together, batch.samples);
    for (int64_t part = 0; part < result.parts; ++part) {
      LaneGroup group = {static_cast<int64_t>(result.lanes.size()), 0, 0, part, result.kept};
      for (int64_t i = first; i < last; ++i) {
        const int64_t b = order[i];
        group.steps = std::max(group.steps, batch.offsets[b + 1] - batch.offsets[b]);
        add_lanes(batch, b, part * at_once, std::min(heads, (part + 1) * at_once), result.lanes);
      }
      group.lanes = static_cast<int64_t>(result.lanes.size()) - group.first_lane;
      result.kept += plan.kept(group.steps);
      result.groups.push_back(group);
    }
  }
  const auto groups = static_cast<int64_t>(result.groups.size());
  const int64_t bundles = std::min(kBundles, groups);
  for (int64_t i = 0; i <= bundles; ++i) result.bundles.push_back(groups * i / bundles);
  return result;
}

}  // namespace fastweights
