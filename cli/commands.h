#pragma once

#include <CLI/CLI.hpp>

/// Each command adds itself to the program; its callback throws or sets the exit status.

namespace fastweights::cli {

/// Checks of option values; those of CLI11 name the largest double in every message, and let an unsigned
/// number wrap around.
inline CLI::Validator positive() {
  const auto check = [](const std::string& text) {
    double value = 0;
    return CLI::detail::lexical_cast(text, value) && value > 0 ? ""
                                                               : "must be a positive number, got " + text;
  };
  return CLI::Validator(check, "POSITIVE");
}
inline CLI::Validator not_negative() {
  const auto check = [](const std::string& text) {
    return text.find('-') == std::string::npos ? "" : "must not be negative, got " + text;
  };
  return CLI::Validator(check, "");
}

struct Session {
  int threads = 0;  ///< requested; 0: no preference
  int exit_status = 0;
  std::string command_line = {};  ///< as a shell takes it
};

void add_info(CLI::App& program, Session& session);
void add_selftest(CLI::App& program, Session& session);
void add_gradcheck(CLI::App& program, Session& session);
void add_train(CLI::App& program, Session& session);
void add_compare(CLI::App& program, Session& session);
void add_models(CLI::App& program, Session& session);
void add_evaluate(CLI::App& program, Session& session);
void add_predict(CLI::App& program, Session& session);
void add_inspect(CLI::App& program, Session& session);
void add_report(CLI::App& program, Session& session);
void add_board(CLI::App& program, Session& session);
void add_data(CLI::App& program, Session& session);
void add_bench(CLI::App& program, Session& session);

}  // namespace fastweights::cli
