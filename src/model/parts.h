#pragma once

#include "fastweights/network.h"
#include "model/programmer_config.h"
#include "nn/fast_weight_layer.h"

/// What a model is made of.

namespace fastweights {

struct ModelParts {
  ProgrammerConfig config;
  nn::Wiring wiring;
  std::vector<nn::FastWeightLayer> layers;  // none for a tensor map
  std::vector<nn::Linear> map;              // tensor map: from W to [V K, C]
  std::optional<nn::Linear> first;          // of the first observation
  std::optional<nn::Linear> static_hidden, static_out;
  std::optional<nn::Linear> out;  // read width -> d
  nn::FeedForward ff;
  nn::Linear head;
  NamedParameters parameters;
  Tensor flat = {};          // on a GPU: all of them in one piece of memory, in their order
  int64_t device_limit = 0;  // on a GPU: bytes that steps may take unless solver.memory_limit says otherwise

  at::ScalarType type() const { return head.weight.scalar_type(); }
  at::Device device() const { return head.weight.device(); }
  int64_t layer_count() const { return config.layers; }
  /// [rows, L, H, V, K]
  std::vector<int64_t> weight_shape(int64_t rows) const;
  /// The tensors that the vector field reads.
  std::vector<Tensor> field_parameters() const;
};

ModelParts make_parts(const ProgrammerConfig& config, const ModelOptions& options);

/// Dropout masks of a training pass; undefined where nothing is dropped.
struct Masks {
  std::vector<Tensor> values;  // per layer [B, H, V]
  Tensor read;                 // [M, d]
  nn::FeedForwardMasks ff;     // [M, F], [M, d]
};

/// Moves all parameters to a GPU, next to each other.
void move_parts(ModelParts& parts, const at::Device& device);

Masks make_masks(const ModelParts& parts, const PassOptions& options, int64_t samples, int64_t rows);

/// W(t0) [B, L, H, V, K]: x is the signal at t0 (value and derivative [B, C]), first its first observation.
Tensor initial_weights(const ModelParts& parts, const Samples& x, const Tensor& first,
                       const Tensor& static_features, const Masks& masks);

/// dW/dt [B, L, H, V, K] of all layers, each reading the one below.
Tensor weights_slope(const ModelParts& parts, const Samples& x, const Tensor& w, const Masks& masks);

/// The query of a layer that another one stands upon, with its derivative where the drive needs x'.
nn::Query layer_query(const ModelParts& parts, int64_t l, const Samples& x);

/// x of the next layer from what this layer's query read, y [R, H V].
Samples next_input(const ModelParts& parts, int64_t l, const nn::Query& query, Samples y);

/// Outputs [M, O] from the signal at the query's time [M, C] and W [M, L, H, V, K]; `samples` [M] is
/// the sample of each row.
Tensor readout(const ModelParts& parts, const Samples& x, const Tensor& w, const Tensor& samples,
               const Masks& masks);

}  // namespace fastweights
