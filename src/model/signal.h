#pragma once

#include "fastweights/model.h"
#include "model/shared_options.h"

/// The signal x(t), x'(t) of a batch on the model's own clock: the series' time divided by time_unit, a count
/// of windows, or the parameter of a rectilinear path. Times and knots are on the CPU; values are where the
/// signal was made.

namespace fastweights {

class Signal {
 public:
  /// The series is on the CPU and is checked there. On a GPU the path is made without gradients.
  Signal(const SharedOptions& config, const RaggedSeries& series, const at::Device& device = at::kCPU);

  /// Inside a vector field: a knot belongs to what follows it where the signal is constant between knots.
  Samples at(const Time& time) const;
  /// The same at many times: value and derivative [M, C].
  Samples inside(const RaggedTimes& times) const;
  /// At outputs, where a knot belongs to what came before: value and derivative [M, C].
  Samples sample(const RaggedTimes& times) const;

  /// From the time of the series to the model's clock: [M]
  Tensor clock(const RaggedTimes& times) const;

  const Control& control() const { return control_; }
  /// First and last time of each sample on the clock, [B].
  const Tensor& begin() const { return begin_; }
  const Tensor& end() const { return end_; }
  /// Knots on the clock, where steps end and where the signal may jump.
  RaggedTimes knots() const { return {control_.knots(), control_.offsets()}; }
  bool jumps() const;
  /// Whether x(t) is constant between knots, and whether x'(t) is.
  bool piecewise_constant() const;
  bool piecewise_linear() const;
  /// x at the beginning: [B, C] of the control, or of the first row where the control is made of windows.
  const Tensor& first() const { return first_; }

 private:
  // times of the series and of the clock that belong together, in between on straight lines
  struct ClockMap {
    Tensor series, clock, offsets;
  };

  enum class Missing { None, Some };

  void make_path(const SharedOptions& config, const RaggedSeries& series);
  void make_hold(const SharedOptions& config, const RaggedSeries& series, Missing missing);
  void make_windows(const SharedOptions& config, const RaggedSeries& series, Missing missing);
  static Missing check_values(const SharedOptions& config, const RaggedSeries& series);
  template <typename Path>
  bool is() const {
    return std::holds_alternative<Path>(path_);
  }
  at::Device device() const { return control_.coefficients().device(); }

  ControlPath path_;
  double time_unit_;
  bool map_clock_ = false;
  ClockMap map_;
  Control control_;
  Tensor begin_, end_;  // [B]
  Tensor first_;        // [B, C]
};

}  // namespace fastweights
