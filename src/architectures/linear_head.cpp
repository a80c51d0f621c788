#include "architectures/linear_head.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "architectures/minimise.h"
#include "architectures/standardised.h"
#include "base/error.h"

namespace fastweights {
namespace {

std::string short_number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

// one column for two classes, otherwise one per class: [n, O] float64
Tensor indicators(const Tensor& classes, int64_t outputs) {
  if (outputs == 1) return classes.to(at::kDouble).unsqueeze(1);
  return at::one_hot(classes, outputs).to(at::kDouble);
}

// mean log loss of logits [n, O] for probabilities of the classes [n, O]
double log_loss(const Tensor& logits, const Tensor& probabilities) {
  if (logits.size(1) == 1) return (at::softplus(logits) - probabilities * logits).mean().item<double>();
  return -(at::log_softmax(logits, 1) * probabilities).sum(1).mean().item<double>();
}

// the factor that turns decision values into logits. Classes are certain up to one error in n + 2 (Platt
// 1999), so that the factor is finite if all are right.
double logit_factor(const Tensor& decisions, const Tensor& classes) {
  const int64_t outputs = decisions.size(1);
  const double doubt = 1.0 / static_cast<double>(decisions.size(0) + 2);
  const Tensor certain = indicators(classes, outputs);
  const double others = static_cast<double>(std::max<int64_t>(outputs - 1, 1));
  const Tensor truth = certain * (1 - doubt) + (1 - certain) * (doubt / others);
  // the loss is convex in the factor: golden sections of its logarithm
  constexpr double kGolden = 0.6180339887498949;
  double low = std::log(1e-3), high = std::log(1e3);
  const auto at_factor = [&](double log_factor) { return log_loss(decisions * std::exp(log_factor), truth); };
  while (high - low > 1e-6) {
    const double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    (at_factor(a) < at_factor(b) ? high : low) = at_factor(a) < at_factor(b) ? b : a;
  }
  return std::exp((low + high) / 2);
}

struct RidgeFit {
  double penalty = 0, error = std::numeric_limits<double>::infinity();
  Tensor coefficients, left_out;  // [n, O], predictions without the own series [n, O]
};

// g = Q diag(e) Q^T; with the intercept the hat matrix is 1/n + Q diag(e / (e + penalty)) Q^T
RidgeFit best_ridge(const Tensor& g, const Tensor& targets) {
  const auto [values, vectors] = at::linalg_eigh(g);
  const Tensor e = values.clamp_min(0), centred = targets - targets.mean(0);
  const Tensor rotated = at::matmul(vectors.t(), centred), squares = vectors.square();
  const auto n = static_cast<double>(g.size(0));
  RidgeFit best;
  for (int i = 0; i < 10; ++i) {
    const double penalty = std::pow(10.0, -3 + 6.0 * i / 9);
    const Tensor inverse = (1 / (e + penalty)).unsqueeze(1);
    const Tensor coefficients = at::matmul(vectors, inverse * rotated);
    const Tensor rest = (at::matmul(squares, penalty * inverse) - 1 / n).clamp_min(1e-12);  // 1 - leverage
    const Tensor errors = penalty * coefficients / rest;
    const double error = errors.square().mean().item<double>();
    if (error < best.error) best = {penalty, error, coefficients, targets - errors};
  }
  return best;
}

// samples of all classes, every fifth of each apart: whether it is held out
Tensor every_fifth(const Tensor& classes) {
  std::vector<int64_t> seen;
  Tensor held = at::zeros({classes.size(0)}, at::kBool);
  const int64_t* k = classes.data_ptr<int64_t>();
  for (int64_t i = 0; i < classes.size(0); ++i) {
    const auto own = static_cast<size_t>(k[i]);
    if (own >= seen.size()) seen.resize(own + 1, 0);
    held.data_ptr<bool>()[i] = seen[own]++ % 5 == 4;
  }
  return held;
}

// a penalised logistic regression on coordinates [n, r]; `start` and the result are [r + 1, O], intercept
// last
Tensor fit_logistic(const Tensor& coordinates, const Tensor& truth, double penalty, const Tensor& start) {
  const auto n = static_cast<double>(coordinates.size(0));
  const int64_t outputs = truth.size(1);
  const Objective objective = [&](const Tensor& x) {
    const Tensor weights = x.slice(0, 0, -1), logits = at::matmul(coordinates, weights) + x.slice(0, -1);
    const Tensor p = outputs == 1 ? at::sigmoid(logits) : at::softmax(logits, 1);
    const Tensor slope = (p - truth) / n,
                 gradient = at::cat(
                     {at::matmul(coordinates.t(), slope) + penalty / n * weights, slope.sum(0, true)});
    const double value = log_loss(logits, truth) + penalty / (2 * n) * weights.square().sum().item<double>();
    return std::make_pair(value, gradient);
  };
  return minimise(objective, start);
}

// standardised features of the training series, rotated to as many coordinates as there are series
struct Coordinates {
  Tensor of_train;  // [n, r]
  Tensor back;      // [n, r]: from coordinates to coefficients of series
};

Coordinates coordinates_of(const Tensor& g) {
  const auto [values, vectors] = at::linalg_eigh(g);
  const double least = 1e-10 * std::max(values[-1].item<double>(), 1e-300);
  const Tensor kept = (values > least).nonzero().squeeze(1);
  const Tensor roots = values.index_select(0, kept).sqrt(), q = vectors.index_select(1, kept);
  return {q * roots, q / roots};
}

}  // namespace

LinearHead ridge_head(const HeadData& train, int64_t outputs) {
  const Standardised features(train.features);
  const Tensor targets = train.classes.defined() ? 2 * indicators(train.classes, outputs) - 1
                                                 : at::nan_to_num(train.targets.to(at::kDouble), 0.0);
  const RidgeFit fit = best_ridge(features.products(train.features), targets);
  auto [weight, bias] = features.linear_map(fit.coefficients);
  bias = bias + targets.mean(0);
  std::string note = "ridge penalty " + short_number(fit.penalty) + ", by leaving one out";
  if (!train.classes.defined()) return {weight, bias, note};
  const double factor = logit_factor(fit.left_out, train.classes);
  return {weight * factor, bias * factor,
          note + "; logits are decision values times " + short_number(factor)};
}

LinearHead logistic_head(const HeadData& train, const std::optional<HeadData>& validation, int64_t outputs) {
  const Standardised features(train.features);
  const Coordinates space = coordinates_of(features.products(train.features));
  const Tensor truth = indicators(train.classes, outputs);
  const Tensor start = at::zeros({space.of_train.size(1) + 1, outputs}, at::kDouble);
  Tensor fitted = space.of_train, fitted_truth = truth, held, held_truth;
  if (validation) {
    held = at::matmul(features.products(validation->features), space.back);
    held_truth = indicators(validation->classes, outputs);
  } else {
    const Tensor apart = every_fifth(train.classes), out = apart.nonzero().squeeze(1),
                 in = apart.logical_not().nonzero().squeeze(1);
    held = space.of_train.index_select(0, out);
    held_truth = truth.index_select(0, out);
    fitted = space.of_train.index_select(0, in);
    fitted_truth = truth.index_select(0, in);
  }
  // from strong to weak penalties, each from the result of the one before
  double penalty = 1e4, best = std::numeric_limits<double>::infinity();
  Tensor x = start;
  for (double candidate = 1e5; held.size(0) > 0 && candidate > 0.5; candidate /= 10) {
    x = fit_logistic(fitted, fitted_truth, candidate, x);
    const double loss = log_loss(at::matmul(held, x.slice(0, 0, -1)) + x.slice(0, -1), held_truth);
    if (loss >= best) break;
    best = loss;
    penalty = candidate;
  }
  x = fit_logistic(space.of_train, truth, penalty, start);
  auto [weight, bias] = features.linear_map(at::matmul(space.back, x.slice(0, 0, -1)));
  return {weight, bias + x[-1], "penalty " + short_number(penalty) + " of the logistic regression"};
}

}  // namespace fastweights
