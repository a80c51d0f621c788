#include <fastweights/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/serialize.h>

#include <cstdio>

using namespace fastweights;

/// A fast weight programmer as one layer of a larger torch network: irregular series of two classes,
/// separated by a network of which the first layer reads the series.
int main() {
  torch::manual_seed(1);
  std::vector<Tensor> times, values;
  for (int64_t i = 0; i < 24; ++i) {
    const Tensor t = at::cumsum(at::rand({12}, at::kDouble) + 0.1, 0);
    const double frequency = i % 2 == 0 ? 1.0 : 2.0;
    times.push_back(t);
    values.push_back(at::stack({at::sin(frequency * t), at::cos(frequency * t)}, 1).to(at::kFloat));
  }
  const RaggedSeries series = ragged(times, values);
  const Tensor classes = at::arange(24, at::kLong).remainder(2);  // [B]

  const auto make_net = [] {
    return torch::nn::Sequential(
        SeriesModule(ModelConfig{
            .channels = 2,
            .outputs = 8,
            .architecture = FastWeights{.drive = Drive::DerivativeKeys, .hidden_size = 16, .heads = 4}}),
        torch::nn::ReLU(), torch::nn::Linear(8, 2));
  };
  torch::nn::Sequential net = make_net();
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-2));
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    adam.zero_grad();
    const Tensor loss = at::cross_entropy_loss(net->forward(series), classes);
    loss.backward();
    adam.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }

  // saved and loaded by LibTorch
  net->eval();
  torch::save(net, "consumer.pt");
  torch::nn::Sequential again = make_net();
  torch::load(again, "consumer.pt");
  again->eval();
  std::remove("consumer.pt");
  const at::NoGradGuard no_grad;
  const bool same = net->forward(series).equal(again->forward(series));
  std::printf("loss %.4f -> %.4f, %zu parameters by name, %s after loading\n", first, last,
              net->named_parameters().size(), same ? "the same outputs" : "OTHER OUTPUTS");
  return same && last < 0.5 * first && net->named_parameters().contains("0.layers.0.input.weight") ? 0 : 1;
}
