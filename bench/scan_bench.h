#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// Training steps and inference of whole models on the fused engine, against the definition in the same
/// process and on the same threads. A shape is timed only after a small case of the same model has passed.

namespace fastweights::bench {

struct ScanBenchSettings {
  std::vector<std::string> shapes;
  std::string device = "cpu";
  int repeat = 5;
  int64_t memory_limit = 0;
  std::string method = "rk4";
  int64_t definition_steps = 0;
  bool json = false, sweep = false, tiny = false;
};

void add_scan_bench_options(CLI::App& command, ScanBenchSettings& settings);

/// Prints a line per measurement; the status is 1 if a shape was not timed because its case failed.
int run_scan_bench(const ScanBenchSettings& settings);

}  // namespace fastweights::bench
