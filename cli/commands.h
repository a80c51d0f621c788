#pragma once

#include <CLI/CLI.hpp>

/// Each command adds itself to the program; its callback throws or sets the exit status.

namespace fastweights::cli {

struct Session {
  int exit_status = 0;
};

void add_info(CLI::App& program, Session& session);
void add_selftest(CLI::App& program, Session& session);
void add_gradcheck(CLI::App& program, Session& session);

}  // namespace fastweights::cli
