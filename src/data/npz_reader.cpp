#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>

#include "base/checked.h"
#include "base/nearest.h"
#include "data/csv_table.h"
#include "data/files.h"
#include "data/npz.h"
#include "data/readers.h"
#include "data/text_channels.h"

namespace fastweights::data {
namespace {

using Kind = NpyArray::Kind;

const std::vector<std::string> kArrays = {
    "values",        "times",        "offsets",       "lengths",      "labels",    "classes",
    "ids",           "groups",       "parts",         "channels",     "statics",   "targets",
    "date_form",     "static_names", "step_labels",   "target_names", "time_unit", "time_zero",
    "channel_texts", "static_texts", "source_columns"};

// the arrays of a file by name, with checks of shape and kind
class Arrays {
 public:
  Arrays(std::map<std::string, NpyArray> arrays, const std::string& file)
      : arrays_(std::move(arrays)), file_(file) {
    for (const auto& [name, array] : arrays_) {
      if (std::find(kArrays.begin(), kArrays.end(), name) == kArrays.end())
        refuse_file("unknown array ", in_quotes(name), suggestion(name, kArrays));
    }
  }

  template <typename... Parts>
  [[noreturn]] void refuse_file(const Parts&... parts) const {
    throw std::runtime_error(message(file_, ": ", parts...));
  }

  const NpyArray* find(const std::string& name) const {
    const auto found = arrays_.find(name);
    return found == arrays_.end() ? nullptr : &found->second;
  }

  void check(const std::string& name, const std::vector<int64_t>& shape) const {
    const std::vector<int64_t>& found = find(name)->shape;
    if (found != shape) refuse_file(name, ": expected the shape ", shown(shape), ", got ", shown(found));
  }

  // integers are converted
  std::vector<double> reals(const std::string& name) const {
    const NpyArray& array = *find(name);
    if (array.kind == Kind::Text) refuse_file(name, ": expected numbers, got strings");
    if (array.kind == Kind::Real) return array.reals;
    return {array.integers.begin(), array.integers.end()};
  }

  const std::vector<int64_t>& integers(const std::string& name) const {
    if (find(name)->kind != Kind::Integer) refuse_file(name, ": expected int64, got another type");
    return find(name)->integers;
  }

  // strings, or integers as strings; empty without such an array
  std::vector<std::string> texts(const std::string& name) const {
    const NpyArray* array = find(name);
    if (!array) return {};
    if (array->kind == Kind::Real) refuse_file(name, ": expected strings, got floating-point numbers");
    if (array->kind == Kind::Text) return array->texts;
    std::vector<std::string> result;
    for (const int64_t x : array->integers) result.push_back(std::to_string(x));
    return result;
  }

  std::string word(const std::string& name) const {
    const std::vector<std::string> found = texts(name);
    return found.empty() ? "" : found[0];
  }

  static std::string shown(const std::vector<int64_t>& shape) {
    std::string text = "[";
    for (const int64_t n : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
    return text + "]";
  }

 private:
  std::map<std::string, NpyArray> arrays_;
  const std::string& file_;
};

// rows of all series one after another, from either layout
struct NpzRows {
  std::vector<int64_t> offsets = {};
  std::vector<double> times = {}, values = {};
  int64_t channels = 0;
  std::string time_unit = {};
};

NpzRows flat_rows(const Arrays& arrays) {
  const int64_t n = arrays.find("values")->shape[0];
  NpzRows rows = {.offsets = arrays.integers("offsets"), .values = arrays.reals("values")};
  rows.channels = arrays.find("values")->shape[1];
  const std::vector<int64_t>& offsets = rows.offsets;
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != n ||
      !std::is_sorted(offsets.begin(), offsets.end()))
    arrays.refuse_file("offsets: expected values that increase from 0 to ", n, ", the number of rows");
  if (!arrays.find("times")) arrays.refuse_file("no array 'times'; expected the shape [", n, "]");
  arrays.check("times", {n});
  rows.times = arrays.reals("times");
  return rows;
}

// values [B, L, C]; times [B, L], [L] or absent; lengths [B] or absent
NpzRows padded_rows(const Arrays& arrays) {
  const std::vector<int64_t> shape = arrays.find("values")->shape;
  const int64_t samples = shape[0], length = shape[1];
  const std::vector<double> values = arrays.reals("values");
  std::vector<int64_t> lengths(static_cast<size_t>(values.empty() ? 0 : samples), length);
  if (arrays.find("lengths")) {
    arrays.check("lengths", {samples});
    lengths = arrays.integers("lengths");
  }
  NpzRows rows = {.offsets = {0}, .channels = shape[2]};
  std::vector<double> times;
  const NpyArray* given = arrays.find("times");
  if (given && given->shape.size() == 2) arrays.check("times", {samples, length});
  if (given && given->shape.size() != 2) arrays.check("times", {length});
  if (given) times = arrays.reals("times");
  if (!given) rows.time_unit = "step";
  for (size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] < 1 || lengths[b] > length)
      arrays.refuse_file("lengths: expected 1 to ", length, ", got ", lengths[b]);
    for (int64_t i = 0; i < lengths[b]; ++i) {
      const auto row = static_cast<size_t>(static_cast<int64_t>(b) * length + i);
      const auto channels = static_cast<size_t>(rows.channels);
      rows.times.push_back(!given                     ? static_cast<double>(i)
                           : given->shape.size() == 2 ? times[row]
                                                      : times[static_cast<size_t>(i)]);
      for (size_t c = 0; c < channels; ++c) rows.values.push_back(values[row * channels + c]);
    }
    rows.offsets.push_back(rows.offsets.back() + lengths[b]);
  }
  return rows;
}

// class names; integers are indices into `classes`, or names if there are no classes
std::vector<std::string> labels(const Arrays& arrays, const std::string& name, int64_t count,
                                const std::vector<std::string>& classes) {
  if (!arrays.find(name)) return {};
  arrays.check(name, {count});
  if (arrays.find(name)->kind == Kind::Real)
    arrays.refuse_file(
        name, ": expected int64 or strings, got floating-point numbers; values to predict belong in targets");
  std::vector<std::string> result = arrays.texts(name);
  if (arrays.find(name)->kind == Kind::Text) return result;
  const auto most = static_cast<int64_t>(classes.size());
  const std::vector<int64_t>& indices = arrays.integers(name);
  for (size_t i = 0; i < result.size(); ++i) {
    if (indices[i] < -1 || (most > 0 && indices[i] >= most))
      arrays.refuse_file(name, ": expected 0 ", most > 0 ? message("to ", most - 1) : "or more",
                         ", or -1 for unknown, got ", indices[i]);
    if (most > 0 || indices[i] < 0)
      result[i] = indices[i] < 0 ? "" : classes[static_cast<size_t>(indices[i])];
  }
  return result;
}

// values per series [B, F], or [B] for a single one, and their names
struct Extras {
  std::vector<double> values;
  std::vector<std::string> names;
};

Extras extras(const Arrays& arrays, const std::string& name, const std::string& names,
              const std::string& word, int64_t samples) {
  const NpyArray* array = arrays.find(name);
  if (!array) return {};
  const int64_t count = array->shape.size() == 2 ? array->shape[1] : 1;
  if (array->shape.size() == 2) arrays.check(name, {samples, count});
  if (array->shape.size() != 2) arrays.check(name, {samples});
  Extras found = {arrays.reals(name), arrays.texts(names)};
  if (found.names.empty() && !found.values.empty()) {
    for (int64_t i = 1; i <= count; ++i) found.names.push_back(word + " " + std::to_string(i));
  }
  if (static_cast<int64_t>(found.names.size()) != count && !found.values.empty())
    arrays.refuse_file("expected ", count, " ", names, ", got ", found.names.size());
  return found;
}

std::vector<std::string> per_series(const Arrays& arrays, const std::string& name, int64_t samples) {
  if (arrays.find(name)) arrays.check(name, {samples});
  std::vector<std::string> result = arrays.texts(name);
  result.resize(static_cast<size_t>(samples));
  return result;
}

template <typename T>
std::vector<T> slice(const std::vector<T>& all, int64_t from, int64_t to) {
  if (all.empty()) return {};
  return {all.begin() + from, all.begin() + to};
}

// chooses between the two layouts
NpzRows read_rows(const Arrays& arrays) {
  const NpyArray* values = arrays.find("values");
  if (!values) arrays.refuse_file("no array 'values'; expected the shape [N, C] with offsets, or [B, L, C]");
  const bool offsets = arrays.find("offsets") != nullptr;
  if (offsets && values->shape.size() == 2) return flat_rows(arrays);
  if (offsets || values->shape.size() != 3)
    arrays.refuse_file("values: expected the shape [N, C] with offsets, or [B, L, C] without, got ",
                       Arrays::shown(values->shape), offsets ? " with" : " without", " offsets");
  return padded_rows(arrays);
}

std::vector<TextColumn> read_texts(const Arrays& arrays, const std::string& name) {
  try {
    return text_columns(arrays.texts(name));
  } catch (const std::runtime_error& error) {
    arrays.refuse_file(name, ": ", error.what());
  }
}

DataHead read_head(const Arrays& arrays, const NpzRows& rows) {
  DataHead head = {.channels = arrays.texts("channels"), .classes = arrays.texts("classes")};
  if (head.channels.empty() && !rows.values.empty())
    head.channels = numbered_channels(static_cast<size_t>(rows.channels));
  if (static_cast<int64_t>(head.channels.size()) != rows.channels)
    arrays.refuse_file("expected ", rows.channels, " channels, got ", head.channels.size());
  std::set<std::string> seen;
  for (const std::string& name : head.classes) {
    if (name.empty() || !seen.insert(name).second)
      arrays.refuse_file("duplicate or empty class name ", in_quotes(name));
  }
  head.time_unit = arrays.find("time_unit") ? arrays.word("time_unit") : rows.time_unit;
  head.time_zero = arrays.word("time_zero");
  head.date_form = arrays.word("date_form");
  const std::vector<std::string> source = arrays.texts("source_columns");
  if (!source.empty() && source.size() != 4)
    arrays.refuse_file("source_columns: expected 4 names, got ", source.size());
  if (!source.empty())
    head.source = {.id = source[0], .time = source[1], .label = source[2], .group = source[3]};
  head.channel_texts = read_texts(arrays, "channel_texts");
  head.static_texts = read_texts(arrays, "static_texts");
  return head;
}

}  // namespace

DataSet parse_npz(std::string_view bytes, const std::string& file, size_t limit) {
  const Arrays arrays(parse_npz_arrays(bytes, file, limit), file);
  const NpzRows rows = read_rows(arrays);
  const int64_t samples = static_cast<int64_t>(rows.offsets.size()) - 1;
  if (samples == 0) arrays.refuse_file("no series; expected at least one");
  DataHead head = read_head(arrays, rows);
  const auto ids = per_series(arrays, "ids", samples), groups = per_series(arrays, "groups", samples),
             parts = per_series(arrays, "parts", samples),
             series_labels = labels(arrays, "labels", samples, head.classes),
             step_labels = labels(arrays, "step_labels", rows.offsets.back(), head.classes);
  const Extras statics = extras(arrays, "statics", "static_names", "static", samples),
               targets = extras(arrays, "targets", "target_names", "target", samples);
  head.statics = statics.names;
  head.targets = targets.names;
  const auto features = static_cast<int64_t>(statics.names.size()),
             outputs = static_cast<int64_t>(targets.names.size());
  require_memory(checked_product({static_cast<size_t>(samples), kSeriesBytes}), limit, file, "its series");
  std::vector<Series> series(static_cast<size_t>(samples));
  for (int64_t b = 0; b < samples; ++b) {
    const auto i = static_cast<size_t>(b);
    const int64_t from = rows.offsets[i], to = rows.offsets[i + 1];
    const std::optional<Part> part = part_named(parts[i]);
    if (!part)
      arrays.refuse_file("expected the part train, validation, test or any, got ", in_quotes(parts[i]));
    series[i] = {.id = ids[i].empty() ? std::to_string(b + 1) : ids[i],
                 .group = groups[i],
                 .part = *part,
                 .times = slice(rows.times, from, to),
                 .values = slice(rows.values, from * rows.channels, to * rows.channels),
                 .statics = slice(statics.values, b * features, (b + 1) * features),
                 .label = series_labels.empty() ? "" : series_labels[i],
                 .targets = slice(targets.values, b * outputs, (b + 1) * outputs),
                 .step_labels = slice(step_labels, from, to),
                 .where = message(file, ": series ", b + 1)};
  }
  return collect_series(std::move(head), series);
}

DataSet read_npz(const std::string& path, const ReadOptions& options) {
  const std::string bytes = read_bytes(path, options);
  DataSet data = parse_npz(bytes, path, unpack_limit(options, bytes.size()));
  data.head.name = decoded(stem(path)).text;
  data.head.origin = "npz";
  if (!options.time_unit.empty() && data.head.time_zero.empty()) data.head.time_unit = options.time_unit;
  return data;
}

}  // namespace fastweights::data
