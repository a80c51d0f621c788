#pragma once

#include "ops/scan/features.h"

namespace fastweights {

/// The definition, in LibTorch operations.
ScanOutput scan_reference(const ScanInput& input, const ScanOptions& options);

/// What scan_features computes with: keys, values and rates of every step.
ScanInput programme_reference(const ScanFeatures& input, const ProgrammeForms& forms);

}  // namespace fastweights
