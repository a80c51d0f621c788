#pragma once

#include "architectures/baseline.h"

/// First states that are drawn: a network predicts mean and variance of each entry, and the loss keeps them
/// near the prior, a standard normal distribution.

namespace fastweights {

struct Distribution {
  Tensor mean, log_variance;  // [B, d]

  /// mean + noise deviation, noise [B, d].
  Tensor at(const Tensor& noise) const { return mean + noise * deviation(); }
  Tensor deviation() const { return at::exp(0.5 * log_variance); }
  /// The divergence (Kullback and Leibler's) from the prior, a number: the mean over samples and dimensions.
  Tensor divergence() const;
};

/// From what an encoder says, through one hidden layer of tanhs: mean and logarithm of the variance.
struct LatentNet {
  nn::Linear hidden, out;

  Distribution operator()(const Tensor& encoded) const;
};
LatentNet make_latent_net(const std::string& name, int64_t inputs, int64_t size, nn::ParameterMaker& make);

/// First states [B, d]: drawn in training, sample after sample; otherwise the mean.
Tensor draw(const Distribution& distribution, const ForwardOptions& options);

}  // namespace fastweights
