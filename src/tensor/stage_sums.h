#pragma once

#include <memory>
#include <vector>

#include "fastweights/tensor.h"

namespace fastweights {

struct StageGradients;

/// The sums base + sum_j w_ij k_j of one Runge-Kutta step, each with one slope more than the sum before.
///
/// Recorded one by one, a step of S stages would leave S (S + 1) / 2 products and as many additions for the
/// backward pass. But the gradients G_i of the sums arrive in the order S, S - 1, ..., 1, and when G_i has
/// arrived, everything that slope i contributes to is known. So the gradients are collected, and each
/// slope gets its own in one sum:
///   grad k_i = sum_(m >= i) w_mi G_m        grad base = sum_m G_m
class StageSums {
 public:
  explicit StageSums(Tensor base) : base_(std::move(base)) {}
  ~StageSums();
  StageSums(const StageSums&) = delete;
  StageSums& operator=(const StageSums&) = delete;

  /// base + sum_j weights[j] slopes[j]; slopes holds exactly one more than in the call before.
  Tensor next(const std::vector<Tensor>& slopes, std::vector<double> weights);

 private:
  Tensor base_;
  std::shared_ptr<StageGradients> shared_;
};

}  // namespace fastweights
