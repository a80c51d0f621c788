#include "fastweights/data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "base/nearest.h"
#include "data/text.h"

namespace fastweights {
namespace {

template <typename... Parts>
[[noreturn]] void refuse(const Series& series, const Parts&... parts) {
  const std::string where = series.where.empty() ? "series " + data::in_quotes(series.id) : series.where;
  throw std::runtime_error(message(where, ": ", parts...));
}

// without needless digits
std::string shown(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", x);
  return text;
}

bool is_number(const std::string& label) {
  char* end = nullptr;
  const double x = std::strtod(label.c_str(), &end);
  return !label.empty() && *end == '\0' && std::isfinite(x);
}

// makes names UTF-8, and remembers the first one that was not
class Utf8Names {
 public:
  std::string operator()(const std::string& name) {
    data::DecodedText result = data::decoded(name);
    if (!result.encoding.empty() && note_.empty())
      note_ = message("the name ", data::in_quotes(result.text), " is not UTF-8; read as ", result.encoding);
    return std::move(result.text);
  }
  void operator()(std::vector<std::string>& names) {
    for (std::string& name : names) name = (*this)(name);
  }
  const std::string& note() const { return note_; }

 private:
  std::string note_;
};

std::vector<std::string> found_classes(const std::vector<Series>& series) {
  std::set<std::string> names;
  for (const Series& s : series) {
    if (!s.label.empty()) names.insert(data::decoded(s.label).text);
    for (const std::string& label : s.step_labels) {
      if (!label.empty()) names.insert(data::decoded(label).text);
    }
  }
  std::vector<std::string> classes(names.begin(), names.end());
  if (std::all_of(classes.begin(), classes.end(), is_number)) {
    std::stable_sort(classes.begin(), classes.end(), [](const std::string& a, const std::string& b) {
      return std::strtod(a.c_str(), nullptr) < std::strtod(b.c_str(), nullptr);
    });
  }
  return classes;
}

// rejects infinite values
void check_values(const DataHead& head, const Series& s) {
  const size_t channels = head.channels.size();
  for (size_t i = 0; i < s.values.size(); ++i) {
    if (std::isinf(s.values[i]))
      refuse(s, "channel ", data::in_quotes(head.channels[i % channels]), " is infinite at row ",
             i / channels + 1, "; leave missing values empty");
  }
  for (size_t i = 0; i < s.statics.size(); ++i) {
    if (std::isinf(s.statics[i]))
      refuse(s, "static feature ", data::in_quotes(head.statics[i]), " is infinite");
  }
  for (size_t i = 0; i < s.targets.size(); ++i) {
    if (std::isinf(s.targets[i])) refuse(s, "target ", data::in_quotes(head.targets[i]), " is infinite");
  }
}

void check_series(const DataHead& head, const Series& s) {
  const size_t length = s.times.size(), channels = head.channels.size();
  if (length == 0) refuse(s, "expected at least one row, got none");
  if (s.values.size() != length * channels)
    refuse(s, "expected ", length * channels, " values for ", length, " times and ", channels,
           " channels, got ", s.values.size());
  if (s.statics.size() != head.statics.size())
    refuse(s, "expected ", head.statics.size(), " static features, got ", s.statics.size());
  if (s.targets.size() != head.targets.size())
    refuse(s, "expected ", head.targets.size(), " targets, got ", s.targets.size());
  if (!s.step_labels.empty() && s.step_labels.size() != length)
    refuse(s, "expected ", length, " step labels, one per row, got ", s.step_labels.size());
  if (s.unused.size() != length * head.unused.size())
    refuse(s, "expected ", length * head.unused.size(), " unused cells, got ", s.unused.size());
  if (!s.dates.empty() && s.dates.size() != length)
    refuse(s, "expected ", length, " dates, one per row, got ", s.dates.size());
  for (size_t i = 0; i < length; ++i) {
    if (!std::isfinite(s.times[i])) refuse(s, "the time of row ", i + 1, " is not finite");
    if (i > 0 && s.times[i] <= s.times[i - 1])
      refuse(s, "times must increase: row ", i + 1, " has ", shown(s.times[i]), " after ",
             shown(s.times[i - 1]));
  }
  check_values(head, s);
}

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

class Labels {
 public:
  explicit Labels(const std::vector<std::string>& classes) : classes_(classes) {
    for (size_t i = 0; i < classes.size(); ++i) indices_.emplace(classes[i], static_cast<int64_t>(i));
  }

  int64_t index(const Series& series, const std::string& label) const {
    if (label.empty()) return -1;
    const auto found = indices_.find(label);
    if (found == indices_.end())
      refuse(series, "unknown class ", data::in_quotes(label),
             suggestion(label, classes_, [](const std::string& name) { return data::in_quotes(name); }));
    return found->second;
  }

 private:
  const std::vector<std::string>& classes_;
  std::map<std::string, int64_t> indices_;
};

void check_window(const DataSet& data, const Window& window) {
  const auto& [sample, first, last] = window;
  const bool known = sample >= 0 && sample < data.samples();
  if (!known || first < 0 || first >= last || last > data.length(sample))
    throw std::invalid_argument(message("[cut_series] no rows ", first, " to ", last - 1, " of sample ",
                                        sample, " in a set of ", data.samples()));
}

}  // namespace

int64_t DataSet::length(int64_t sample) const {
  const auto b = static_cast<size_t>(sample);
  return offsets[b + 1] - offsets[b];
}

DataSet collect_series(DataHead head, const std::vector<Series>& series) {
  if (head.classes.empty()) head.classes = found_classes(series);
  Utf8Names utf8;
  SourceColumns& source = head.source;
  for (std::string* text : {&head.name, &head.time_unit, &head.time_zero, &head.date_form, &source.id,
                            &source.time, &source.label, &source.group})
    *text = utf8(*text);
  for (auto* list : {&head.channels, &head.statics, &head.targets, &head.classes, &head.skipped, &head.notes,
                     &head.unused})
    utf8(*list);
  DataSet data = {.head = std::move(head)};
  const Labels labels(data.head.classes);
  size_t rows = 0;
  bool labelled = false, steps_labelled = false, dated = false;
  for (const Series& s : series) {
    check_series(data.head, s);
    rows += s.times.size();
    labelled = labelled || !s.label.empty();
    steps_labelled = steps_labelled || !s.step_labels.empty();
    dated = dated || !s.dates.empty();
  }
  data.times.reserve(rows);
  data.values.reserve(rows * data.head.channels.size());
  for (const Series& s : series) {
    data.ids.push_back(utf8(s.id));
    data.groups.push_back(utf8(s.group));
    data.parts.push_back(s.part);
    data.offsets.push_back(data.offsets.back() + static_cast<int64_t>(s.times.size()));
    append(data.times, s.times);
    append(data.values, s.values);
    append(data.statics, s.statics);
    append(data.targets, s.targets);
    append(data.unused, s.unused);
    if (dated) append(data.dates, s.dates.empty() ? std::vector<std::string>(s.times.size()) : s.dates);
    if (labelled) data.labels.push_back(labels.index(s, utf8(s.label)));
    if (!steps_labelled) continue;
    for (size_t i = 0; i < s.times.size(); ++i)
      data.step_labels.push_back(s.step_labels.empty() ? -1 : labels.index(s, utf8(s.step_labels[i])));
  }
  if (!utf8.note().empty()) data.head.notes.push_back(utf8.note());
  return data;
}

DataSet cut_series(const DataSet& data, const std::vector<Window>& windows) {
  DataSet part = {.head = data.head};
  const size_t channels = data.head.channels.size(), statics = data.head.statics.size(),
               targets = data.head.targets.size(), unused = data.head.unused.size();
  // rows first .. last - 1 of a table of the given width
  const auto take = [](auto& to, const auto& from, size_t first, size_t last, size_t width) {
    using Difference = std::ptrdiff_t;
    to.insert(to.end(), from.begin() + static_cast<Difference>(first * width),
              from.begin() + static_cast<Difference>(last * width));
  };
  size_t rows = 0;
  for (const Window& window : windows) {
    check_window(data, window);
    rows += static_cast<size_t>(window.last - window.first);
  }
  part.times.reserve(rows);
  part.values.reserve(rows * channels);
  for (const Window& window : windows) {
    const auto b = static_cast<size_t>(window.sample);
    const auto first = static_cast<size_t>(data.offsets[b] + window.first),
               last = static_cast<size_t>(data.offsets[b] + window.last);
    const bool whole = last - first == static_cast<size_t>(data.length(window.sample));
    part.ids.push_back(whole ? data.ids[b]
                             : data.ids[b] + " from " + time_text(data, static_cast<int64_t>(first)));
    part.groups.push_back(data.groups[b]);
    part.parts.push_back(data.parts[b]);
    part.offsets.push_back(part.offsets.back() + static_cast<int64_t>(last - first));
    take(part.times, data.times, first, last, 1);
    take(part.values, data.values, first, last, channels);
    take(part.statics, data.statics, b, b + 1, statics);
    take(part.targets, data.targets, b, b + 1, targets);
    take(part.unused, data.unused, first, last, unused);
    if (!data.dates.empty()) take(part.dates, data.dates, first, last, 1);
    if (!data.labels.empty()) part.labels.push_back(data.labels[b]);
    if (!data.step_labels.empty()) take(part.step_labels, data.step_labels, first, last, 1);
  }
  return part;
}

DataSet select_series(const DataSet& data, const std::vector<int64_t>& samples) {
  std::vector<Window> windows;
  for (const int64_t sample : samples) {
    if (sample < 0 || sample >= data.samples())
      throw std::invalid_argument("[select_series] no sample " + std::to_string(sample) + " in a set of " +
                                  std::to_string(data.samples()));
    windows.push_back({sample, 0, data.length(sample)});
  }
  return cut_series(data, windows);
}

DataSet join_data(const DataSet& first, const DataSet& second) {
  const auto check = [&](const char* what, const std::vector<std::string>& a,
                         const std::vector<std::string>& b) {
    if (a != b)
      throw std::runtime_error("'" + first.head.name + "' and '" + second.head.name + "' differ in their " +
                               what);
  };
  check("channels", first.head.channels, second.head.channels);
  check("static features", first.head.statics, second.head.statics);
  check("targets", first.head.targets, second.head.targets);
  check("classes", first.head.classes, second.head.classes);
  check("unused columns", first.head.unused, second.head.unused);
  if (first.labels.empty() != second.labels.empty() ||
      first.step_labels.empty() != second.step_labels.empty())
    throw std::runtime_error("only one of '" + first.head.name + "' and '" + second.head.name +
                             "' has labels");
  DataSet both = first;
  append(both.head.skipped, second.head.skipped);
  append(both.head.notes, second.head.notes);
  append(both.ids, second.ids);
  append(both.groups, second.groups);
  append(both.parts, second.parts);
  for (size_t b = 1; b < second.offsets.size(); ++b) both.offsets.push_back(first.rows() + second.offsets[b]);
  append(both.times, second.times);
  append(both.values, second.values);
  append(both.unused, second.unused);
  if (!first.dates.empty() || !second.dates.empty()) {
    both.dates.resize(first.times.size());
    append(both.dates, second.dates);
    both.dates.resize(both.times.size());
  }
  append(both.statics, second.statics);
  append(both.labels, second.labels);
  append(both.targets, second.targets);
  append(both.step_labels, second.step_labels);
  return both;
}

}  // namespace fastweights
