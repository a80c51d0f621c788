#pragma once

#include "ops/scan/definition.h"

/// The definition for a whole batch: the same steps, with all samples that have step n side by side, so that
/// the number of LibTorch operations depends on the longest sample and not on their number. This is the
/// reference backend, and what `scan` falls back to where kernels refuse.

namespace fastweights {

ScanOutput grouped_scan(const ScanInput& input, const ScanOptions& options);

}  // namespace fastweights
