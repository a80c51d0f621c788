#include <fastweights/fastweights.h>
#include <fastweights/tools.h>
#include <fastweights/train.h>

#include <cmath>
#include <cstdio>
#include <numbers>

using namespace fastweights;

struct Spirals {
  RaggedSeries series;
  Tensor labels;  // [B]: 0 anticlockwise, 1 clockwise
};

/// Synthetic data: noisy spirals at irregular times, of different lengths, three of ten numbers missing.
Spirals synthetic_spirals(int64_t samples) {
  const Tensor labels = at::randint(2, {samples}, at::kLong);
  std::vector<Tensor> times, values;
  for (int64_t b = 0; b < samples; ++b) {
    const int64_t length = 12 + b % 9;                                                    // L
    const Tensor t = at::cumsum(at::rand({length}, at::kDouble) + 0.1, 0);                // [L]
    const Tensor angle = (1 - 2 * labels[b]) * t + 2 * std::numbers::pi * at::rand({1});  // [L]
    const Tensor circle = at::stack({at::cos(angle), at::sin(angle)}, 1);                 // [L, C]
    const Tensor x = (1 + 0.1 * t).unsqueeze(1) * circle + 0.5 * at::randn({length, 2});  // [L, C]
    times.push_back(t);
    values.push_back(x.masked_fill(at::rand({length, 2}) < 0.3, NAN));
  }
  return {ragged(times, values), labels};
}

/// Share of series whose largest output is the right one.
double accuracy(const Model& model, const Spirals& data) {
  const Tensor outputs = model.forward({.series = data.series}).outputs;  // [B, O]
  return (outputs.argmax(1) == data.labels).to(at::kDouble).mean().item<double>();
}

/// Which way round does a spiral go? Trains a model, tries it on other series, saves it and loads it again.
int main() {
  at::manual_seed(1);
  const Spirals held_out = synthetic_spirals(200);

  // keys from x', values from x: W(t) collects how the position and its change belong together
  Model model({.channels = 2,
               .outputs = 2,
               .architecture = FastWeights{.drive = Drive::DerivativeKeys, .hidden_size = 16}});
  Adam adam(model.parameter_tensors(), {.learning_rate = 1e-2});
  std::printf("%lld parameters\n", static_cast<long long>(model.parameter_count()));
  for (int step = 1; step <= 40; ++step) {
    const Spirals batch = synthetic_spirals(32);
    const Tensor outputs = model.forward({.series = batch.series}).outputs;  // [B, O]
    const Tensor loss = at::cross_entropy_loss(outputs, batch.labels);
    adam.step(gradients(loss, model.parameter_tensors()));
    if (step == 1 || step % 10 == 0) std::printf("step %2d  loss %.3f\n", step, loss.item<double>());
  }

  save_model("spirals.safetensors", model);
  const double reached = accuracy(load_model("spirals.safetensors"), held_out);
  std::printf("%.1f %% of %lld held-out series are right\n", 100 * reached,
              static_cast<long long>(held_out.series.samples()));
  return reached > 0.9 ? 0 : 1;
}
