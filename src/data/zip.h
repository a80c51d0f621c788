#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Zip archives as numpy writes them: members stored or deflated, not encrypted, below 4 GB. Deflated members
/// need zlib; in a build without it they are an error.

namespace fastweights::data {

enum class Packing { Stored, Deflated };

/// Members in the order of the archive; `file` is the name for error messages, `limit` for their total size.
std::vector<std::pair<std::string, std::string>> unzip(std::string_view bytes, const std::string& file,
                                                       size_t limit = static_cast<size_t>(-1));

std::string zip(const std::vector<std::pair<std::string, std::string>>& members, Packing packing);

/// Whether this build can read and write deflated members.
bool can_deflate();

}  // namespace fastweights::data
