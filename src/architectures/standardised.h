#pragma once

#include "fastweights/tensor.h"

/// Standardised features, in blocks of columns, so that no copy of all of them in float64 is made.

namespace fastweights {

class Standardised {
 public:
  /// [n, F]; a feature that does not vary is only centred.
  explicit Standardised(const Tensor& features);

  /// Products of other features [m, F], standardised alike, with these: [m, n] float64.
  Tensor products(const Tensor& other) const;
  /// The linear map of raw features, sum over series i of a_i times the standardised features of i, for
  /// coefficients a [n, O]: weight [O, F] and bias [O], float64.
  std::pair<Tensor, Tensor> linear_map(const Tensor& coefficients) const;

 private:
  Tensor block(const Tensor& features, int64_t first) const;

  Tensor features_, mean_, deviation_;  // [n, F], [F], [F]
};

}  // namespace fastweights
