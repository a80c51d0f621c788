#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fastweights/read.h"

/// Folders with many small files: found in an order that is the same on every machine, read by all cores.

namespace fastweights {

/// Regular files below a folder whose names end like this, sorted. An error if it is no folder.
std::vector<std::string> files_below(const std::string& folder, std::string_view ending);

/// Name of a path without its folders; stem() also without its ending.
std::string file_name(const std::string& path);
std::string stem(const std::string& path);

/// A file as one series, or the reason why it is no part of the set although nothing is wrong with it.
struct FileSeries {
  Series series = {};
  std::string left_out = {};
};

struct FolderSeries {
  std::vector<Series> series = {};  ///< in the order of the files
  /// broken files with their errors, then how many were left out for each reason
  std::vector<std::string> skipped = {};
};

/// Reads files in several threads; progress is called by this thread. The error is that of the first broken
/// file in order, if they are not to be skipped.
FolderSeries read_files(const std::vector<std::string>& files, const ReadOptions& options,
                        const std::function<FileSeries(const std::string&)>& read);

}  // namespace fastweights
