#pragma once

#include <functional>
#include <string>
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

/// Which columns of a table mean what; all others are channels.
struct TableColumns {
  std::string id = "id", time = "time", label = "label";
  std::string group = {};                 ///< none, if empty
  std::vector<std::string> statics = {};  ///< the same in all rows of a series
  std::vector<std::string> targets = {};  ///< numbers to predict, the same in all rows of a series
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

}  // namespace fastweights
