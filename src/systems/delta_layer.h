#pragma once

#include "systems/system.h"

/// A layer of a delta net, which programmes fast weights row by row:
///
///     W_n = W_(n-1) + beta (v - W_(n-1) k) (x) k,   y = W_n q,   W_0 = 0

namespace fastweights {

/// y [R, H, D] from k, v, q [R, H, D] and beta [R, H]; rows of a sample stand one after another.
Tensor delta_reads(const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& q,
                   const Tensor& offsets);

/// x + out(y) with [q, k, v, b] = slow(norm(x)) of each head, softmax on q and k, sigmoid on b.
struct DeltaLayer {
  int64_t heads = 1;
  nn::LayerNorm norm;
  nn::Linear slow, out;  // without biases

  /// x [R, d]; offsets [B + 1] int64: rows of each sample.
  Tensor operator()(const Tensor& x, const Tensor& offsets) const;
};

}  // namespace fastweights
