#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/error.h"
#include "data/npz.h"
#include "fastweights/data.h"

/// Writers of the formats that read_data() reads. Values read back exactly. Content that a format cannot
/// store is an error, except the time unit, the date of time 0, and, in .ts, ids and groups.

namespace fastweights::data {

/// Content that the format cannot store.
template <typename... Parts>
[[noreturn]] void refuse_writing(const std::string& path, const Parts&... parts) {
  throw std::runtime_error(message(path, ": cannot be written: ", parts...));
}

/// One table: id, part, group, time, channels, static features, targets, label; empty columns are omitted.
void write_csv(const DataSet& data, const std::string& path);

/// A table per series, <id>.csv, and labels.csv with id, label, part, group, static features and targets.
void write_csv_folder(const DataSet& data, const std::string& path);

/// Everything that a data set holds.
void write_npz(const DataSet& data, const std::string& path, Packing packing = Packing::Stored);

/// The bytes of that file.
std::string npz_of(const DataSet& data, Packing packing);

/// A file, or, if the path does not end in .ts, a folder <Name> with <Name>_TRAIN.ts and <Name>_TEST.ts.
void write_ts(const DataSet& data, const std::string& path);

/// Replaces a file as a whole; creates its folder if necessary.
void write_table(const std::string& path, std::string_view bytes);

/// "any", "train", "validation" or "test".
std::string part_name(Part part);

}  // namespace fastweights::data
