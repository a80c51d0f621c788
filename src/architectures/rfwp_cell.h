#pragma once

#include "architectures/baseline.h"
#include "fastweights/rule.h"
#include "nn/fast_weight_layer.h"

/// One row of a recurrent fast weight programmer. Of what was observed x, a state h and fast weights W:
///
///     [k, v, b] = program(merge([norm(input(x)), h])),   W+ = W + rule(k, v, sigmoid(b), W)
///     q = softmax(query(query_norm(query_input(x)))),      h+ = ff(out(W+ q))
///
/// R is the number of rows that are written or read together, each of H heads is d / H wide.

namespace fastweights {

/// How the state is merged: as published, Hebb's rule takes its tanh and others take it as it is.
enum class MergedState { Raw, Tanh };

struct RfwpCell {
  nn::Wiring wiring;
  MergedState merged = MergedState::Raw;
  nn::Linear input;  // x -> d
  nn::LayerNorm norm;
  nn::Linear merge;    // 2 d -> d
  nn::Linear program;  // d -> H (2 d / H + 1)
  nn::Linear query_input;
  nn::LayerNorm query_norm;
  nn::Linear query;
  nn::Linear out;
  nn::FeedForward ff;

  /// Projections that depend on x alone, for all rows at once.
  struct Projections {
    Tensor merged;  // [R, d]
    Tensor q;       // [R, H, d / H]
  };
  Projections project(const Tensor& x) const;

  /// W+ [R, H, V, K] from Projections::merged, h [R, d] and W.
  Tensor write(const Tensor& projected, const Tensor& h, const Tensor& w) const;
  /// h+ [R, d] from Projections::q and W+.
  Tensor read(const Tensor& q, const Tensor& w) const;
};

/// How a built-in rule merges the state, and the widths of its heads.
MergedState published_merging(const Rule& rule);
nn::Wiring rfwp_wiring(const Rule& rule, int64_t size, int64_t heads);

struct RfwpSizes {
  int64_t inputs, size, heads, feed_forward;
};
RfwpCell make_rfwp_cell(const RfwpSizes& sizes, const Rule& rule, nn::ParameterMaker& make);

}  // namespace fastweights
