#include "fastweights/tools.h"

#include <cstdio>

#include "commands.h"

namespace fastweights::cli {
namespace {

void print_case(const SelftestResult& result) {
  std::printf("%-6s %-86s error %8.1e  allowed %7.0e\n", result.passed() ? "ok" : "FAILED",
              result.name.c_str(), result.error, result.tolerance);
  if (!result.passed()) std::printf("       allowed because: %s\n", result.reason.c_str());
  std::fflush(stdout);
}

}  // namespace

void add_selftest(CLI::App& program, Session& session) {
  program
      .add_subcommand("selftest",
                      "Compare the fast code with its plain definitions on this machine, one line per case")
      ->callback([&session] {
        int64_t failed = 0, total = 0;
        selftest([&](const SelftestResult& result) {
          print_case(result);
          ++total;
          if (!result.passed()) ++failed;
        });
        std::printf("\n%lld of %lld cases passed\n", static_cast<long long>(total - failed),
                    static_cast<long long>(total));
        session.exit_status = failed > 0 ? 1 : 0;
      });
}

}  // namespace fastweights::cli
