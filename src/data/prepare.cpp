#include "fastweights/data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/nearest.h"
#include "data/model_time.h"
#include "data/quantile.h"
#include "data/text.h"
#include "data/text_channels.h"
#include "data/time_axis.h"

namespace fastweights {
namespace {

using Rows = std::vector<int64_t>;

Rows first_rows(int64_t count) {
  Rows rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

// rows of the samples, one sample after another
Rows rows_of(const DataSet& data, const std::vector<int64_t>& samples) {
  Rows rows;
  for (const int64_t b : samples) {
    FW_CHECK(b >= 0 && b < data.samples(), "[prepare] no sample ", b, " in a set of ", data.samples());
    for (int64_t i = data.offsets[static_cast<size_t>(b)]; i < data.offsets[static_cast<size_t>(b) + 1]; ++i)
      rows.push_back(i);
  }
  return rows;
}

// some rows of a table
struct Table {
  const std::vector<double>& values;
  size_t columns;
  const Rows& rows;

  const double* row(int64_t i) const { return values.data() + static_cast<size_t>(i) * columns; }
};

// of each column; as in the published code: n - 1 degrees of freedom, and never zero
std::vector<Scale> standard_scales(const Table& table) {
  const size_t columns = table.columns;
  std::vector<double> counts(columns), means(columns), squares(columns);
  // whole rows at once; a missing value adds zero, which changes no sum
  const auto for_rows = [&](const auto& add) {
    for (const int64_t i : table.rows) {
      const double* x = table.row(i);
      for (size_t c = 0; c < columns; ++c) add(c, x[c], !std::isnan(x[c]));
    }
  };
  for_rows([count = counts.data(), sum = means.data()](size_t c, double x, bool known) {
    count[c] += known ? 1 : 0;
    sum[c] += known ? x : 0;
  });
  for (size_t c = 0; c < columns; ++c) means[c] /= counts[c];
  for_rows([mean = means.data(), sum = squares.data()](size_t c, double x, bool known) {
    sum[c] += known ? (x - mean[c]) * (x - mean[c]) : 0;
  });
  std::vector<Scale> scales(columns);
  for (size_t c = 0; c < columns; ++c) {
    if (counts[c] == 0) continue;
    scales[c] = {means[c], (counts[c] > 1 ? std::sqrt(squares[c] / (counts[c] - 1)) : 0) + 1e-5};
  }
  return scales;
}

Scale robust_scale(std::vector<double> values) {
  if (values.empty()) return {};
  const double median = data::quantile(values, 0.5),
               range = data::quantile(values, 0.75) - data::quantile(values, 0.25);
  if (range > 0) return {median, range / 1.349};
  // if half of the values are equal, the range says nothing about the others
  const Rows all = first_rows(static_cast<int64_t>(values.size()));
  return {median, standard_scales({values, 1, all})[0].deviation};
}

std::vector<Scale> robust_scales(const Table& table) {
  std::vector<std::vector<double>> known(table.columns);
  for (const int64_t i : table.rows) {
    for (size_t c = 0; c < table.columns; ++c) {
      if (!std::isnan(table.row(i)[c])) known[c].push_back(table.row(i)[c]);
    }
  }
  std::vector<Scale> scales;
  for (std::vector<double>& values : known) scales.push_back(robust_scale(std::move(values)));
  return scales;
}

// of each column; a column without known values is not scaled
std::vector<Scale> scales_of(const Table& table, Scaling scaling) {
  if (scaling == Scaling::None) return std::vector<Scale>(table.columns);
  return scaling == Scaling::Robust ? robust_scales(table) : standard_scales(table);
}

// static features with missing values
std::vector<int64_t> flagged(const Table& statics) {
  std::vector<int64_t> flags;
  for (size_t f = 0; f < statics.columns; ++f) {
    const auto missing = [&](int64_t sample) { return std::isnan(statics.row(sample)[f]); };
    if (std::any_of(statics.rows.begin(), statics.rows.end(), missing))
      flags.push_back(static_cast<int64_t>(f));
  }
  return flags;
}

// the index of each required name among the available ones
std::vector<size_t> positions(const std::vector<std::string>& required,
                              const std::vector<std::string>& available, const char* what,
                              const std::string& name) {
  std::vector<size_t> found;
  for (const std::string& word : required) {
    const auto position = std::find(available.begin(), available.end(), word);
    for (const std::string& other : available) {
      // a column of texts is a channel per text
      if (position == available.end() && other.starts_with(word + "="))
        throw std::runtime_error(message("the model was trained with numbers in column ",
                                         data::in_quotes(word), ", which ", data::in_quotes(name),
                                         " fills with texts such as ",
                                         data::in_quotes(other.substr(word.size() + 1))));
    }
    if (position == available.end())
      throw std::runtime_error(message(
          "the model was trained with ", what, " ", data::in_quotes(word), ", which ", data::in_quotes(name),
          " lacks",
          suggestion(word, available, [](const std::string& other) { return data::in_quotes(other); })));
    found.push_back(static_cast<size_t>(position - available.begin()));
  }
  return found;
}

// a value of a column, for messages: of a series, or of one of its rows
struct Cell {
  const char* what;
  const std::string& name;
  const DataSet& data;
  int64_t index;  // of a row, or of a series
  bool of_row;
};

[[noreturn]] void refuse_value(const Cell& cell, double value) {
  const std::vector<int64_t>& offsets = cell.data.offsets;
  const auto series = cell.of_row
                          ? std::upper_bound(offsets.begin(), offsets.end(), cell.index) - offsets.begin() - 1
                          : cell.index;
  const auto b = static_cast<size_t>(series);
  throw std::runtime_error(
      message(cell.what, " ", data::in_quotes(cell.name), ", series ", data::in_quotes(cell.data.ids[b]),
              cell.of_row ? message(", row ", cell.index - offsets[b] + 1) : "", ": ", data::exact(value),
              " is too large to scale in float32; correct it, or leave it empty"));
}

// columns of one kind with their scales
struct Scaled {
  const char* what;
  const std::vector<std::string>& names;
  const std::vector<double>& values;
  const std::vector<Scale>& scales;
  double clip;  // 0: none
};

// names the first value that is not finite in float32 after scaling
void check_scaled(const DataSet& data, const Scaled& table) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const size_t columns = table.names.size();
  for (size_t i = 0; columns > 0 && i < table.values.size(); ++i) {
    const Scale& scale = table.scales[i % columns];
    const double x = table.values[i];
    if (std::isnan(x)) continue;
    const bool usable = std::isfinite(scale.mean) && std::isfinite(scale.deviation);
    // the value that makes a scale infinite is the largest one
    const bool guilty = std::abs(x) > std::sqrt(std::numeric_limits<double>::max()) / 1e9;
    if (usable ? table.clip == 0 && std::abs(scale(x)) > kLargest : guilty)
      refuse_value({table.what, table.names[i % columns], data, static_cast<int64_t>(i / columns),
                    &table.values == &data.values},
                   x);
  }
}

}  // namespace

int64_t Preparation::model_channels() const {
  const auto values = static_cast<int64_t>(channels.size());
  return values * (config.intensity ? 2 : 1) + (config.time_channel ? 1 : 0);
}

int64_t Preparation::model_statics() const {
  return static_cast<int64_t>(statics.size() + static_flags.size());
}

Preparation fit_preparation(const DataSet& data, const std::vector<int64_t>& samples,
                            const PrepareConfig& config) {
  FW_CHECK(!samples.empty(), "[prepare] no series to train on");
  FW_CHECK(data.channels() > 0, "[prepare] ", data::in_quotes(data.head.name), " has no channels");
  FW_CHECK(config.clip >= 0, "[prepare] clip must not be negative, got ", config.clip);
  FW_CHECK(config.usual_gaps >= 0 && config.usual_gaps <= 1, "[prepare] usual_gaps must be 0 to 1, got ",
           config.usual_gaps);
  const DataHead& head = data.head;
  const Rows rows = rows_of(data, samples);
  const Table statics = {data.statics, head.statics.size(), samples};
  Preparation p = {.config = config,
                   .channels = head.channels,
                   .statics = head.statics,
                   .targets = head.targets,
                   .classes = head.classes,
                   .channel_texts = head.channel_texts,
                   .static_texts = head.static_texts};
  p.time_unit = head.time_unit;
  p.time_form = data::time_form_of(head);
  p.channel_scales = scales_of({data.values, head.channels.size(), rows}, config.scaling);
  p.static_scales = scales_of(statics, Scaling::Standard);
  p.target_scales = scales_of({data.targets, head.targets.size(), samples}, Scaling::Standard);
  p.static_flags = flagged(statics);
  if (config.typical_count > 0)
    p.count_scale = std::max(
        1.0, static_cast<double>(rows.size()) / static_cast<double>(samples.size()) / config.typical_count);
  check_scaled(data, {"channel", head.channels, data.values, p.channel_scales, config.clip});
  check_scaled(data, {"static feature", head.statics, data.statics, p.static_scales, config.clip});
  check_scaled(data, {"target", head.targets, data.targets, p.target_scales, 0});
  data::fit_time(p, data, samples);
  return p;
}

Preparation fit_preparation(const DataSet& train, const PrepareConfig& config) {
  return fit_preparation(train, first_rows(train.samples()), config);
}

DataSet match_data(const DataSet& data, const Preparation& preparation) {
  const DataHead& head = data.head;
  const std::string &unit = head.time_unit, &trained = preparation.time_unit;
  if (!unit.empty() && !trained.empty() && unit != trained)
    throw std::runtime_error(message("the model was trained with times in units of ",
                                     data::in_quotes(trained), ", but ", data::in_quotes(head.name),
                                     " has units of ", data::in_quotes(unit)));
  DataSet result = data;
  // one table after another, as the preparation has them
  const auto match = [&](const data::NamedTable& table, const std::vector<std::string>& names,
                         const std::vector<TextColumn>& texts, const char* what) {
    data::add_text_channels(table, texts);
    table.values =
        data::take_columns(table.values, table.names.size(), positions(names, table.names, what, head.name));
    table.names = names;
    table.texts = texts;
  };
  match({result.head.channels, result.head.channel_texts, result.values}, preparation.channels,
        preparation.channel_texts, "channel");
  match({result.head.statics, result.head.static_texts, result.statics}, preparation.statics,
        preparation.static_texts, "static feature");
  // targets may be unknown
  if (!head.targets.empty()) {
    result.targets = data::take_columns(data.targets, head.targets.size(),
                                        positions(preparation.targets, head.targets, "target", head.name));
  } else {
    result.targets.assign(data.ids.size() * preparation.targets.size(),
                          std::numeric_limits<double>::quiet_NaN());
  }
  result.head.targets = preparation.targets;
  const auto translated = [&](int64_t label) -> int64_t {
    if (label < 0) return -1;
    const std::string& name = head.classes[static_cast<size_t>(label)];
    const auto position = std::find(preparation.classes.begin(), preparation.classes.end(), name);
    return position == preparation.classes.end() ? -1 : position - preparation.classes.begin();
  };
  for (int64_t& label : result.labels) label = translated(label);
  for (int64_t& label : result.step_labels) label = translated(label);
  result.head.classes = preparation.classes;
  return result;
}

}  // namespace fastweights
