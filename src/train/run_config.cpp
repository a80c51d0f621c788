#include <algorithm>
#include <cmath>

#include "fastweights/nearest.h"
#include "fastweights/run.h"
#include "model/config_fields.h"
#include "train/run_fields.h"

namespace fastweights {
namespace {

struct ModelName {
  std::string rule, drive;
};

ModelName parse_name(const std::string& name) {
  const std::vector<std::string>& known = model_names();
  FW_CHECK(std::find(known.begin(), known.end(), name) != known.end(), "there is no model '", name,
           "'; the nearest is '", nearest(name, known), "'");
  const size_t dash = name.find('-');
  return {name.substr(0, dash), name.substr(dash + 1)};
}

double typical_length(const DataSet& data) {
  return static_cast<double>(data.rows()) / static_cast<double>(std::max<int64_t>(data.samples(), 1));
}

double missing_share(const DataSet& data) {
  const auto missing =
      std::count_if(data.values.begin(), data.values.end(), [](double x) { return std::isnan(x); });
  return static_cast<double>(missing) / static_cast<double>(std::max<size_t>(data.values.size(), 1));
}

// few series, and those that are mostly filled in, are learned by heart otherwise
double default_dropout(const DataSet& data) {
  constexpr int64_t kMany = 1000;
  if (missing_share(data) > 0.5) return 0.3;
  return data.samples() < kMany ? 0.2 : 0.1;
}

// sizes, clock and dropout that do on data of many kinds; long series are read in windows
ModelConfig default_model(const std::string& name, const DataSet& data, const Preparation& preparation,
                          TaskKind kind) {
  constexpr double kLong = 1000, kWindows = 250;
  const ModelName parts = parse_name(name);
  ModelConfig config = {.channels = preparation.model_channels(),
                        .static_features = preparation.model_statics(),
                        .outputs = output_count(kind, preparation)};
  config.rule = parts.rule == "delta" ? "delta_pre" : parts.rule;
  config.drive = parts.drive == "cde" ? Drive::DerivativeKeys : Drive::X;
  config.hidden_size = 64;
  config.heads = 16;
  config.feed_forward_size = 128;
  config.time_unit = preparation.median_gap;
  config.dropout = config.value_dropout = default_dropout(data);
  if (config.static_features > 0) {
    config.initial = InitialWeights::StaticFeatures;
    config.static_hidden_size = 64;
  }
  const double length = typical_length(data);
  const bool per_row = kind != TaskKind::Classification && kind != TaskKind::Regression;
  if (parts.drive == "rde" || (length > kLong && !per_row)) {
    config.control.kind = ControlKind::LogSignature;
    config.control.depth = config.channels <= 8 ? 2 : 1;
    config.control.window_increments = std::max<int64_t>(2, std::llround(length / kWindows));
    config.drive = Drive::X;
    config.time_unit = 1;
    config.control.clock = WindowClock::Windows;
  }
  return config;
}

// values that have a projection of their own are normalised, unless somebody decided otherwise
bool default_value_norm(const ModelConfig& model) {
  return model.drive != Drive::X && model.drive != Drive::TensorMap;
}

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> kNames = {"delta-cde", "delta-ode", "delta-rde", "oja-cde", "oja-ode",
                                                  "oja-rde",   "hebb-cde",  "hebb-ode",  "hebb-rde"};
  return kNames;
}

std::string to_json(const RunConfig& config) { return json_of(config).dump(2); }

RunConfig run_config_from_json(const std::string& text) { return read_fields(parse_json(text), RunConfig{}); }

std::string with_setting(const std::string& settings, const std::string& key, const std::string& value) {
  // a patch would take the key away
  FW_CHECK(value != "null", "[config] ", key, " cannot be null");
  Json json = parse_json(settings);
  json.merge_patch(json_setting(key, value));
  return json.dump();
}

RunConfig make_run_config(const std::string& model_name, const std::string& settings, const DataSet& data) {
  const Json given = parse_json(settings);
  RunConfig config = read_fields(given, RunConfig{});
  config.task.kind = task_kind(data, config.task);
  const Split parts = split(data, config.split);
  FW_CHECK(!parts.train.empty(), "[split] no series of '", data.head.name,
           "' is left to train on: ", parts.validation.size(), " are for validation and ", parts.test.size(),
           " for the test", parts.rule == SplitRule::Grouped ? "; there are too few groups" : "");
  const DataSet train = subset(data, parts.train);
  config.model = default_model(model_name, train, fit_preparation(train, config.prepare), config.task.kind);
  config = read_fields(given, config);
  if (!given.contains(Json::json_pointer("/model/value_norm")))
    config.model.value_norm = default_value_norm(config.model);
  config.task.kind = task_kind(data, config.task);
  check_config(config.model);
  return config;
}

}  // namespace fastweights
