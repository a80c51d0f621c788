#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Data sets of series, each with its own times and its own length, as they come from files: nothing is
/// filled, scaled or padded. Standard library only; batch.h makes tensors of them.

namespace fastweights {

/// What the source says a series is for.
enum class Part { Any, Train, Validation, Test };

/// One series as a reader finds it. NaN is a value that was not observed.
struct Series {
  std::string id = {};
  std::string group = {};  ///< patient, speaker, ...; empty: nobody shares it
  Part part = Part::Any;
  std::vector<double> times = {};             // [L], rising
  std::vector<double> values = {};            // [L, C]
  std::vector<double> statics = {};           // [F]
  std::string label = {};                     ///< empty: unknown
  std::vector<double> targets = {};           // [O]
  std::vector<std::string> step_labels = {};  // [L], or none; empty: unknown
  std::string where = {};                     ///< file, or file and row, for messages
};

/// What all series of a set have in common.
struct DataHead {
  std::string name = {};                   ///< of the file or folder
  std::string origin = {};                 ///< format; generated data say so here
  std::vector<std::string> channels = {};  // [C]
  std::vector<std::string> statics = {};   // [F]
  std::vector<std::string> targets = {};   // [O]
  std::vector<std::string> classes = {};   // [K] in order; collect() finds them, if the source names none
  std::string time_unit = {};              ///< what times count: "hour", "second", "step", ...
  std::string time_zero = {};              ///< the date that 0 stands for, if times were dates
  std::vector<std::string> skipped = {};   ///< files that were left out, each with the reason
};

/// Series one after another: sample b owns the rows offsets[b] .. offsets[b + 1] - 1.
struct DataSet {
  DataHead head = {};
  std::vector<std::string> ids = {};      // [B]
  std::vector<std::string> groups = {};   // [B]; empty: nobody shares it
  std::vector<Part> parts = {};           // [B]
  std::vector<int64_t> offsets = {0};     // [B + 1]
  std::vector<double> times = {};         // [N]
  std::vector<double> values = {};        // [N, C]; NaN: not observed
  std::vector<double> statics = {};       // [B, F]; NaN: not known
  std::vector<int64_t> labels = {};       // [B], index of the class, -1: unknown; or none
  std::vector<double> targets = {};       // [B, O]; NaN: unknown
  std::vector<int64_t> step_labels = {};  // [N], as labels; or none

  int64_t samples() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t rows() const { return offsets.back(); }
  int64_t length(int64_t sample) const;
  int64_t channels() const { return static_cast<int64_t>(head.channels.size()); }
  int64_t classes() const { return static_cast<int64_t>(head.classes.size()); }
};

/// Puts series together. Checks that each has the head's channels, static features and targets, finite and
/// rising times, no infinite value and at least one row; the message begins with `where`. Classes that the
/// head does not name are found: as numbers if all labels are, otherwise in alphabetical order.
DataSet collect(DataHead head, const std::vector<Series>& series);

/// These samples, in this order.
DataSet subset(const DataSet& data, const std::vector<int64_t>& samples);

/// Sets with the same channels, static features, targets and classes, one after another.
DataSet joined(const DataSet& first, const DataSet& second);

}  // namespace fastweights
