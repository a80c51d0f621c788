#pragma once

#include <functional>
#include <optional>
#include <string>

#include "fastweights/data.h"

/// Parsed data sets on disk, so that a folder of many files is parsed once.

namespace fastweights::data {

/// read_cached() with another reader.
DataSet read_cached(const std::string& path, const ReadOptions& options, const std::string& cache_dir,
                    const std::function<DataSet()>& read);

/// The cache file of a path with these options.
std::string cache_file(const std::string& path, const ReadOptions& options, const std::string& cache_dir);

/// Stores a set with a key that identifies its source.
void save_prepared(const std::string& file, const DataSet& data, const std::string& key);
/// Nothing if the key or the version differs; a std::runtime_error if the file is damaged.
std::optional<DataSet> load_prepared(const std::string& file, const std::string& key);

}  // namespace fastweights::data
