#pragma once

#include <optional>
#include <string>

#include "fastweights/trained_model.h"

namespace fastweights {

/// Integrated gradients of one output, at the end of a series, with respect to its observations. The baseline
/// has the same times and the same missing values; its observations are the scaled zero, which is the centre
/// of each channel in the training part.
struct Importance {
  std::string of = {};              ///< the output: log-odds of a class, or a target
  Tensor values = {};               // [L, C] float64; 0 where nothing was observed
  double output = 0, baseline = 0;  ///< values sum to their difference, up to the quadrature
};

/// Of the predicted class or the first target; absent for tasks without one output per series, and for models
/// without a gradient with respect to their data.
std::optional<Importance> importance_of(const TrainedModel& trained, const PreparedData& data,
                                        int64_t sample);

}  // namespace fastweights
