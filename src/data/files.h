#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fastweights/data.h"

/// Files within the limits of their reader, and folders of many small files: listed in the same order on
/// every machine, read in parallel.

namespace fastweights::data {

/// The bytes that reading may take: the option, or half of the memory of the machine or control group.
size_t read_limit(const ReadOptions& options);

/// The limit for what a packed file of so many bytes contains: by default 64 times as much, at least 512 MB.
size_t unpack_limit(const ReadOptions& options, size_t packed);

/// An error before an allocation that would exceed the limit; `what` is what the memory is for. No size: it
/// overflows.
void require_memory(std::optional<size_t> bytes, size_t limit, std::string_view file, std::string_view what);

/// Memory that a few bytes of text may describe, at most, while they are read and collected: a series without
/// its rows; a dimension without values; the name of a column, a class or a file; a value or a time.
inline constexpr size_t kSeriesBytes = 500, kDimensionBytes = 200, kNameBytes = 200, kValueBytes = 32;

/// require_memory() for a number of these.
void require_parts(size_t count, size_t bytes, size_t limit, std::string_view file, std::string_view what);

/// The bytes of a file within the limit. Anything but a file, or a pipe such as /dev/stdin, is an error.
std::string read_bytes(const std::string& path, const ReadOptions& options);

/// A text file, which may be compressed with gzip, as UTF-8; the note names another encoding that was
/// assumed.
struct TextFile {
  std::string text = {};
  std::string note = {};
};
TextFile read_text(const std::string& path, const ReadOptions& options);

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
