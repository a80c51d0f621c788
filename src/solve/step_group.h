#pragma once

#include <vector>

#include "fastweights/tensor.h"

namespace fastweights {

/// Samples that step together in an adaptive solve: one, or all of them.
struct StepGroup {
  double t = 0, dt = 0;
  std::vector<double> outputs;       // output times
  std::vector<double> stops, jumps;  // sorted
  size_t next_output = 0;
  std::vector<double> accepted;  // grid so far: t0, t1, ...
  bool finite = true;            // whether the last error estimate was finite
  bool failed = false;
  bool done() const { return failed || next_output >= outputs.size(); }
};

/// The next step that a group tries.
struct Attempt {
  double t1, dt;
  bool on_jump = false;
};

/// The next step of a group, cut at its next stop or jump; a finished group stays at its time.
Attempt next_attempt(const StepGroup& group);

/// The times [J] or [J, B] of one sample.
std::vector<double> column(const Tensor& times, int64_t sample);

/// The same in order, without the NaN that pad shorter columns; empty if undefined.
std::vector<double> sorted_column(const Tensor& times, int64_t sample);

}  // namespace fastweights
