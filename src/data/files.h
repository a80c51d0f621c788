#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fastweights/data.h"

/// Folders of many small files: listed in the same order on every machine, read in parallel.

namespace fastweights::data {

/// Regular files below a folder whose names have this ending, sorted. An error if there is no such folder.
std::vector<std::string> files_below(const std::string& folder, std::string_view ending);

/// The last component of a path; stem(): without its extension.
std::string file_name(const std::string& path);
std::string stem(const std::string& path);

/// A file as one series, or the reason why a valid file does not belong to the set.
struct FileSeries {
  Series series = {};
  std::string left_out = {};
};

struct FolderSeries {
  std::vector<Series> series = {};  ///< in the order of the files
  /// malformed files with their errors, then the number of omitted files per reason
  std::vector<std::string> skipped = {};
};

/// Reads files in several threads; progress is called by this thread. Unless malformed files are skipped, the
/// error is that of the first one in order.
FolderSeries read_files(const std::vector<std::string>& files, const ReadOptions& options,
                        const std::function<FileSeries(const std::string&)>& read);

}  // namespace fastweights::data
