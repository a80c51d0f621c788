#include <cstdio>

#include "fastweights/environment.h"
#include "scan_bench.h"

/// The same as 'fastweights bench', as a program of its own.

int main(int argc, char** argv) {
  namespace bench = fastweights::bench;
  try {
    bench::ScanBenchSettings settings;
    int threads = 0;
    CLI::App program(
        "Time training steps and inference of whole models on the fused engine and on its definition");
    bench::add_scan_bench_options(program, settings);
    program.add_option("--threads", threads, "threads to compute with; 0 takes all cores")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    CLI11_PARSE(program, argc, argv);
    fastweights::set_threads(threads);
    return bench::run_scan_bench(settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scan_bench: %s\n", error.what());
    return 1;
  }
}
