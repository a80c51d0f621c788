#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/dataset.h"

/// From files to data sets. A message about a file names it, the row and the column, what was found and what
/// was expected.

namespace fastweights {

/// What becomes of a broken file in a folder of many: the error is the end, or it is left out and listed in
/// DataHead::skipped.
enum class BadFiles { Stop, Skip };

/// Speech as 20 mel-frequency cepstral coefficients every 6.25 ms, or as the wave itself.
enum class SpeechForm { Mfcc, Wave };

/// Whether columns of labels, groups and targets must be there if they are named; in data to predict they
/// need not.
enum class Answers { Wanted, Optional };

/// Which columns of a table mean what; all others are channels.
struct TableColumns {
  std::string id = "id", time = "time", label = "label";
  std::string group = {};                 ///< none, if empty
  std::vector<std::string> statics = {};  ///< the same in all rows of a series
  std::vector<std::string> targets = {};  ///< numbers to predict, the same in all rows of a series
  Answers answers = Answers::Wanted;
};

struct ReadOptions {
  std::string format = {};  ///< one of data_formats(); empty: found out
  BadFiles bad_files = BadFiles::Stop;
  TableColumns columns = {};
  /// What a unit of numeric times is called; dates are converted to "second", "minute", "hour" or "day".
  std::string time_unit = {};
  SpeechForm speech = SpeechForm::Mfcc;
  /// Called now and then with files read and files in all.
  std::function<void(int64_t, int64_t)> progress = {};
};

/// Names of formats, with a sentence about each.
std::vector<std::pair<std::string, std::string>> data_formats();

/// Reads a file, a folder, or a built-in set by its name.
DataSet read_data(const std::string& path, const ReadOptions& options = {});

/// Names and settings of the built-in sets, with a sentence about each.
std::vector<std::pair<std::string, std::string>> built_in_sets();

/// read_data() by way of a file in cache_dir, which is made if it is missing, damaged, or of other contents:
/// names, sizes and times of the files of a folder, or the bytes of a single file. Built-in sets are made
/// each time.
DataSet read_cached(const std::string& path, const ReadOptions& options, const std::string& cache_dir);

/// Writes a set by format (csv, csv-folder, npz, ts), or, if that is empty, by the ending of the path.
/// Numbers are printed so that they read back exactly; what a format has no place for is an error.
void write_data(const DataSet& data, const std::string& path, const std::string& format = {});

}  // namespace fastweights
