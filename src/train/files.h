#pragma once

#include <string>

namespace fastweights {

/// Replaces a file as a whole or not at all, also if the machine stops meanwhile.
void replace_file(const std::string& path, const std::string& contents);

std::string file_text(const std::string& path);

}  // namespace fastweights
