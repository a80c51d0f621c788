#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "fastweights/run.h"
#include "train/clock.h"
#include "train/fit.h"
#include "train/run_data.h"
#include "train/run_fields.h"
#include "train/settings.h"

namespace fastweights {
namespace {

// values with a projection of their own are normalised, unless a setting says otherwise
void set_value_norm(ModelConfig& model) {
  if (auto* fast = model.architecture.get_if<FastWeights>()) fast->value_norm = fast->drive != Drive::X;
}

// configurations of version 0.1, too
Json upgraded(Json json) {
  if (!json.is_object()) return json;
  if (json.contains("model")) json["model"] = upgraded_model_json(json["model"]);
  if (json.contains("training") && json["training"].is_object() && json["training"].contains("like_length")) {
    json["training"]["bucket_batches"] = json["training"]["like_length"];
    json["training"].erase("like_length");
  }
  return json;
}

void flatten(const Json& json, const std::string& where, Settings& settings) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object() && !value.empty()) {
      flatten(value, where + key + ".", settings);
    } else {
      settings.push_back({where + key, value.dump()});
    }
  }
}

std::string listed_models(TaskKind kind) {
  std::string text;
  for (const std::string& name : models_for(kind)) text += (text.empty() ? "" : ", ") + name;
  return text;
}

ModelConfig model_config(const RunSetup& setup, const RunData& data) {
  const Json given = upgraded(settings_json(all_settings(setup)));
  const Json own = given.contains("model") ? Json{{"model", given["model"]}} : Json::object();
  RunConfig config;
  config.model = named_model(setup.model, shape_of(data.train, data.preparation, data.task.kind));
  FW_CHECK(serves(config.model.architecture.type().tasks, data.task.kind), "model ", setup.model,
           " does not serve the task ", name_of(data.task.kind),
           "; these do: ", listed_models(data.task.kind));
  if (own.contains("model")) check_architecture_keys(own["model"], config.model);
  config = read_fields(own, config);
  if (!given.contains(Json::json_pointer("/model/value_norm"))) set_value_norm(config.model);
  check_config(config.model);
  const auto* gru = config.model.architecture.get_if<GruOde>();
  FW_CHECK(!gru || gru->form == GruOdeForm::Direct || data.preparation.config.time_channel,
           "[config] architecture gru_ode is driven by channel 0, which must be time: prepare.time_channel");
  return config.model;
}

Run run_of(const RunSetup& setup, RunConfig config, RunData data, double seconds) {
  config.task = data.task;
  config.split = data.split_config;
  config.model = model_config(setup, data);
  use_plain_data(config.model, data.preparation);
  return {.model = setup.model,
          .config = std::move(config),
          .data = std::move(data),
          .initialise_from = setup.initialise_from,
          .phases = {{"splitting and scaling", seconds}}};
}

}  // namespace

RunConfig config_of(const RunSetup& setup) {
  Json given = upgraded(settings_json(all_settings(setup)));
  given.erase("model");
  RunConfig config = read_fields(given, RunConfig{});
  config.data = setup.source;
  return config;
}

std::string default_metric(TaskKind kind, int64_t outputs) {
  if (!is_classification(kind)) return "mse";
  return outputs == 1 ? "auroc" : "accuracy";
}

std::string to_json(const RunConfig& config) { return json_of(config).dump(2); }

RunConfig run_config_of(const Json& json) { return read_fields(upgraded(json), RunConfig{}); }

RunConfig run_config_from_json(const std::string& text) { return run_config_of(parse_json(text)); }

Settings all_settings(const RunSetup& setup) {
  Settings all = preset_settings(setup.preset, setup.model);
  all.insert(all.end(), setup.settings.begin(), setup.settings.end());
  return all;
}

Json settings_json(const Settings& settings) {
  Json json = Json::object();
  for (const auto& [key, value] : settings) {
    // a patch would remove the key
    FW_CHECK(value != "null", "[config] ", key, " cannot be null");
    json.merge_patch(json_setting(key, value));
  }
  return json;
}

ModelConfig default_model(const std::string& name, const RunData& data) {
  ModelConfig model = named_model(name, shape_of(data.train, data.preparation, data.task.kind));
  set_value_norm(model);
  return model;
}

std::string selection_metric(const RunConfig& config) {
  return config.training.metric.empty() ? default_metric(config.task.kind, config.model.outputs)
                                        : config.training.metric;
}

Settings settings_from_json(const Json& json) {
  Settings settings;
  flatten(json, "", settings);
  return settings;
}

std::string shown_value(const Setting& setting) {
  const Json value = json_setting("value", setting.value).at("value");
  return value.is_string() ? value.get<std::string>() : setting.value;
}

Settings read_settings(const std::string& path) {
  return read_json_file(path, [](const Json& json) {
    FW_CHECK(json.is_object(), "expected a JSON object { ... }, got ", shown_json(json));
    return settings_from_json(json);
  });
}

RunConfig with_settings(const RunConfig& config, const Settings& settings) {
  return read_fields(upgraded(settings_json(settings)), config);
}

Run make_run(const RunSetup& setup, const DataSet& data) {
  Stopwatch watch;
  const RunConfig config = config_of(setup);
  RunData divided = divide(config, data);
  return run_of(setup, config, std::move(divided), watch.lap());
}

Run make_run(const RunSetup& setup, const RunData& data) { return run_of(setup, config_of(setup), data, 0); }

Run make_run(const RunConfig& config, const DataSet& data) {
  Stopwatch watch;
  Run run = {.config = config, .data = divide(config, data)};
  run.config.task = run.data.task;
  run.config.split = run.data.split_config;
  use_plain_data(config.model, run.data.preparation);
  run.phases = {{"splitting and scaling", watch.lap()}};
  return run;
}

}  // namespace fastweights
