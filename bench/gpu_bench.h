#pragma once

#include "scan_bench.h"

/// Training steps and inference of whole models on a GPU, timed by its own clock.

namespace fastweights::bench {

/// Prints a line per measurement; the status is 1 if a shape was not timed because its case failed.
int run_gpu_bench(const ScanBenchSettings& settings);

}  // namespace fastweights::bench
