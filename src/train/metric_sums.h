#pragma once

#include <cstdint>
#include <vector>

#include "fastweights/predictions.h"

/// Metrics as functions of the weights of rows or series, prepared once for many weights. Weight 1 gives the
/// metrics themselves, multinomial weights those of a resample.

namespace fastweights {

/// Positions of scores in descending order, and the last position of each group of equal scores.
struct Ranking {
  std::vector<size_t> order = {};
  std::vector<bool> group_end = {};
};
/// Empty if a score is NaN, which cannot be ordered.
Ranking ranking(const std::vector<double>& scores);

/// NaN where a kind is absent.
struct RankingMetrics {
  double auroc = 0, average_precision = 0;
};
RankingMetrics ranking_metrics(const Ranking& ranking, const std::vector<bool>& positive,
                               const std::vector<double>& weights);

/// Of classification_metrics(); all rows are known.
class ClassSums {
 public:
  ClassSums(const Tensor& probabilities, const Tensor& classes, double threshold);
  /// `weights`: one per row.
  Metrics metrics(const std::vector<double>& weights) const;
  size_t rows() const { return truth_.size(); }

 private:
  struct OneAgainstRest {
    size_t positive_class = 0;
    Ranking ranking = {};
    std::vector<bool> positive = {};
  };
  RankingMetrics mean_ranking(const std::vector<double>& weights, const std::vector<double>& known) const;

  size_t count_;  // K
  std::vector<size_t> truth_, guess_, bin_;
  std::vector<double> confidence_, loss_, brier_;
  std::vector<bool> top_right_;
  std::vector<OneAgainstRest> against_rest_;
};

/// What SMAPE and MASE of channels need; empty: neither.
struct ChannelUnits {
  std::vector<Scale> scales = {};         // [O]: of the predictions
  std::vector<double> naive_errors = {};  // [O]: as predictions are scaled; 0: unknown
};

/// Of regression_metrics(), by groups of rows: groups [M] int64 from 0 to `count` - 1. Half widths [M, O] of
/// prediction intervals may be undefined.
class RegressionSums {
 public:
  RegressionSums(const Tensor& predictions, const Tensor& targets, const Tensor& half_widths,
                 const Tensor& groups, int64_t count, ChannelUnits units = {});
  /// `weights`: one per group.
  Metrics metrics(const std::vector<double>& weights) const;

 private:
  struct Sums {
    double count = 0, truth = 0, truth_squares = 0, squares = 0, errors = 0;
    double relative = 0, stepped = 0, steps = 0;  // of SMAPE; of MASE: values, errors in naive errors
    double bounded = 0, inside = 0, width = 0;    // of values with an interval

    void add(const Sums& other, double weight);
  };
  size_t groups_, outputs_;
  bool intervals_;
  ChannelUnits units_;
  std::vector<Sums> sums_;  // [G, O]
};

/// Those of evaluate(): targets in their own units, channels as the model sees them, since they have all
/// kinds of units.
RegressionSums regression_sums(const Predictions& predictions, const TaskConfig& task,
                               const Preparation& preparation, const Tensor& groups, int64_t count);

/// The position of each row among those of its sample, from 0.
std::vector<int64_t> positions_of(const Tensor& samples);

}  // namespace fastweights
