#include <cstdio>

#include "commands.h"
#include "fastweights/environment.h"

namespace fastweights::cli {
namespace {

void line(const char* name, const std::string& value) { std::printf("%-16s %s\n", name, value.c_str()); }

void print_info() {
  const Environment found = environment();
  line("fastweights", found.version);
  line("compiler", found.compiler);
  line("LibTorch", found.libtorch);
  line("BLAS", found.blas);
  line("processor", found.processor);
  line("cores", std::to_string(found.cores));
  line("threads", std::to_string(found.threads));
  line("instructions", found.instruction_set);
  std::printf("\nbackends\n");
  for (const BackendInfo& backend : found.backends) {
    std::printf("  %-14s %-9s %s\n", backend.name.c_str(), backend.usable ? "usable" : "unusable",
                backend.detail.c_str());
  }
}

}  // namespace

void add_info(CLI::App& program, Session&) {
  program
      .add_subcommand("info",
                      "Show versions, threads, instruction set, and which backends this machine can use")
      ->callback(print_info);
}

}  // namespace fastweights::cli
