#include "architectures/latent.h"

#include "base/random.h"
#include "tensor/device.h"

namespace fastweights {

Tensor Distribution::divergence() const {
  return (0.5 * (mean.square() + log_variance.exp() - 1 - log_variance)).mean();
}

Distribution LatentNet::operator()(const Tensor& encoded) const {
  const Tensor both = linear(out, at::tanh(linear(hidden, encoded)));  // [B, 2 d]: mean, log variance
  const int64_t d = both.size(1) / 2;
  return {both.narrow(1, 0, d), both.narrow(1, d, d)};
}

LatentNet make_latent_net(const std::string& name, int64_t inputs, int64_t size, nn::ParameterMaker& make) {
  const nn::Linear hidden = make.linear(name + ".hidden", inputs, inputs);
  return {hidden, make.linear(name + ".out", inputs, 2 * size)};
}

Tensor draw(const Distribution& distribution, const ForwardOptions& options) {
  if (options.mode == Mode::Evaluate) return distribution.mean;
  // dropout draws from the seed itself
  Random random(Random(options.seed).next());
  const Tensor noise = at::empty(distribution.mean.sizes(), at::kDouble);
  double* draws = noise.data_ptr<double>();
  for (int64_t i = 0; i < noise.numel(); ++i) draws[i] = random.normal();
  const Tensor& mean = distribution.mean;
  return distribution.at(on_device(noise.to(mean.scalar_type()), mean.device()));
}

}  // namespace fastweights
