#pragma once

#include "fastweights/tensor.h"

namespace fastweights {

/// A time of evaluation: one for all samples, or one for each.
class Time {
 public:
  Time(double value) : value_(value) {}  // NOLINT: a plain number is a time
  /// [] for all samples or [B] for each, float64; differentiable if the tensor is.
  explicit Time(Tensor tensor);

  bool shared() const { return !tensor_.defined() || tensor_.dim() == 0; }
  /// The time as a number; only for a shared one.
  double value() const;
  /// [] or [B], float64
  Tensor tensor() const;
  /// Shape and type such that it broadcasts against y: [] or [B, 1, ...]
  Tensor like(const Tensor& y) const;
  /// Whether the time is more than a number: one per sample, or differentiable.
  bool has_tensor() const { return tensor_.defined(); }

 private:
  double value_ = 0;
  Tensor tensor_;
};

Time operator+(const Time& a, const Time& b);
Time operator-(const Time& a, const Time& b);
Time operator*(double factor, const Time& t);

/// The next representable time above or below; gradients pass through unchanged.
Time just_after(const Time& t);
Time just_before(const Time& t);

}  // namespace fastweights
