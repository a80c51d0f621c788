#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "data/time_axis.h"
#include "fastweights/read.h"

/// From the bytes of a file to series; `file` is its name for messages. Readers open files and call these.

namespace fastweights {

Parsed parse_ts(std::string_view text, const std::string& file);
Parsed parse_arff(std::string_view text, const std::string& file);
/// All series in one table.
Parsed parse_csv(std::string_view text, const std::string& file, const TableColumns& columns);
DataSet parse_npz(std::string_view bytes, const std::string& file);

/// "channel 1", "channel 2", ...
std::vector<std::string> numbered_channels(size_t count);

/// The last name of a path, with or without a slash at its end.
std::string folder_name(const std::string& path);

/// A file, or a folder <Name> with <Name>_TRAIN and <Name>_TEST; the extension with its point.
DataSet read_parts(const std::string& path, const std::string& extension, const ReadOptions& options,
                   const std::function<Parsed(std::string_view, const std::string&)>& parse);

}  // namespace fastweights
