#pragma once

#include "model/shared_options.h"

/// Checks of options that several architectures share.

namespace fastweights {

void check_at_least(const char* key, int64_t value, int64_t smallest);
void check_positive(const char* key, double value);
/// At least 0 and below 1.
void check_rate(const char* key, double value);
/// Parameters, or other floating-point values that one model has.
void check_count(double count, const char* what);

/// Sizes, dropout, time unit and control.
void check_shared(const SharedOptions& options);
/// Method, steps and gradients.
void check_solver(const SolverConfig& solver, const ControlConfig& control);
/// Baselines: no exact flow.
void check_plain_method(const SolverConfig& solver);
void check_field(int64_t hidden_size, int64_t layers);

}  // namespace fastweights
