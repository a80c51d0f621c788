#include <memory>

#include "commands.h"
#include "scan_bench.h"

namespace fastweights::cli {

void add_bench(CLI::App& program, Session& session) {
  auto settings = std::make_shared<bench::ScanBenchSettings>();
  CLI::App* app = program.add_subcommand(
      "bench",
      "Time training and inference of the paper's sizes against the plain definition on this machine");
  bench::add_scan_bench_options(*app, *settings);
  app->footer(
      "Shapes: E EigenWorms, S Speech Commands, P sepsis, M one series of a million windows; random data.\n"
      "Example:\n  fastweights bench --shape P --tiny --repeat 1");
  app->callback([settings, &session] { session.exit_status = bench::run_scan_bench(*settings); });
}

}  // namespace fastweights::cli
