#pragma once

#include <string>
#include <string_view>

namespace fastweights::data {

/// Writes a file; creates its folder if necessary.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace fastweights::data
