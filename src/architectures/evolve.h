#pragma once

#include "architectures/baseline.h"

/// States that evolve without input between observations: z' = f(z), f a network of tanhs.

namespace fastweights {

struct FieldNet {
  std::vector<nn::Linear> layers;

  Tensor operator()(const Tensor& z) const;
  std::vector<Tensor> parameters() const;
};
FieldNet make_field_net(const std::string& name, const FieldConfig& config, int64_t size,
                        nn::ParameterMaker& make);

/// z [R, d] after the time dt [R, 1] has passed for each row, by one step or as the solver says; its gradient
/// is the solver's, too. Adaptive steps with joint error control are one solve for all rows, which depend on
/// each other then.
Tensor evolve(const SolverConfig& solver, const FieldNet& field, const Tensor& z, const Tensor& dt);

}  // namespace fastweights
