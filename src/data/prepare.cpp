#include "fastweights/data.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/nearest.h"

namespace fastweights {
namespace {

// as in the published code: n - 1 degrees of freedom, and never zero
Scale standard(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double x : values) sum += x;
  const double mean = sum / count;
  for (const double x : values) squares += (x - mean) * (x - mean);
  const double deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  return {mean, deviation + 1e-5};
}

double quantile(std::vector<double>& values, double fraction) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Scale robust(std::vector<double> values) {
  const double median = quantile(values, 0.5), range = quantile(values, 0.75) - quantile(values, 0.25);
  // if half of the values are equal, the range says nothing about the others
  if (range <= 0) return {median, standard(values).deviation};
  return {median, range / 1.349};
}

// of one column of a table
Scale scale_of(const std::vector<double>& table, size_t column, size_t columns, Scaling scaling) {
  std::vector<double> known;
  for (size_t i = column; i < table.size(); i += columns) {
    if (!std::isnan(table[i])) known.push_back(table[i]);
  }
  if (known.empty() || scaling == Scaling::None) return {};
  return scaling == Scaling::Robust ? robust(std::move(known)) : standard(known);
}

double median_gap(const DataSet& data) {
  std::vector<double> gaps;
  for (size_t b = 0; b + 1 < data.offsets.size(); ++b) {
    for (auto i = static_cast<size_t>(data.offsets[b]) + 1; i < static_cast<size_t>(data.offsets[b + 1]); ++i)
      gaps.push_back(data.times[i] - data.times[i - 1]);
  }
  return gaps.empty() ? 1 : quantile(gaps, 0.5);
}

// the mean duration of a series, in median gaps
double typical_duration(const DataSet& data, double gap) {
  double sum = 0;
  for (size_t b = 0; b + 1 < data.offsets.size(); ++b)
    sum += data.times[static_cast<size_t>(data.offsets[b + 1]) - 1] -
           data.times[static_cast<size_t>(data.offsets[b])];
  return sum / gap / static_cast<double>(data.samples());
}

// the index of each required name among the available ones
std::vector<size_t> positions(const std::vector<std::string>& required,
                              const std::vector<std::string>& available, const char* what,
                              const std::string& name) {
  std::vector<size_t> found;
  for (const std::string& word : required) {
    const auto position = std::find(available.begin(), available.end(), word);
    if (position == available.end())
      throw std::runtime_error(
          message("the model was trained with ", what, " '", word, "', which '", name, "' lacks",
                  available.empty() ? "" : "; the nearest is '" + nearest(word, available) + "'"));
    found.push_back(static_cast<size_t>(position - available.begin()));
  }
  return found;
}

std::vector<double> columns(const std::vector<double>& table, size_t width,
                            const std::vector<size_t>& which) {
  std::vector<double> taken;
  if (width == 0) return taken;
  taken.reserve(table.size() / width * which.size());
  for (size_t row = 0; row * width < table.size(); ++row) {
    for (const size_t column : which) taken.push_back(table[row * width + column]);
  }
  return taken;
}

}  // namespace

int64_t Preparation::model_channels() const {
  const auto values = static_cast<int64_t>(channels.size());
  return values * (config.intensity ? 2 : 1) + (config.time_channel ? 1 : 0);
}

int64_t Preparation::model_statics() const {
  return static_cast<int64_t>(statics.size() + static_flags.size());
}

Preparation fit_preparation(const DataSet& train, const PrepareConfig& config) {
  FW_CHECK(train.samples() > 0, "[prepare] no series to train on");
  FW_CHECK(train.channels() > 0, "[prepare] '", train.head.name, "' has no channels");
  FW_CHECK(config.clip >= 0, "[prepare] clip must not be negative, got ", config.clip);
  const DataHead& head = train.head;
  Preparation p = {.config = config,
                   .channels = head.channels,
                   .statics = head.statics,
                   .targets = head.targets,
                   .classes = head.classes};
  p.time_unit = head.time_unit;
  for (size_t c = 0; c < head.channels.size(); ++c)
    p.channel_scales.push_back(scale_of(train.values, c, head.channels.size(), config.scaling));
  for (size_t f = 0; f < head.statics.size(); ++f) {
    p.static_scales.push_back(scale_of(train.statics, f, head.statics.size(), Scaling::Standard));
    for (size_t i = f; i < train.statics.size(); i += head.statics.size()) {
      if (!std::isnan(train.statics[i])) continue;
      p.static_flags.push_back(static_cast<int64_t>(f));
      break;
    }
  }
  for (size_t o = 0; o < head.targets.size(); ++o)
    p.target_scales.push_back(scale_of(train.targets, o, head.targets.size(), Scaling::Standard));
  p.median_gap = median_gap(train);
  if (config.typical_time > 0)
    p.time_scale = std::max(1.0, typical_duration(train, p.median_gap) / config.typical_time);
  if (config.typical_count > 0)
    p.count_scale = std::max(
        1.0, static_cast<double>(train.rows()) / static_cast<double>(train.samples()) / config.typical_count);
  return p;
}

DataSet match_data(const DataSet& data, const Preparation& preparation) {
  const DataHead& head = data.head;
  const std::string &unit = head.time_unit, &trained = preparation.time_unit;
  if (!unit.empty() && !trained.empty() && unit != trained)
    throw std::runtime_error(message("the model was trained with times in units of '", trained, "', but '",
                                     head.name, "' has units of '", unit, "'"));
  DataSet result = data;
  result.head.channels = preparation.channels;
  result.head.statics = preparation.statics;
  result.values = columns(data.values, head.channels.size(),
                          positions(preparation.channels, head.channels, "channel", head.name));
  result.statics = columns(data.statics, head.statics.size(),
                           positions(preparation.statics, head.statics, "static feature", head.name));
  // targets may be unknown
  if (!head.targets.empty()) {
    result.targets = columns(data.targets, head.targets.size(),
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
