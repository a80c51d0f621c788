#pragma once

#include <vector>

#include "fastweights/tensor.h"

namespace fastweights {

/// Those that step together in an adaptive solve: one sample, or all of them.
struct StepGroup {
  double t = 0, dt = 0;
  std::vector<double> outputs;       // output times
  std::vector<double> stops, jumps;  // sorted
  size_t next_output = 0;
  std::vector<double> accepted;  // grid behind it: t0, t1, ...
  bool finite = true;            // whether the last error estimate was a number
  bool failed = false;
  bool done() const { return failed || next_output >= outputs.size(); }
};

/// What a group tries next.
struct Attempt {
  double t1, dt;
  bool on_jump = false;
};

/// The next step of a group, cut at its next stop or jump; a group that is done waits where it is.
Attempt next_attempt(const StepGroup& group);

/// The times [J] or [J, B] of one sample.
std::vector<double> column(const Tensor& times, int64_t sample);

/// The same in order, without the NaN that fill up the columns of samples that have fewer; none if undefined.
std::vector<double> sorted_column(const Tensor& times, int64_t sample);

}  // namespace fastweights
