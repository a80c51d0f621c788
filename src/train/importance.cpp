#include "train/importance.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fastweights {
namespace {

// gradients jump where a unit of a feed-forward layer switches on, so more nodes help only in proportion
constexpr int kNodes = 48;
// rows of the copies of a series that are computed at once
constexpr int64_t kRowsAtOnce = 20'000;

struct Quadrature {
  std::vector<double> nodes, weights;  // on [0, 1]
};

// Gauss and Legendre's, of the cube root of the fraction: models that normalise their values change most next
// to the baseline. The nodes are roots of the Legendre polynomial, by Newton's method
Quadrature path_quadrature(int count) {
  Quadrature rule;
  for (int i = 1; i <= count; ++i) {
    double x = std::cos(std::numbers::pi * (i - 0.25) / (count + 0.5)), slope = 1;
    for (int step = 0; step < 50; ++step) {
      double last = 1, p = x;
      for (int k = 2; k <= count; ++k) {
        const double next = ((2 * k - 1) * x * p - (k - 1) * last) / k;
        last = p;
        p = next;
      }
      slope = count * (x * p - last) / (x * x - 1);
      const double move = p / slope;
      x -= move;
      if (std::abs(move) < 1e-15) break;
    }
    const double root = (1 - x) / 2;
    rule.nodes.push_back(root * root * root);
    rule.weights.push_back(3 * root * root / ((1 - x * x) * slope * slope));
  }
  return rule;
}

// which output, and how it is called
struct Target {
  int64_t index = 0;
  std::string name;
};

Target target_of(const TrainedModel& trained, const Tensor& outputs) {
  if (trained.task.kind == TaskKind::Regression) return {0, trained.preparation.targets[0]};
  const int64_t guess = predicted_classes(class_probabilities(outputs), trained.threshold)[0].item<int64_t>();
  return {guess, "log-odds of " + trained.preparation.classes[static_cast<size_t>(guess)]};
}

// [N] in the units of the name
Tensor value_of(const TrainedModel& trained, const Tensor& outputs, const Target& target) {
  if (trained.task.kind == TaskKind::Regression) {
    const Scale& scale = trained.preparation.target_scales[0];
    return outputs.select(1, 0).to(at::kDouble) * scale.deviation + scale.mean;
  }
  // one output for two classes
  if (outputs.size(1) == 1) return target.index == 1 ? outputs.select(1, 0) : -outputs.select(1, 0);
  std::vector<int64_t> others;
  for (int64_t k = 0; k < outputs.size(1); ++k) {
    if (k != target.index) others.push_back(k);
  }
  return outputs.select(1, target.index) -
         outputs.index_select(1, at::tensor(others, at::kLong)).logsumexp(1);
}

// copies of a series between the baseline (0) and itself (1)
class Path {
 public:
  Path(const TrainedModel& trained, const PreparedData& data, int64_t sample)
      : trained_(trained), data_(data), sample_(sample) {}

  Batch at(const std::vector<double>& fractions) const {
    Batch batch = make_batch(data_, trained_.preparation, trained_.task,
                             std::vector<int64_t>(fractions.size(), sample_), /*seed=*/1);
    Tensor& all = batch.input.series.values;  // [copies L, model channels], the data's channels last
    const int64_t channels = data_.values.size(1), copies = static_cast<int64_t>(fractions.size());
    const Tensor factors = at::tensor(fractions, at::kDouble)
                               .to(all.scalar_type())
                               .repeat_interleave(all.size(0) / copies)
                               .unsqueeze(1);  // [copies L, 1]
    const Tensor own = all.slice(1, all.size(1) - channels);
    own.mul_(factors);
    return batch;
  }

 private:
  const TrainedModel& trained_;
  const PreparedData& data_;
  int64_t sample_;
};

// [L, C]: of a single row the model sees two, which are the same observation
Tensor on_rows(const Tensor& found, int64_t rows) {
  return found.size(0) == rows ? found : found.sum(0, /*keepdim=*/true);
}

}  // namespace

std::optional<Importance> importance_of(const TrainedModel& trained, const PreparedData& data,
                                        int64_t sample) {
  const bool regression = trained.task.kind == TaskKind::Regression;
  if (!regression && trained.task.kind != TaskKind::Classification) return std::nullopt;
  const Path path(trained, data, sample);
  Importance found;
  Target target;
  {
    const at::NoGradGuard no_grad;
    const Tensor outputs = trained.model.forward(path.at({1, 0}).input).outputs;
    target = target_of(trained, outputs);
    const Tensor ends = value_of(trained, outputs, target).to(at::kDouble);
    found.of = target.name;
    found.output = ends[0].item<double>();
    found.baseline = ends[1].item<double>();
  }
  const int64_t rows = data.offsets[sample + 1].item<int64_t>() - data.offsets[sample].item<int64_t>();
  const int64_t first = data.offsets[sample].item<int64_t>();
  const Tensor series = data.values.slice(0, first, first + rows).to(at::kDouble);  // [L, C]
  const Quadrature rule = path_quadrature(kNodes);
  const auto at_once = static_cast<size_t>(std::clamp<int64_t>(kRowsAtOnce / rows, 1, kNodes));
  Tensor sum = at::zeros_like(series);
  for (size_t from = 0; from < rule.nodes.size(); from += at_once) {
    const size_t to = std::min(from + at_once, rule.nodes.size());
    const auto part = [&](const std::vector<double>& list) {
      return std::vector<double>(list.begin() + static_cast<int64_t>(from),
                                 list.begin() + static_cast<int64_t>(to));
    };
    Batch batch = path.at(part(rule.nodes));
    Tensor& values = batch.input.series.values;
    values = values.detach().requires_grad_(true);
    const at::AutoGradMode record(true);
    const Tensor outputs = trained.model.forward(batch.input).outputs;
    if (!outputs.requires_grad()) return std::nullopt;
    const Tensor weights = at::tensor(part(rule.weights), at::kDouble);
    (value_of(trained, outputs, target).to(at::kDouble) * weights)
        .sum()
        .backward({}, false, false, {{values}});
    if (!values.grad().defined()) return std::nullopt;
    const Tensor own = values.grad().slice(1, values.size(1) - series.size(1)).to(at::kDouble);
    const auto copies = static_cast<int64_t>(to - from);
    sum += on_rows(own.reshape({copies, own.size(0) / copies, own.size(1)}).sum(0), rows);
  }
  found.values = at::where(series.isnan(), at::zeros_like(series), sum * series);
  return found;
}

}  // namespace fastweights
