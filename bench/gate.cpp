#include "gate.h"

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cstdio>

#include "fastweights/tools.h"

namespace fastweights::bench {

int run_gated(int argc, char** argv) {
  // freed memory stays with the process, as it does in a program that goes on computing: a result of a
  // gigabyte would otherwise be fetched from the system again in every repetition, which takes longer than to
  // compute it
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  set_threads(0);
  int failed = 0;
  for (const SelftestResult& result : selftest()) {
    if (result.passed()) continue;
    std::printf("FAILED %s: error %g, allowed %g\n", result.name.c_str(), result.error, result.tolerance);
    ++failed;
  }
  if (failed > 0) return 1;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const Environment found = environment();
  benchmark::AddCustomContext("fastweights", found.version);
  benchmark::AddCustomContext("libtorch", found.libtorch);
  benchmark::AddCustomContext("processor", found.processor);
  benchmark::AddCustomContext("threads", std::to_string(found.threads));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace fastweights::bench
