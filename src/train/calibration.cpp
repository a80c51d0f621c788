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
// deviations of the normal priors around the identity, of the logarithm of the scale and of each bias
constexpr double kScaleDeviation = 1, kBiasDeviation = 0.5;
// of the way to a fit: class frequencies to six digits, and the order of the outputs is still known
constexpr double kSmallestShare = 1e-6;
// Newton's method solves for all biases at once; with more classes only the scale is fitted
constexpr int64_t kMostBiases = 256;
// more rows say the same more slowly
constexpr int64_t kMostCells = 1'000'000;

// outputs as one logit per class, and what is known about them
struct Scored {
  Tensor logits;      // [M, K] float64
  Tensor classes;     // [M] int64
  double series = 0;  // rows of a series say much the same: their weights add up to the number of series
};

Scored scored_rows(const Predictions& p) {
  const Tensor finite = p.outputs.isfinite().all(1);
  Tensor index = (p.classes.ge(0) & finite).nonzero().squeeze(1);
  const int64_t classes = std::max<int64_t>(p.outputs.size(1), 2);
  const Tensor samples = p.samples.index_select(0, index);
  const std::set<int64_t> series(samples.data_ptr<int64_t>(), samples.data_ptr<int64_t>() + samples.numel());
  index = index.slice(0, 0, index.size(0), index.size(0) * classes / kMostCells + 1);
  Tensor z = p.outputs.index_select(0, index).to(at::kDouble);
  if (z.size(1) == 1) z = at::cat({at::zeros_like(z), z}, 1);
  return {z, p.classes.index_select(0, index), static_cast<double>(series.size())};
}

struct Affine {
  double log_scale = 0;
  Tensor bias;  // [K] float64
};

Tensor mapped(const Scored& rows, const Affine& map) {
  return rows.logits * std::exp(map.log_scale) + map.bias;
}

// mean log loss, plus `uniform` times the mean over classes
double mean_log_loss(const Scored& rows, const Affine& map, double uniform = 0) {
  const Tensor logs = at::log_softmax(mapped(rows, map), 1);
  const Tensor likely = logs.gather(1, rows.classes.unsqueeze(1));
  return -(likely.mean() + uniform * logs.mean()).item<double>();
}

// minus the logarithm of the posterior, up to a constant
double penalised(const Scored& rows, const Affine& map) {
  const double scale = map.log_scale / kScaleDeviation;
  const double bias = map.bias.square().sum().item<double>() / (kBiasDeviation * kBiasDeviation);
  return rows.series * mean_log_loss(rows, map, kUniform / rows.series) + (scale * scale + bias) / 2;
}

enum class Fitted { Scale, ScaleAndBias };

// Derivatives by the logarithm of the scale and, if they are fitted, by the biases: [P], [P, P]. The loss is
// convex in scale and biases; the part of the second derivative that could be negative is left out.
struct Derivatives {
  Tensor gradient, hessian;
};

Derivatives derivatives(const Scored& rows, const Affine& map, Fitted fitted) {
  const Tensor& z = rows.logits;
  const int64_t m = z.size(0), k = z.size(1);
  const double weight = rows.series / static_cast<double>(m), uniform = kUniform / rows.series,
               scale = std::exp(map.log_scale);
  const Tensor p = at::softmax(mapped(rows, map), 1);  // [M, K]
  const Tensor truth = at::one_hot(rows.classes, k).to(at::kDouble) + uniform / static_cast<double>(k);
  const Tensor away = p * (1 + uniform) - truth;                // [M, K]
  const Tensor centred = z - (p * z).sum(1, /*keepdim=*/true);  // [M, K]
  Tensor priors = at::full({1}, 1 / (kScaleDeviation * kScaleDeviation), at::kDouble),
         place = at::full({1}, map.log_scale, at::kDouble), gradient = (away * z).sum().view({1}) * scale,
         hessian = (p * centred.square()).sum().view({1, 1}) * (scale * scale);
  if (fitted == Fitted::ScaleAndBias) {
    const Tensor mixed = (p * centred).sum(0) * scale;                // [K]
    const Tensor biases = at::diag(p.sum(0)) - at::matmul(p.t(), p);  // [K, K]
    priors = at::cat({priors, at::full({k}, 1 / (kBiasDeviation * kBiasDeviation), at::kDouble)});
    place = at::cat({place, map.bias});
    gradient = at::cat({gradient, away.sum(0)});
    hessian = at::cat({at::cat({hessian, mixed.view({1, k})}, 1), at::cat({mixed.view({k, 1}), biases}, 1)});
  }
  return {gradient * weight + priors * place, hessian * (weight * (1 + uniform)) + at::diag(priors)};
}

// Newton's method, with shorter steps where a whole one does not improve
Affine fit(const Scored& rows, Fitted fitted) {
  constexpr int kMostSteps = 100, kMostHalvings = 30;
  constexpr double kTolerance = 1e-10;
  Affine map = {0, at::zeros({rows.logits.size(1)}, at::kDouble)};
  double value = penalised(rows, map);
  for (int step = 0; step < kMostSteps; ++step) {
    const Derivatives d = derivatives(rows, map, fitted);
    const Tensor whole = at::linalg_solve(d.hessian, d.gradient);
    const double by_scale = whole[0].item<double>();
    const Tensor by_bias = fitted == Fitted::ScaleAndBias ? whole.slice(0, 1) : at::zeros_like(map.bias);
    Affine next = map;
    double found = value, share = 1;
    for (int halving = 0; halving < kMostHalvings; ++halving, share /= 2) {
      next = {map.log_scale - share * by_scale, map.bias - by_bias * share};
      found = penalised(rows, next);
      if (found < value) break;
    }
    if (!(found < value - kTolerance)) break;
    map = next;
    value = found;
  }
  return map;
}

// scale and bias in between: as a log loss is convex in them, it lies below the line between those of the
// ends
Affine between(const Affine& from, const Affine& to, double share) {
  const double scale = (1 - share) * std::exp(from.log_scale) + share * std::exp(to.log_scale);
  return {std::log(scale), from.bias * (1 - share) + to.bias * share};
}

// the first map on the way whose log loss on validation is at most `limit`, which that of `to` is
Affine first_not_worse(const Scored& rows, const Affine& from, const Affine& to, double limit) {
  constexpr int kSteps = 64;
  for (int step = 0; step < kSteps; ++step) {
    const Affine map = between(from, to, static_cast<double>(step) / kSteps);
    if (mean_log_loss(rows, map) <= limit) return map;
  }
  return to;
}

// The epoch was the best of some on the same series, which lets chance improve the likelihood of validation
// by up to their logarithm. What is less than that better than class frequencies is partly trusted.
Affine as_far_as_trusted(const Scored& rows, const Affine& fit, const Affine& frequencies, int64_t epochs) {
  const double gain = rows.series * (mean_log_loss(rows, frequencies) - mean_log_loss(rows, fit));
  const double luck = std::log(static_cast<double>(std::max<int64_t>(epochs, 1)));
  if (gain >= luck && gain > 0) return fit;
  return between(frequencies, fit, std::max(gain / std::max(luck, 1e-9), kSmallestShare));
}

Calibration calibration_of(const Affine& map, int64_t outputs) {
  Calibration out = {.scale = std::exp(map.log_scale)};
  // rounding of the way from and to the logarithm
  if (std::abs(map.log_scale) < 1e-12) out.scale = 1;
  if (!map.bias.any().item<bool>()) return out;
  const Tensor bias = outputs == 1 ? map.bias.slice(0, 1) - map.bias.slice(0, 0, 1) : map.bias;
  out.bias.assign(bias.data_ptr<double>(), bias.data_ptr<double>() + outputs);
  return out;
}

}  // namespace

Tensor calibrated(const Tensor& outputs, const Calibration& calibration) {
  if (calibration.is_identity() || !outputs.defined()) return outputs;
  const Tensor scaled = outputs.to(at::kDouble) * calibration.scale;
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
  const Affine frequencies = {-INFINITY, (smoothed / smoothed.sum()).log()},
               identity = {0, at::zeros({classes}, at::kDouble)};
  const double before = mean_log_loss(rows, identity);
  const bool biases = options.rule == CalibrationRule::Automatic && classes <= kMostBiases;
  const Fitted fitted = biases ? Fitted::ScaleAndBias : Fitted::Scale;
  // the half observation may ask for more
  const Affine map = first_not_worse(rows, fit(rows, fitted), identity, before);
  const Affine trusted = as_far_as_trusted(rows, map, frequencies, options.epochs);
  return calibration_of(first_not_worse(rows, trusted, map, before), validation.outputs.size(1));
}

}  // namespace fastweights
