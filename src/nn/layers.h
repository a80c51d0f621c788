#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "fastweights/control.h"
#include "fastweights/tensor.h"

/// Plain layers, of a value alone (`Tensor`) or of a signal and its time derivative by the chain rule
/// (`Samples`, whose derivative may be undefined).

namespace fastweights::nn {

inline constexpr double kLayerNormEpsilon = 1e-5;

struct Linear {
  Tensor weight;  // [O, I]
  Tensor bias;    // [O]
};

struct LayerNorm {
  Tensor weight;  // [d]
  Tensor bias;    // [d]
};

/// x + out(relu(in(norm(x))))
struct FeedForward {
  LayerNorm norm;
  Linear in, out;
};

/// Dropout masks of a training pass; undefined: no dropout.
struct FeedForwardMasks {
  Tensor hidden;  // [R, F]
  Tensor output;  // [R, d]
};

/// x W^T + b; a layer may have no bias.
Tensor linear(const Linear& layer, const Tensor& x, Products products = Products::Fast);
Samples linear(const Linear& layer, const Samples& x, Products products);
Tensor layer_norm(const LayerNorm& layer, const Tensor& x);
Samples layer_norm(const LayerNorm& layer, const Samples& x);
/// Over the last dimension.
Samples softmax(const Samples& x, Products products);
Samples feed_forward(const FeedForward& layer, const Samples& x, Products products,
                     const FeedForwardMasks& masks = {});

/// With No, the bias of a layer is undefined.
enum class Bias { No, Yes };

using NamedParameters = std::vector<std::pair<std::string, Tensor>>;

/// Moves the parameters in place, so that layers keep them, into one contiguous tensor on the device: [P].
Tensor move_parameters(const NamedParameters& parameters, const at::Device& device);

/// Makes layers with PyTorch's initial values and records their parameters by name, in order.
class ParameterMaker {
 public:
  ParameterMaker(uint64_t seed, at::ScalarType type) : random_(seed), type_(type) {}

  Linear linear(const std::string& name, int64_t inputs, int64_t outputs, Bias bias = Bias::Yes);
  /// Uniform between -bound and bound.
  Tensor uniform(const std::string& name, at::IntArrayRef shape, double bound);
  LayerNorm layer_norm(const std::string& name, int64_t size);
  FeedForward feed_forward(const std::string& name, int64_t size, int64_t hidden);
  const NamedParameters& parameters() const { return parameters_; }

 private:
  Tensor add(const std::string& name, Tensor value);

  Random random_;
  at::ScalarType type_;
  NamedParameters parameters_;
};

}  // namespace fastweights::nn
