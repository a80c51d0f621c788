#pragma once

#include <exception>
#include <stdexcept>
#include <string>

/// Errors as the program prints them.

namespace fastweights::cli {

/// One line: without LibTorch's stack trace, control characters as text, the middle of a very long one left
/// out.
std::string error_text(const std::exception& error);

/// Whether memory ran out, or sizes are beyond any memory.
bool is_out_of_memory(const std::exception& error);

/// Calls f. If memory runs out, the error says for what: "reading table.csv".
template <typename F>
auto within_memory(const std::string& what, const F& f) {
  try {
    return f();
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw std::runtime_error(what + " needs more memory than there is");
  }
}

}  // namespace fastweights::cli
