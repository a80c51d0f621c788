#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fastweights::cli {

/// "1..5" or "1,2,7", also mixed, as a list of at least two different seeds. Otherwise an error that says
/// what was expected.
std::vector<int64_t> seed_list(const std::string& text);

}  // namespace fastweights::cli
