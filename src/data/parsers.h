#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "data/time_axis.h"
#include "fastweights/data.h"

/// Parsers of file contents; `file` is the name for error messages. Readers open the files. `limit` is that
/// of the memory for parts of the content that take much more than their text.

namespace fastweights::data {

inline constexpr size_t kNoLimit = static_cast<size_t>(-1);

Parsed parse_ts(std::string_view text, const std::string& file, size_t limit = kNoLimit);
Parsed parse_arff(std::string_view text, const std::string& file, size_t limit = kNoLimit);
/// All series in one table.
Parsed parse_csv(std::string_view text, const std::string& file, const ReadOptions& options,
                 size_t limit = kNoLimit);
DataSet parse_npz(std::string_view bytes, const std::string& file, size_t limit = kNoLimit);

/// "channel 1", "channel 2", ...
std::vector<std::string> numbered_channels(size_t count);

/// The last component of a path, with or without a trailing slash.
std::string folder_name(const std::string& path);

/// A file, or a folder <Name> with <Name>_TRAIN and <Name>_TEST; the extension includes the dot.
using ParsePart = std::function<Parsed(std::string_view, const std::string&, size_t)>;
DataSet read_parts(const std::string& path, const std::string& extension, const ReadOptions& options,
                   const ParsePart& parse);

}  // namespace fastweights::data
