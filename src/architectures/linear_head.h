#pragma once

#include <optional>
#include <string>

#include "fastweights/tensor.h"

/// Linear heads on many features of few series, fitted through the products of all pairs of series.

namespace fastweights {

/// Features of series and what is to be predicted from them: classes, or targets.
struct HeadData {
  Tensor features;  // [n, F]
  Tensor classes;   // [n] int64, or undefined
  Tensor targets;   // [n, O], or undefined
};

/// outputs = weight x + bias
struct LinearHead {
  Tensor weight;     // [O, F] float64
  Tensor bias;       // [O] float64
  std::string note;  // on what was chosen
};

/// Ridge regression on standardised features, to -1 and 1 for classes (RidgeClassifierCV of scikit-learn).
/// The penalty, out of ten from 1e-3 to 1e3, has the least squared error when one series is left out. For
/// classes, the outputs are multiplied by the factor with the least log loss when one series is left out, so
/// that they are logits.
LinearHead ridge_head(const HeadData& train, int64_t outputs);

/// Logistic regression on standardised features, with a penalty of the squared weights. The penalty has the
/// least log loss on the validation data; without them, on every fifth series of each class.
LinearHead logistic_head(const HeadData& train, const std::optional<HeadData>& validation, int64_t outputs);

}  // namespace fastweights
