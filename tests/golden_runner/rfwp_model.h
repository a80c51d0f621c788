#pragma once

#include <functional>
#include <optional>

#include "architectures/evolve.h"
#include "architectures/gru_cell.h"
#include "architectures/latent.h"
#include "architectures/rfwp_cell.h"
#include "architectures/row_memory.h"
#include "golden.h"

/// Environment models of the published code (group rfwp), built from the library's pieces: a state h and
/// perhaps fast weights W go from one decision to the next, and a decoder tells the environment's next state.

namespace fastweights::golden {

/// The file's parameters as leaves, by their published names.
class Parameters {
 public:
  explicit Parameters(GoldenFile& file);

  bool has(const std::string& name) const { return tensors_.contains(name); }
  Tensor tensor(const std::string& name);
  /// name.weight and, if there is one, name.bias.
  nn::Linear linear(const std::string& name);
  nn::LayerNorm layer_norm(const std::string& name);
  /// A block of layer_norm, ff_layers.0 and ff_layers.3.
  nn::FeedForward feed_forward(const std::string& name);
  /// Linear layers name.0, name.2, ..., with something in between.
  std::vector<nn::Linear> layers(const std::string& name);

  const std::map<std::string, Tensor>& all() const { return tensors_; }
  /// A parameter that no layer is made of, or "".
  std::string unused() const;

 private:
  std::map<std::string, Tensor> tensors_;
  std::set<std::string> used_;
};

struct RfwpState {
  Tensor h;  // [N, D]
  Tensor w;  // [N, H, d, d], undefined without fast weights
};

/// The state after a decision: data [N, S + A], gaps dt [N, 1], of which one at least is not zero.
using Step =
    std::function<RfwpState(const SolverConfig&, const Tensor& data, const RfwpState&, const Tensor& dt)>;
/// The first state's distribution from data [R, S + A], rows of each sample as offsets say.
using Encoder = std::function<Distribution(const Tensor& data, const Tensor& offsets)>;

struct EnvironmentModel {
  Step step;
  Encoder encode;  // empty: the first state is zero
  nn::Linear decoder;
  std::vector<nn::Linear> timer;  // tanhs in between; empty: no timer
  int64_t size = 0, heads = 0;    // heads 0: no fast weights
};

EnvironmentModel make_environment_model(GoldenFile& file, Parameters& parameters);

}  // namespace fastweights::golden
