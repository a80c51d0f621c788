#pragma once

#include <cstdint>
#include <vector>

/// Dynamic time warping of all channels together: the least sum of squared differences over monotone
/// alignments of two series.

namespace fastweights {

struct WarpedSeries {
  int64_t length = 0, channels = 0;
  std::vector<float> values;  // [C][L]: one channel after another

  const float* channel(int64_t c) const { return values.data() + c * length; }
};

/// Smallest and largest value of each channel.
struct Envelope {
  std::vector<float> low, high;  // [C]
};
Envelope envelope_of(const WarpedSeries& series);

/// Rows that alignments may be apart: a fraction of the longer series, and at least the difference of the
/// lengths.
int64_t band_of(const WarpedSeries& a, const WarpedSeries& b, double window);

/// Lower bounds of the distance that rows i, i + 1, ... of a series add, as in LB_Keogh, by what lies outside
/// of the envelope of the other one: [L + 1]. The first is a lower bound of the whole distance.
std::vector<double> lower_bounds(const WarpedSeries& series, const Envelope& other);

/// The distance; infinite as soon as it is certain to exceed `best`. `bounds` are lower_bounds(a, ...).
double warped_distance(const WarpedSeries& a, const WarpedSeries& b, int64_t band,
                       const std::vector<double>& bounds, double best);

}  // namespace fastweights
