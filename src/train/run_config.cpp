#include <algorithm>
#include <cmath>

#include "fastweights/run.h"
#include "model/config_fields.h"
#include "train/run_fields.h"

namespace fastweights {
namespace {

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

DataShape shape_of(const DataSet& data, const Preparation& preparation, TaskKind kind) {
  return {.channels = preparation.model_channels(),
          .static_features = preparation.model_statics(),
          .outputs = output_count(kind, preparation),
          .known_channels = preparation.model_channels() - static_cast<int64_t>(preparation.channels.size()),
          .median_gap = preparation.median_gap,
          .length = typical_length(data),
          .dropout = default_dropout(data),
          .per_row = kind != TaskKind::Classification && kind != TaskKind::Regression};
}

// values that have a projection of their own are normalised, unless the settings say otherwise
void set_value_norm(ModelConfig& model) {
  if (auto* fast = model.architecture.get_if<FastWeights>()) fast->value_norm = fast->drive != Drive::X;
}

// of version 0.1, too
Json upgraded(Json json) {
  if (json.is_object() && json.contains("model")) json["model"] = upgraded_model_json(json["model"]);
  return json;
}

}  // namespace

std::string to_json(const RunConfig& config) { return json_of(config).dump(2); }

RunConfig run_config_from_json(const std::string& text) {
  return read_fields(upgraded(parse_json(text)), RunConfig{});
}

std::string with_setting(const std::string& settings, const std::string& key, const std::string& value) {
  // a patch would take the key away
  FW_CHECK(value != "null", "[config] ", key, " cannot be null");
  Json json = parse_json(settings);
  json.merge_patch(json_setting(key, value));
  return json.dump();
}

RunConfig make_run_config(const std::string& model_name, const std::string& settings, const DataSet& data) {
  const Json given = upgraded(parse_json(settings));
  // the model is read on top of its defaults, which depend on the rest
  Json rest = given;
  if (rest.is_object()) rest.erase("model");
  RunConfig config = read_fields(rest, RunConfig{});
  config.task.kind = task_kind(data, config.task);
  const Split parts = split_data(data, config.split);
  FW_CHECK(!parts.train.empty(), "[split] no series of '", data.head.name,
           "' is left to train on: ", parts.validation.size(), " are for validation and ", parts.test.size(),
           " for the test", parts.rule == SplitRule::Grouped ? "; there are too few groups" : "");
  const DataSet train = select_series(data, parts.train);
  config.model =
      named_model(model_name, shape_of(train, fit_preparation(train, config.prepare), config.task.kind));
  if (given.contains("model")) check_architecture_keys(given["model"], config.model);
  config = read_fields(given, config);
  if (!given.contains(Json::json_pointer("/model/value_norm"))) set_value_norm(config.model);
  config.task.kind = task_kind(data, config.task);
  check_config(config.model);
  const auto* gru = config.model.architecture.get_if<GruOde>();
  FW_CHECK(!gru || gru->form == GruOdeForm::Direct || config.prepare.time_channel,
           "[config] architecture gru_ode is driven by channel 0, which must be time: prepare.time_channel");
  return config;
}

}  // namespace fastweights
