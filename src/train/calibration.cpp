#include "fastweights/calibration.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace fastweights {
namespace {

// half an observation whose class says nothing (the rule of Krichevsky and Trofimov): a validation part
// without mistakes is no evidence for certainty, since as many series again could hold one
constexpr double kUniform = 0.5;
// deviations of the normal priors around the identity: of the logarithm of the scale, of that of one plus the
// power, and of each bias
constexpr double kScaleDeviation = 1, kPowerDeviation = 0.5, kBiasDeviation = 0.5;
// of the way to a fit: class frequencies to six digits, and the order of the outputs is still known
constexpr double kSmallestShare = 1e-6;
// Newton's method solves for everything at once; with more classes only the scale is fitted
constexpr int64_t kMostBiases = 256;
// more rows say the same more slowly
constexpr int64_t kMostCells = 1'000'000;

// outputs as one logit per class, and what is known about them
struct Scored {
  Tensor logits;       // [M, K] float64
  Tensor classes;      // [M] int64
  Tensor log_margins;  // [M, 1]: logarithms of margins over the typical one
  double typical = 1;  // median margin
  double series = 0;   // rows of a series say much the same: their weights add up to the number of series
};

// How far outputs are from knowing nothing: the mean over classes of -log p, at least log K. [..., 1]
Tensor margins(const Tensor& outputs) {
  const Tensor z = outputs.size(-1) == 1 ? at::cat({at::zeros_like(outputs), outputs}, -1) : outputs;
  return at::logsumexp(z, -1, /*keepdim=*/true) - z.mean(-1, /*keepdim=*/true);
}

Scored scored_rows(const Predictions& p) {
  const Tensor finite = p.outputs.isfinite().all(1);
  Tensor index = (p.classes.ge(0) & finite).nonzero().squeeze(1);
  const int64_t classes = std::max<int64_t>(p.outputs.size(1), 2);
  const Tensor samples = p.samples.index_select(0, index);
  const std::set<int64_t> series(samples.data_ptr<int64_t>(), samples.data_ptr<int64_t>() + samples.numel());
  index = index.slice(0, 0, index.size(0), index.size(0) * classes / kMostCells + 1);
  Tensor z = p.outputs.index_select(0, index).to(at::kDouble);
  if (z.size(1) == 1) z = at::cat({at::zeros_like(z), z}, 1);
  Scored rows = {.logits = z, .classes = p.classes.index_select(0, index), .log_margins = margins(z)};
  if (z.size(0) > 0) rows.typical = rows.log_margins.median().item<double>();
  rows.log_margins = (rows.log_margins / rows.typical).log();
  rows.series = static_cast<double>(series.size());
  return rows;
}

struct Map {
  double log_scale = 0, log_power = 0;  // the latter of one plus the power
  Tensor bias;                          // [K] float64

  double power() const { return std::expm1(log_power); }
};

Tensor scaled(const Scored& rows, const Map& map) {
  return rows.logits * (rows.log_margins * map.power() + map.log_scale).exp();
}

Tensor mapped(const Scored& rows, const Map& map) { return scaled(rows, map) + map.bias; }

// mean log loss, plus `uniform` times the mean over classes
double mean_log_loss(const Scored& rows, const Map& map, double uniform = 0) {
  const Tensor logs = at::log_softmax(mapped(rows, map), 1);
  const Tensor likely = logs.gather(1, rows.classes.unsqueeze(1));
  return -(likely.mean() + uniform * logs.mean()).item<double>();
}

// minus the logarithm of the posterior, up to a constant
double penalised(const Scored& rows, const Map& map) {
  const double scale = map.log_scale / kScaleDeviation, power = map.log_power / kPowerDeviation;
  const double bias = map.bias.square().sum().item<double>() / (kBiasDeviation * kBiasDeviation);
  return rows.series * mean_log_loss(rows, map, kUniform / rows.series) +
         (scale * scale + power * power + bias) / 2;
}

enum class Fitted { Scale, All };

// Derivatives by the logarithms of the scale and of one plus the power, and by the biases: [P], [P, P]. Of
// the second derivatives only the part that is never negative.
struct Derivatives {
  Tensor gradient, hessian;
};

Derivatives derivatives(const Scored& rows, const Map& map, Fitted fitted) {
  const int64_t m = rows.logits.size(0), k = rows.logits.size(1);
  const double weight = rows.series / static_cast<double>(m), uniform = kUniform / rows.series;
  const Tensor u = scaled(rows, map);             // [M, K]
  const Tensor p = at::softmax(u + map.bias, 1);  // [M, K]
  const Tensor truth = at::one_hot(rows.classes, k).to(at::kDouble) + uniform / static_cast<double>(k);
  const Tensor away = p * (1 + uniform) - truth;                // [M, K]
  const Tensor centred = u - (p * u).sum(1, /*keepdim=*/true);  // [M, K]
  // of the logarithm of the factor of each row
  Tensor rates = at::ones_like(rows.log_margins);  // [M, 1] or [M, 2]
  Tensor priors = at::full({1}, 1 / (kScaleDeviation * kScaleDeviation), at::kDouble),
         place = at::full({1}, map.log_scale, at::kDouble);
  if (fitted == Fitted::All) {
    rates = at::cat({rates, rows.log_margins * (1 + map.power())}, 1);
    priors = at::cat({priors, at::full({1}, 1 / (kPowerDeviation * kPowerDeviation), at::kDouble),
                      at::full({k}, 1 / (kBiasDeviation * kBiasDeviation), at::kDouble)});
    place = at::cat({place, at::full({1}, map.log_power, at::kDouble), map.bias});
  }
  Tensor gradient = at::matmul(rates.t(), (away * u).sum(1)),
         hessian = at::matmul(rates.t(), rates * (p * centred.square()).sum(1, /*keepdim=*/true));
  if (fitted == Fitted::All) {
    const Tensor mixed = at::matmul(rates.t(), p * centred);          // [2, K]
    const Tensor biases = at::diag(p.sum(0)) - at::matmul(p.t(), p);  // [K, K]
    gradient = at::cat({gradient, away.sum(0)});
    hessian = at::cat({at::cat({hessian, mixed}, 1), at::cat({mixed.t(), biases}, 1)});
  }
  return {gradient * weight + priors * place, hessian * (weight * (1 + uniform)) + at::diag(priors)};
}

// further by a share of a step
Map moved(const Map& map, const Tensor& step, double share, Fitted fitted) {
  if (fitted == Fitted::Scale) return {map.log_scale - share * step[0].item<double>(), 0, map.bias};
  return {map.log_scale - share * step[0].item<double>(), map.log_power - share * step[1].item<double>(),
          map.bias - step.slice(0, 2) * share};
}

// Newton's method, with shorter steps where a whole one does not improve
Map fit(const Scored& rows, Fitted fitted) {
  constexpr int kMostSteps = 100, kMostHalvings = 30;
  constexpr double kTolerance = 1e-10;
  Map map = {.bias = at::zeros({rows.logits.size(1)}, at::kDouble)};
  double value = penalised(rows, map);
  for (int step = 0; step < kMostSteps; ++step) {
    const Derivatives d = derivatives(rows, map, fitted);
    const Tensor whole = at::linalg_solve(d.hessian, d.gradient);
    Map next = map;
    double found = value, share = 1;
    for (int halving = 0; halving < kMostHalvings; ++halving, share /= 2) {
      next = moved(map, whole, share, fitted);
      found = penalised(rows, next);
      if (found < value) break;
    }
    if (!(found < value - kTolerance)) break;
    map = next;
    value = found;
  }
  return map;
}

// in between: with one power, the log loss is convex in scale and bias, so it lies below the line between
// those of the ends
Map between(const Map& from, const Map& to, double share) {
  const double scale = (1 - share) * std::exp(from.log_scale) + share * std::exp(to.log_scale);
  return {std::log(scale), (1 - share) * from.log_power + share * to.log_power,
          from.bias * (1 - share) + to.bias * share};
}

// the first map on the way whose log loss on validation is at most `limit`, which that of `to` is
Map first_not_worse(const Scored& rows, const Map& from, const Map& to, double limit) {
  constexpr int kSteps = 64;
  for (int step = 0; step < kSteps; ++step) {
    const Map map = between(from, to, static_cast<double>(step) / kSteps);
    if (mean_log_loss(rows, map) <= limit) return map;
  }
  return to;
}

// The epoch was the best of some on the same series, which lets chance improve the likelihood of validation
// by up to their logarithm. What is less than that better than class frequencies is partly trusted.
Map as_far_as_trusted(const Scored& rows, const Map& fit, const Map& frequencies, int64_t epochs) {
  const double gain = rows.series * (mean_log_loss(rows, frequencies) - mean_log_loss(rows, fit));
  const double luck = std::log(static_cast<double>(std::max<int64_t>(epochs, 1)));
  if (gain >= luck && gain > 0) return fit;
  return between(frequencies, fit, std::max(gain / std::max(luck, 1e-9), kSmallestShare));
}

Calibration calibration_of(const Map& map, const Scored& rows, int64_t outputs) {
  Calibration out = {.scale = std::exp(map.log_scale)};
  // rounding of the way from and to the logarithm
  if (std::abs(map.log_scale) < 1e-12) out.scale = 1;
  if (map.log_power != 0) {
    out.power = map.power();
    out.typical = rows.typical;
  }
  if (!map.bias.any().item<bool>()) return out;
  const Tensor bias = outputs == 1 ? map.bias.slice(0, 1) - map.bias.slice(0, 0, 1) : map.bias;
  out.bias.assign(bias.data_ptr<double>(), bias.data_ptr<double>() + outputs);
  return out;
}

}  // namespace

Tensor calibrated(const Tensor& outputs, const Calibration& calibration) {
  if (calibration.is_identity() || !outputs.defined()) return outputs;
  const Tensor z = outputs.to(at::kDouble);
  Tensor scaled = z * calibration.scale;
  if (calibration.power != 0) scaled = scaled * (margins(z) / calibration.typical).pow(calibration.power);
  if (calibration.bias.empty()) return scaled;
  const auto count = static_cast<int64_t>(calibration.bias.size());
  FW_CHECK(outputs.size(-1) == count, "[calibration] ", count, " biases are for as many outputs, got ",
           outputs.size(-1));
  return scaled + at::tensor(calibration.bias, scaled.options());
}

Tensor class_counts(const Tensor& classes, int64_t count) {
  return at::bincount(classes.masked_select(classes.ge(0)), {}, count);
}

Calibration fit_calibration(const Predictions& validation, const Tensor& counts,
                            const CalibrationOptions& options) {
  if (options.rule == CalibrationRule::None || !validation.classes.defined() || !validation.outputs.defined())
    return {};
  const Scored rows = scored_rows(validation);
  if (rows.classes.size(0) == 0) return {};
  const int64_t classes = rows.logits.size(1);
  FW_CHECK(counts.size(0) == classes, "[calibration] ", classes, " classes need as many counts, got ",
           counts.size(0));
  // with one more series of each class, so that none is impossible
  const Tensor smoothed = counts.to(at::kDouble) + 1;
  const Map identity = {.bias = at::zeros({classes}, at::kDouble)};
  const double before = mean_log_loss(rows, identity);
  const bool all = options.rule == CalibrationRule::Automatic && classes <= kMostBiases;
  const Fitted fitted = all ? Fitted::All : Fitted::Scale;
  // the half observation may ask for more
  const Map map = first_not_worse(rows, fit(rows, fitted), identity, before);
  // the power does not matter to them
  const Map frequencies = {-INFINITY, map.log_power, (smoothed / smoothed.sum()).log()};
  const Map trusted = as_far_as_trusted(rows, map, frequencies, options.epochs);
  return calibration_of(first_not_worse(rows, trusted, map, before), rows, validation.outputs.size(1));
}

double fit_threshold(const Predictions& validation, const std::string& metric) {
  if (metric == "none" || !validation.classes.defined() || !validation.outputs.defined()) return 0.5;
  const Tensor p = class_probabilities(validation.outputs);
  // one class alone does not say where the other begins
  if (p.size(1) != 2 || class_counts(validation.classes, 2).min().item<int64_t>() == 0) return 0.5;
  return best_threshold(p, validation.classes, metric);
}

}  // namespace fastweights
