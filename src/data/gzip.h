#pragma once

#include <string>
#include <string_view>

/// Files compressed with gzip.

namespace fastweights::data {

/// Whether the bytes begin as a gzip file does.
bool is_gzip(std::string_view bytes);

/// The content of a gzip file of one or several members; `file` is the name for error messages, `limit` that
/// of the content. Needs zlib; in a build without it, it is an error.
std::string gunzip(std::string_view bytes, const std::string& file, size_t limit = static_cast<size_t>(-1));

/// The name of a file without the ending .gz.
std::string without_gz(const std::string& path);

}  // namespace fastweights::data
