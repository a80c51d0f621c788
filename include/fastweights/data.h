#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/data_set.h"

/// Data sets of time series. Standard library only; task.h turns them into tensors.
///
///     const DataSet data = read_data("patients.csv", {.columns = {.group = "patient"}});
///     const Split parts = split_data(data);
///     const Preparation preparation = fit_preparation(data, parts.train, {});
///
/// Readers do not fill, scale or pad; NaN marks a value that was not observed. An error in a file is a
/// std::runtime_error with the file, the row and the column, what was found and what was expected.

namespace fastweights {

/// Speech as 20 mel-frequency cepstral coefficients every 6.25 ms, or as the waveform.
enum class SpeechForm { Mfcc, Wave };

/// Whether the named columns of labels, groups and targets must exist. Data to predict may lack them.
enum class LabelColumns { Required, Optional };

/// The meaning of a table's columns; all other columns are channels.
struct TableColumns {
  std::string id = "id", time = "time", label = "label";
  std::string group = {};                 ///< empty: no groups
  std::vector<std::string> statics = {};  ///< constant within a series
  std::vector<std::string> targets = {};  ///< values to predict, constant within a series
  LabelColumns label_columns = LabelColumns::Required;
  std::vector<std::string> channels = {};  ///< empty: all other columns
  std::vector<std::string> ignored = {};   ///< unused, like columns that `channels` does not name
  /// Text whatever it looks like, such as codes that are numbers. Other columns are text if none of their
  /// values is a number.
  std::vector<std::string> texts = {};
  /// Whether the named channels must exist. A model says itself which one it lacks.
  LabelColumns channel_columns = LabelColumns::Required;
};

/// Automatic: a comma if values of a table with semicolons, tabs or bars have one.
enum class DecimalMark { Automatic, Point, Comma };

/// Rows of a series with the same time: an error, the first one, or the mean of their values.
enum class Duplicates { Error, First, Mean };

/// Refuse: unsorted rows are an error. Sort: rows of a series are sorted by time.
enum class UnsortedRows { Refuse, Sort };

/// How the cells and rows of a table are read.
struct TableForm {
  /// Words for a missing value, besides the usual ones.
  std::vector<std::string> missing = {};
  DecimalMark decimal = DecimalMark::Automatic;
  UnsortedRows order = UnsortedRows::Refuse;
  Duplicates duplicates = Duplicates::Error;
};

struct ReadOptions {
  std::string format = {};  ///< one of data_formats(); empty: detected
  TableColumns columns = {};
  TableForm table = {};
  /// Names the unit of numeric times; dates are converted to it: "second", "minute", "hour" or "day".
  std::string time_unit = {};
  SpeechForm speech = SpeechForm::Mfcc;
  bool skip_bad = false;  ///< omit malformed files of a folder and list them in DataHead::skipped
  /// Bytes of the text of a file, and separately of its data; 0: automatic, see docs/data_formats.md.
  int64_t read_limit = 0;
  /// Called repeatedly with the number of files read so far and their total.
  std::function<void(int64_t, int64_t)> progress = {};
};

/// Formats, and generated sets with their settings: name and description of each.
std::vector<std::pair<std::string, std::string>> data_formats();
std::vector<std::pair<std::string, std::string>> built_in_sets();

/// Reads a file, a folder, the standard input ("-"), or a built-in set by name.
DataSet read_data(const std::string& path, const ReadOptions& options = {});

/// read_data() with a cache file in cache_dir, rebuilt if it is missing or damaged, or if the bytes of a file
/// or names, sizes, inodes or times in a folder changed. If it cannot be written, a note says so.
DataSet read_cached(const std::string& path, const ReadOptions& options, const std::string& cache_dir);

/// Writes a set as csv, csv-folder, npz or ts (empty: by the extension of the path). Values read back
/// exactly. Content that a format cannot store is an error; docs/data_formats.md lists the exceptions.
void write_data(const DataSet& data, const std::string& path, const std::string& format = {});

/// Automatic: Given if the source assigns parts; otherwise Grouped if series share groups; otherwise
/// Stratified by label, or Random without labels. Folds: cross-validation. Indices: read from a file. Time:
/// windows of each series, its last rows for the test. Rolling: the same with a rolling origin.
enum class SplitRule { Automatic, Given, Random, Stratified, Grouped, Folds, Indices, Time, Rolling };

struct SplitConfig {
  SplitRule rule = SplitRule::Automatic;
  double validation = 0.15, test = 0.15;  ///< fractions
  int64_t seed = 1, folds = 5, fold = 0;
  /// JSON of indices or ids: {"train": [...], "validation": [...], "test": [...]}; no "train": all others
  std::string indices = {};
  int64_t window = 0, stride = 0, gap = 0;  ///< Time and Rolling, in rows: see docs/forecasts.md
};

struct Split {
  std::vector<int64_t> train, validation, test;  // samples, or indices of windows
  std::vector<Window> windows = {};              ///< Time and Rolling: of all parts; see cut_series()
  SplitRule rule = SplitRule::Random;            ///< the rule that was applied
};

/// If the source marks training series but no validation part, config.validation of them is held out.
Split split_data(const DataSet& data, const SplitConfig& config = {});

/// Standard: mean and standard deviation. Robust: median and interquartile range / 1.349.
enum class Scaling { Standard, Robust, None };

/// Automatic: chosen by the training part for forecasts and imputation; other tasks have none.
enum class FirstGuess { Automatic, None };

struct PrepareConfig {
  Scaling scaling = Scaling::Standard;
  double clip = 10;          ///< scaled values are clipped to [-clip, clip]; 0: no clipping
  bool time_channel = true;  ///< adds elapsed time as the first channel
  bool intensity = false;    ///< adds a channel per channel: the number of observations so far
  /// Elapsed time (in median gaps) and counts are scaled down so that a mean series ends here; 0: never.
  double typical_time = 3, typical_count = 10;
  double usual_gaps = 0.95;  ///< fraction of usual gaps; model time saturates over longer ones; 0: off
  FirstGuess first_guess = FirstGuess::Automatic;
};

struct Scale {
  double mean = 0, deviation = 1;

  double operator()(double x) const { return (x - mean) / deviation; }
  double undo(double x) const { return x * deviation + mean; }
};

/// The simple prediction of a channel that a model corrects: the mean of the series plus sines and cosines of
/// the season and its fractions, by ridge regression; and the line between neighbouring residuals, or the
/// nearest one beyond the ends.
struct ChannelGuess {
  int64_t harmonics = -1;  ///< 0: the mean alone, -1: zero, the mean of the training part
  bool line = false;

  bool operator==(const ChannelGuess&) const = default;
};

/// How the training data write times; Unknown: a file of an earlier version does not say.
enum class TimeForm { Unknown, Numbers, Dates };

/// Scales and names learned from training data; stored with a model and applied to all data alike.
struct Preparation {
  PrepareConfig config = {};
  std::vector<std::string> channels = {}, statics = {}, targets = {}, classes = {};  ///< names
  std::vector<Scale> channel_scales = {}, static_scales = {}, target_scales = {};    // [C], [F], [O]
  std::vector<int64_t> static_flags = {};  ///< static features with missing values: each gets a flag
  std::vector<TextColumn> channel_texts = {}, static_texts = {};  ///< with the values of the training part
  std::string time_unit = {};
  TimeForm time_form = TimeForm::Unknown;
  double median_gap = 1, usual_gap = 0;    ///< between neighbouring times; see usual_gaps, 0: off
  double time_scale = 1, count_scale = 1;  ///< divisors of elapsed time, in median gaps, and of counts
  int64_t window = 0;  ///< rows of a training window, if series were divided by time; 0: whole series
  double season = 0;   ///< of the first guesses; 0: none
  std::vector<ChannelGuess> guesses = {};  ///< [C], or empty: no first guess
  /// [C], or empty: mean absolute difference of neighbouring observed values, scaled; the unit of MASE.
  std::vector<double> naive_errors = {};

  int64_t model_channels() const;  ///< of a model's input
  int64_t model_statics() const;   ///< static features of a model's input
};

/// An error names a value that is too large to be scaled.
Preparation fit_preparation(const DataSet& train, const PrepareConfig& config = {});
Preparation fit_preparation(const DataSet& data, const std::vector<int64_t>& samples,
                            const PrepareConfig& config);

/// Columns without any value, and values more than a million interquartile ranges from the median (ten for
/// usual codes of missing values, such as -999).
std::vector<std::string> data_warnings(const DataSet& data);

/// The data with the preparation's channels, static features, targets and classes. A missing one is an error,
/// additional ones are dropped; labels of unknown classes become unknown. Channels of a text column are all
/// 0 where the value is unknown to the preparation; match_notes() says so, and if only one has dates.
DataSet match_data(const DataSet& data, const Preparation& preparation);
std::vector<std::string> match_notes(const DataSet& data, const Preparation& preparation);

/// The data without values of text columns that none of the samples has; a note names them.
DataSet with_texts_of(const DataSet& data, const std::vector<int64_t>& samples);

/// Published data sets that fetch_data() can download: name and description, in alphabetical order.
std::vector<std::pair<std::string, std::string>> known_sets();

/// Downloads and unpacks a known set into `data_dir`/`name`, unless that folder exists, and returns the
/// folder, which appears only when it is complete. Needs libcurl, and libarchive for archives. `progress` has
/// the bytes so far and in total (0: unknown); `note` is called for each file without a known checksum.
std::string fetch_data(const std::string& name, const std::string& data_dir,
                       const std::function<void(int64_t, int64_t)>& progress = {},
                       const std::function<void(const std::string&)>& note = {});

}  // namespace fastweights
