#pragma once

/// A benchmark's numbers count only behind a green equivalence check in the same process.

namespace fastweights::bench {

/// Runs the selftest, then the benchmarks; a failed case is printed and ends the program before any timing.
int run_gated(int argc, char** argv);

}  // namespace fastweights::bench
