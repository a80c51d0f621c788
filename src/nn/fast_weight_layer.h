#pragma once

#include <optional>

#include "fastweights/rule.h"
#include "nn/layers.h"

/// One layer of fast weights: a slow net that programs W, and a query that reads it.
///
///     p = norm(input(u))             u, w = x or x', as the drive says
///     [k, v, b] = program(p)       one block per head; or [k, b], and v = value(w)
///     dW/dt = rule(k, v, beta, W)
///     q = softmax(query(p)),  y = W q
///
/// R is the number of rows: samples in a vector field, outputs in a readout.

namespace fastweights::nn {

/// What all layers of a model share.
struct Wiring {
  Rule rule;
  Drive drive = Drive::X;
  LearningRate learning_rate = LearningRate::Sigmoid;
  ValueActivation value_activation = ValueActivation::Tanh;
  Read read = Read::Plain;
  int64_t heads = 1, key_width = 1, value_width = 1;
  Products products = Products::Fast;

  int64_t query_width() const { return read == Read::Plain ? key_width : value_width; }
  /// Of y, all heads together.
  int64_t read_width() const { return heads * (read == Read::Plain ? value_width : key_width); }
};

struct FastWeightLayer {
  std::optional<Linear> input;  // C -> d; first layer only
  LayerNorm norm;
  Linear program;                       // d -> H (K + V + 1), or H (K + 1) where `value` projects the values
  std::optional<Linear> value;          // C -> H V
  std::optional<LayerNorm> value_norm;  // H V
  std::optional<Linear> value_out;      // H V -> H V
  Linear query;                         // d -> H K
  std::optional<FeedForward> ff;        // to the next layer
};

enum class ValueNorm { No, Yes };

struct LayerSizes {
  int64_t inputs;  // of this layer
  int64_t hidden;  // d, or 0 for a layer without an input projection
  ValueNorm value_norm = ValueNorm::No;
  int64_t ff_hidden = 0;  // 0: no layer follows
};

FastWeightLayer make_layer(const std::string& name, const LayerSizes& sizes, const Wiring& wiring,
                           ParameterMaker& make);

/// Keys, values and rates as they enter the rule.
struct Program {
  Tensor k;     // [R, H, K]
  Tensor v;     // [R, H, V]
  Tensor beta;  // [R, H, 1]
};

/// The signal of the keys and the query, by drive: x or x'.
const Tensor& key_input(Drive drive, const Samples& x);
const Tensor& value_input(Drive drive, const Samples& x);
bool needs_derivative(Drive drive);

/// x: value and derivative [R, C]. `value_mask` [R, H, V] is a dropout mask, or undefined.
Program program(const FastWeightLayer& layer, const Wiring& wiring, const Samples& x,
                const Tensor& value_mask);

/// From the slow net's projections [R, H, K + V + 1] to what enters the rule.
Program split_program(const Tensor& projections, const Wiring& wiring);

/// A query [R, H, K] and its encoded input [R, d] (for residual connections), each with its derivative if u
/// has one.
struct Query {
  Samples q;
  Samples encoded;
};
Query query(const FastWeightLayer& layer, const Wiring& wiring, const Samples& u);

/// W q or W^T q, heads side by side: [R, H, V, K] and [R, H, K] to [R, H V].
Tensor read(const Wiring& wiring, const Tensor& w, const Tensor& q);

}  // namespace fastweights::nn
