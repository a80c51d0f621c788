#include <fastweights/fastweights.h>
#include <fastweights/tools.h>
#include <fastweights/train.h>

#include <cstdio>

using namespace fastweights;

struct Averages {
  RaggedSeries series;
  Tensor targets;  // [N, 1]: one for each time of each series
};

/// Synthetic data: noise at irregular times. The target is its decaying average dm/dt = x - m, which begins
/// at 0; between observations x keeps its last value.
Averages synthetic_averages(int64_t samples) {
  std::vector<Tensor> times, values, targets;
  for (int64_t b = 0; b < samples; ++b) {
    const int64_t length = 10 + b % 7;                          // L
    const Tensor gaps = at::rand({length}, at::kDouble) + 0.1;  // [L]
    const Tensor x = at::randn({length}, at::kDouble);          // [L]
    std::vector<double> m = {0};
    for (int64_t n = 1; n < length; ++n) {
      const double kept = at::exp(-gaps[n]).item<double>();
      m.push_back(kept * m.back() + (1 - kept) * x[n - 1].item<double>());
    }
    times.push_back(at::cumsum(gaps, 0));
    values.push_back(x.unsqueeze(1));
    targets.push_back(at::tensor(m, at::kDouble).unsqueeze(1));
  }
  return {ragged(times, values), at::cat(targets, 0).to(at::kFloat)};
}

/// One output for each observation. A signal that holds its last value does not look ahead, except before the
/// first observation of a channel; here every series starts with one.
int main() {
  at::manual_seed(1);
  Model model({.channels = 1,
               .outputs = 1,
               .architecture = FastWeights{
                   .control = {.path = Hold{}}, .hidden_size = 16, .initial = InitialWeights::Zero}});
  const auto error = [&](const Averages& batch) {
    // outputs at every time of the series
    const RaggedTimes requested = {batch.series.times, batch.series.offsets};
    const ModelOutput output = model.forward({.series = batch.series, .output_times = requested});
    return at::mse_loss(output.outputs, batch.targets);  // outputs [N, 1]
  };

  const Averages held_out = synthetic_averages(100);
  const double before = error(held_out).item<double>();
  Adam adam(model.parameter_tensors(), {.learning_rate = 1e-2});
  for (int step = 1; step <= 60; ++step) {
    const Tensor loss = error(synthetic_averages(32));
    adam.step(gradients(loss, model.parameter_tensors()));
    if (step % 15 == 0) std::printf("step %2d  squared error %.4f\n", step, loss.item<double>());
  }
  const double after = error(held_out).item<double>(), variance = held_out.targets.var().item<double>();
  std::printf("held out: %.4f before, %.4f after; always saying the mean: %.4f\n", before, after, variance);
  return after < 0.2 * variance && after < 0.2 * before ? 0 : 1;
}
