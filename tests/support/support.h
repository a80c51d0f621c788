#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "fastweights/tensor.h"

namespace fastweights::testing {

/// Uniform numbers in [-1, 1], float64, the same on every machine.
Tensor random(at::IntArrayRef shape, uint64_t seed);

/// Strictly increasing times with gaps between 0.1 and 1.1.
Tensor irregular_times(int64_t count, uint64_t seed);

/// Sets about this share of the entries to NaN.
Tensor with_missing(const Tensor& values, double share, uint64_t seed);

/// Largest difference relative to the largest expected value; infinite for NaN or other shapes.
double relative_error(const Tensor& got, const Tensor& expected);

/// Gradient of a number with respect to x by central differences, element by element. NaN entries of x are
/// left alone.
Tensor central_difference(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, double step = 1e-6);

/// Gradient of a number with respect to x by autograd.
Tensor autograd_gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);

/// The message of the exception that f throws, or "" if it throws none.
template <typename Exception = std::invalid_argument>
std::string error_message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace fastweights::testing
