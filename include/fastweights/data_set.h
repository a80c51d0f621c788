#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Data sets of time series as values. Standard library only.

namespace fastweights {

/// The part that the source assigns to a series; Any: the source does not say.
enum class Part { Any, Train, Validation, Test };

/// One series, as a reader returns it.
struct Series {
  std::string id = {};
  std::string group = {};  ///< patient, speaker, ...; empty: the series is a group by itself
  Part part = Part::Any;
  std::vector<double> times = {};             // [L], strictly increasing
  std::vector<double> values = {};            // [L, C]
  std::vector<double> statics = {};           // [F]
  std::string label = {};                     ///< empty: unknown
  std::vector<double> targets = {};           // [O]
  std::vector<std::string> step_labels = {};  // [L] or empty; an empty string: unknown
  std::vector<std::string> unused = {};       // [L, U] cells of columns without a meaning, as written
  std::vector<std::string> dates = {};        // [L] or empty; see DataSet
  std::string where = {};                     ///< file, or file and row, for error messages
};

/// Names of the columns that every table has, and the marks of the table, as the source writes them.
struct SourceColumns {
  std::string id = "id", time = "time", label = "label", group = "group";
  char separator = ',', decimal = '.';
};

/// A column of text: each value is a channel (or a static feature) "column=value", which is 1 in rows that
/// have this value, 0 in rows that have another one, and missing where the column is.
struct TextColumn {
  std::string column = {};
  std::vector<std::string> values = {};
};

/// Metadata shared by all series of a set.
struct DataHead {
  std::string name = {};                                               ///< of the file or folder
  std::string origin = {};                                             ///< format, or "generated"
  std::vector<std::string> channels = {}, statics = {}, targets = {};  // [C], [F], [O]
  std::vector<std::string> classes = {};  // [K] in order; if empty, collect_series() derives them
  std::string time_unit = {};             ///< "hour", "second", "step", ...; empty: unknown
  std::string time_zero = {};             ///< the date of time 0, if times were dates
  std::string date_form = {};             ///< a date of the source, in whose form dates are written
  SourceColumns source = {};              ///< names of the source's columns
  std::vector<TextColumn> channel_texts = {}, static_texts = {};
  std::vector<std::string> unused = {};   // [U] names of columns that are neither channels nor anything else
  std::vector<std::string> skipped = {};  ///< omitted files, each with the reason
  std::vector<std::string> notes = {};    ///< what a reader assumed, such as an encoding
};

/// Series stored one after another: sample b owns the rows offsets[b] .. offsets[b + 1] - 1.
struct DataSet {
  DataHead head = {};
  std::vector<std::string> ids = {};      // [B]
  std::vector<std::string> groups = {};   // [B]; empty: a group by itself
  std::vector<Part> parts = {};           // [B]
  std::vector<int64_t> offsets = {0};     // [B + 1]
  std::vector<double> times = {};         // [N]
  std::vector<double> values = {};        // [N, C]; NaN: not observed
  std::vector<double> statics = {};       // [B, F]; NaN: unknown
  std::vector<int64_t> labels = {};       // [B] class indices, -1: unknown; or empty
  std::vector<double> targets = {};       // [B, O]; NaN: unknown
  std::vector<int64_t> step_labels = {};  // [N], as labels; or empty
  std::vector<std::string> unused = {};   // [N, U] cells, as the source writes them
  std::vector<std::string> dates = {};    // [N] or empty; "" where head.date_form gives the source's text

  int64_t samples() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t rows() const { return offsets.back(); }
  int64_t length(int64_t sample) const;
  int64_t channels() const { return static_cast<int64_t>(head.channels.size()); }
  int64_t classes() const { return static_cast<int64_t>(head.classes.size()); }
};

/// Builds a set. Checks that each series has the head's channels, static features and targets, at least one
/// row, finite and increasing times, and no infinite value. Names become UTF-8. If the head lists no classes,
/// the labels found become the classes, in numerical order if all are numbers, otherwise alphabetically.
DataSet collect_series(DataHead head, const std::vector<Series>& series);

/// Rows first .. last - 1 of a series.
struct Window {
  int64_t sample = 0, first = 0, last = 0;
};

/// Windows as series, in the given order. One that is not a whole series is named after its first time, too:
/// "id from TIME".
DataSet cut_series(const DataSet& data, const std::vector<Window>& windows);

/// The given samples, in the given order.
DataSet select_series(const DataSet& data, const std::vector<int64_t>& samples);

/// The series of both sets. Channels, static features, targets and classes must be equal.
DataSet join_data(const DataSet& first, const DataSet& second);

/// A column as the source has it: a number, or a text with a channel for each value.
struct ShownColumn {
  std::string name = {};
  std::vector<size_t> channels = {};     ///< their positions in a row
  std::vector<std::string> values = {};  ///< empty: a number

  /// The index of the largest value of a row, if they are known.
  std::optional<size_t> largest(const double* row) const;
};

/// The columns behind channels of these names.
std::vector<ShownColumn> shown_columns(const std::vector<std::string>& names,
                                       const std::vector<TextColumn>& texts);

/// A time as the source writes it: a number, or a date in the form of its dates.
std::string time_text(const DataHead& head, double time);
/// The time of a row.
std::string time_text(const DataSet& data, int64_t row);

}  // namespace fastweights
