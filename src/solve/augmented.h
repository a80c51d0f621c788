#pragma once

#include <functional>
#include <vector>

#include "fastweights/solve.h"
#include "solve/adaptive.h"

/// The continuous adjoint as one differential equation.

namespace fastweights {

/// The state of the backward problem as one flat vector: gradient of time, y, gradient of y, gradients of
/// parameters.
struct Augmented {
  std::vector<int64_t> shape;  // of y
  int64_t size;                // elements of y
  std::vector<Tensor> parameters;

  Tensor pack(const Tensor& time, const Tensor& y, const Tensor& grad_y,
              const std::vector<Tensor>& grads) const;
  Tensor time(const Tensor& state) const { return state.select(0, 0); }
  Tensor y(const Tensor& state) const { return state.slice(0, 1, 1 + size).view(shape); }
  Tensor grad_y(const Tensor& state) const { return state.slice(0, 1 + size, 1 + 2 * size).view(shape); }
  std::vector<Tensor> grads(const Tensor& state) const;
  ErrorNorm norm(AdjointNorm kind) const;
};

enum class TimeGradient { Skip, Follow };

/// d/dt of the augmented state: f, and minus the products of the gradient of y with the derivatives of f.
Tensor augmented_slope(const Field& f, const Augmented& layout, const Time& t, const Tensor& state,
                       TimeGradient time_gradient);

/// A backward pass: outputs [T, ...], their gradients and the parameters to gradients of y0, of ts (undefined
/// if not required) and of each parameter.
using AdjointPass = std::function<std::vector<Tensor>(const Tensor& ys, const Tensor& grad_ys,
                                                      const std::vector<Tensor>& parameters)>;

}  // namespace fastweights
