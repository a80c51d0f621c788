#pragma once

#include "model/shared_options.h"

/// Checks of options that several architectures share.

namespace fastweights {

void check_at_least(const char* key, int64_t value, int64_t smallest);
void check_positive(const char* key, double value);
/// At least 0 and below 1.
void check_rate(const char* key, double value);
/// Layers, each of which has tensors of its own.
void check_layers(const char* key, int64_t layers, int64_t smallest);

/// A key and its value.
using SizeKey = std::pair<const char*, int64_t>;
/// Parameters, or other floating-point values that one model has, against what memory holds. The message
/// names the largest of the keys that they follow from.
void check_count(double count, const char* what, const std::vector<SizeKey>& keys);
/// Those that all architectures have, and further ones.
std::vector<SizeKey> size_keys(const SharedOptions& options, const std::vector<SizeKey>& more = {});

/// Sizes, dropout, time unit and control.
void check_shared(const SharedOptions& options);
/// Method, steps and gradients.
void check_solver(const SolverConfig& solver, const ControlConfig& control);
/// Baselines: no flow.
void check_plain_method(const SolverConfig& solver);
void check_field(int64_t hidden_size, int64_t layers);

}  // namespace fastweights
