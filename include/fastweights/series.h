#pragma once

#include <vector>

#include "fastweights/tensor.h"

/// Batches of series, and times at which they are evaluated.

namespace fastweights {

/// A batch of series, each with its own times and its own length, one after another without padding.
/// Sample b owns the rows offsets[b] .. offsets[b + 1] - 1. NaN marks a missing value.
struct RaggedSeries {
  Tensor values;   // [N, C] float32 or float64
  Tensor times;    // [N] float64, strictly increasing within each sample
  Tensor offsets;  // [B + 1] int64, from 0 to N

  int64_t samples() const { return offsets.size(0) - 1; }
  int64_t channels() const { return values.size(1); }
};

/// Times for each sample, in the same layout.
struct RaggedTimes {
  Tensor times;    // [N] float64
  Tensor offsets;  // [B + 1] int64
};

/// One series per entry: times[b] is [L_b], values[b] is [L_b, C]. Differentiable with respect to the values.
RaggedSeries ragged(const std::vector<Tensor>& times, const std::vector<Tensor>& values);

/// A batch in which all series share their times: times [L], values [B, L, C] or [L, C].
RaggedSeries shared_times(const Tensor& times, const Tensor& values);

/// Checks shapes, types, offsets and times. The error message starts with `who` in brackets and names sample,
/// index and value.
void check_series(const RaggedSeries& series, const char* who, int64_t smallest_length = 1);

/// Checks that no value is infinite, and returns whether any is missing.
bool has_missing(const RaggedSeries& series, const char* who);

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
  /// Whether the time is a tensor, not a plain number: one per sample, or differentiable.
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
