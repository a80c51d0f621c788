#pragma once

#include "fastweights/solve.h"
#include "golden.h"

namespace fastweights::golden {

/// A field of the golden files with its parameters, and a count of how often it was called.
struct CountedField {
  Field field;
  std::map<std::string, Tensor> parameters;  // by their names in the file, without "param."
  std::shared_ptr<int64_t> calls = std::make_shared<int64_t>(0);

  std::vector<Tensor> parameter_list() const;
};

/// f(t, y) = W2 tanh(W1 [y, t] + b1) + b2
CountedField mlp_field(GoldenFile& file);

/// How far two correct programs may be apart with this method: rounding, but for order 8 with adaptive steps.
/// Its error estimate is near rounding level, so step sizes are noisy: golden/README.md has 8e-8 between two
/// versions of torchdiffeq for solutions, the files themselves 8e-7 for gradients. Ten times that.
double noise_of_solutions(const Method& method);
double noise_of_gradients(const Method& method);

/// The method of a torchdiffeq name: its tsit5 advances the solution of order 4.
Method torchdiffeq_method(const std::string& name, const GoldenFile& file);

}  // namespace fastweights::golden
