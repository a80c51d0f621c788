#include <fastweights/fastweights.h>
#include <fastweights/tools.h>
#include <fastweights/train.h>

#include <cstdio>

using namespace fastweights;

/// A delta rule that forgets: dW/dt = beta (v - W k) (x) k - 0.1 W
/// with k [..., K], v [..., V], beta [..., 1] and W [..., V, K].
Rule delta_with_decay() {
  return {.name = "delta_with_decay",
          .key = KeyForm::Softmax,   // k arrives as softmax(k)
          .value = ValueForm::Tanh,  // v arrives as tanh(v)
          .slope = [](const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& w) {
            return outer_product(beta * (v - matvec(w, k)), k) - 0.1 * w;
          }};
}

/// A rule of one's own in a model: its gradients are checked, then the model is trained with it.
int main() {
  const std::vector<Rule> rules = {delta_with_decay()};
  const ModelConfig config = {
      .channels = 3,
      .outputs = 2,
      .architecture = FastWeights{.rule = "delta_with_decay", .hidden_size = 12, .heads = 3}};
  const RaggedSeries series = synthetic_series({.samples = 5, .length = 12, .channels = 3});

  // moves every parameter along random directions and compares differences with the gradient, in float64
  const Model checked(config, {.type = at::kDouble, .custom_rules = rules});
  bool correct = true;
  for (const GradcheckRow& row : gradcheck(checked, {.series = series}, random_loss(1))) {
    std::printf("%-25s gradient %8.2e  error %7.1e\n", row.name.c_str(), row.norm, row.errors[0]);
    correct = correct && row.errors[0] < 1e-6;
  }

  // learns by heart which of five series are which
  Model model(config, {.custom_rules = rules});
  const Tensor labels = at::tensor({0, 1, 1, 0, 1}, at::kLong);  // [B]
  Adam adam(model.parameter_tensors(), {.learning_rate = 1e-2});
  double loss = 0;
  for (int step = 0; step < 40; ++step) {
    const Tensor outputs = model.forward({.series = series}).outputs;  // [B, O]
    const Tensor entropy = at::cross_entropy_loss(outputs, labels);
    adam.step(gradients(entropy, model.parameter_tensors()));
    loss = entropy.item<double>();
  }
  std::printf("gradients %s, loss after 40 steps %.4f\n", correct ? "correct" : "WRONG", loss);
  return correct && loss < 0.1 ? 0 : 1;
}
