#pragma once

#include <functional>
#include <optional>
#include <string>

#include "fastweights/read.h"

/// Data sets kept in a form that needs no parsing, so that a folder of many files is read once.

namespace fastweights {

/// read_cached() with another way to read.
DataSet read_cached(const std::string& path, const ReadOptions& options, const std::string& cache_dir,
                    const std::function<DataSet()>& read);

/// Where the cache of a path with these options lies.
std::string cache_file(const std::string& path, const ReadOptions& options, const std::string& cache_dir);

/// Keeps a set with a text that says what it was made from.
void save_prepared(const std::string& file, const DataSet& data, const std::string& key);
/// None if it was made from something else or by another version; a std::runtime_error if anything about the
/// file is not as it was written.
std::optional<DataSet> load_prepared(const std::string& file, const std::string& key);

}  // namespace fastweights
