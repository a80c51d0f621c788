#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Archives as numpy writes them: members stored or deflated, nothing encrypted, below 4 GB. Deflated ones
/// need zlib, which a build may lack; then asking for them is an error.

namespace fastweights {

enum class Packing { Stored, Deflated };

/// Members in the order of the archive; `file` is its name for messages.
std::vector<std::pair<std::string, std::string>> unzip(std::string_view bytes, const std::string& file);

std::string zip(const std::vector<std::pair<std::string, std::string>>& members, Packing packing);

/// Whether this build can read and write deflated members.
bool can_deflate();

}  // namespace fastweights
