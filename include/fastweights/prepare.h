#pragma once

#include <string>
#include <vector>

#include "fastweights/dataset.h"

/// What is learned from training data before a model sees any: means and scales of channels, static features
/// and targets, the clock, the names. It is kept with the model and applied to all data alike.

namespace fastweights {

/// Standard: mean and standard deviation. Robust: median and interquartile range / 1.349, which a few wild
/// values do not move. Both over observed training values only.
enum class Scaling { Standard, Robust, None };

struct PrepareConfig {
  Scaling scaling = Scaling::Standard;
  double clip = 10;          ///< scaled values lie between -clip and clip; 0: anywhere
  bool time_channel = true;  ///< elapsed time as the first channel
  bool intensity = false;    ///< how often each channel was observed so far, as further channels
  /// Elapsed time of a typical series ends here, and so do counts of a channel that is always observed,
  /// unless they end earlier in median gaps and observations. 0: they stay as they are.
  double typical_time = 3, typical_count = 10;
};

struct Scale {
  double mean = 0, deviation = 1;

  double operator()(double x) const { return (x - mean) / deviation; }
  double undo(double x) const { return x * deviation + mean; }
};

struct Preparation {
  PrepareConfig config = {};
  std::vector<std::string> channels = {}, statics = {}, targets = {}, classes = {};  ///< names
  std::vector<Scale> channel_scales = {};                                            // [C]
  std::vector<Scale> static_scales = {};                                             // [F]
  std::vector<int64_t> static_flags = {};  ///< static features of which some are unknown: each has a flag
  std::vector<Scale> target_scales = {};   // [O]
  std::string time_unit = {};              ///< of the data
  double median_gap = 1;                   ///< between neighbouring times
  /// Elapsed time in median gaps, and counts, are divided by these, so that they stay within a few units like
  /// other channels, however long a series is.
  double time_scale = 1, count_scale = 1;

  /// Channels and static features that a model sees.
  int64_t model_channels() const;
  int64_t model_statics() const;
};

Preparation fit_preparation(const DataSet& train, const PrepareConfig& config = {});

/// The data with the channels, static features, targets and classes of the preparation, in its order. One
/// that is missing is an error, others are left out; a class that the preparation does not have becomes
/// unknown.
DataSet matched(const DataSet& data, const Preparation& preparation);

}  // namespace fastweights
