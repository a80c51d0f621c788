#pragma once

#include <string>
#include <string_view>

namespace fastweights {

/// Writes a file, and the folders above it if they are not there.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace fastweights
