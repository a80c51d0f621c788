#pragma once

#include <vector>

#include "fastweights/data.h"

/// Model time: the time of a series, saturated over gaps that are longer than usual (docs/time_and_gaps.md).

namespace fastweights::data {

/// A gap d as it is, if it is at most the usual gap a; otherwise a (2 - a / d), which is below 2 a.
/// a = 0: as it is.
double saturated(double gap, double usual_gap);
/// The gap with this saturated value; infinite from 2 a on.
double unsaturated(double gap, double usual_gap);

/// The model time of one series. Its rows are passed in their order.
class ModelClock {
 public:
  /// The first row counts as observed.
  ModelClock(double first, double usual_gap);

  /// The model time of a time after the last observed row.
  double at(double t) const;
  /// The time with this model time, after the last observed row.
  double inverse(double model_time) const;
  double since_observed(double t) const { return t - observed_; }
  /// A row with a value.
  void observe(double t);

 private:
  double running(double t) const;

  double usual_gap_, observed_;
  // time and model time of the last row after a long gap; from there to the last observed row both advance
  // alike
  double begin_, model_begin_;
};

/// The gap that a share of the gaps does not exceed; at least their median. 0: there are none.
double usual_gap_of(std::vector<double> gaps, double share);

/// Sets median gap, usual gap and the scale of elapsed time, which is measured in model time. The usual gap
/// is at least `least`.
void fit_time(Preparation& p, const DataSet& data, const std::vector<int64_t>& samples, double least = 0);

}  // namespace fastweights::data
