#include "architectures/registry.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/nearest.h"

namespace fastweights {
namespace {

// like the backends a table of what this program has; rows are only added
struct Registry {
  std::mutex mutex;
  std::vector<const ArchitectureType*> types = {
      &architecture_type(FastWeights{}), &architecture_type(TensorMap{}),
      &architecture_type(NeuralCde{}),   &architecture_type(GruOde{}),
      &architecture_type(OdeRnn{}),      &architecture_type(GapGru{}),
      &architecture_type(Recurrent{}),   &architecture_type(LatentOde{}),
      &architecture_type(DiscreteFwp{}), &architecture_type(OdeRfwp{}),
      &architecture_type(MiniRocket{}),  &architecture_type(NearestNeighbour{}),
      &architecture_type(Naive{})};
};

Registry& registry() {
  static Registry the_registry;
  return the_registry;
}

// every name with its architecture
std::map<std::string, const ArchitectureType*> types_by_name() {
  std::map<std::string, const ArchitectureType*> result;
  for (const ArchitectureType* type : all_architectures()) {
    for (const std::string& name : type->names) result[name] = type;
  }
  return result;
}

template <typename Map>
std::vector<std::string> names_in(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

}  // namespace

std::vector<const ArchitectureType*> all_architectures() {
  const std::lock_guard lock(registry().mutex);
  return registry().types;
}

void add_architecture(const ArchitectureType& type) {
  const std::lock_guard lock(registry().mutex);
  FW_CHECK(!type.names.empty() && type.make && type.fields && type.check && type.defaults && type.name,
           "[add_architecture] an architecture needs a name, defaults, fields, a check and a maker");
  for (const ArchitectureType* known : registry().types) {
    if (known == &type) return;
    for (const std::string& name : type.names) {
      FW_CHECK(std::find(known->names.begin(), known->names.end(), name) == known->names.end(),
               "[add_architecture] there is an architecture '", name, "' already");
    }
    for (const NamedModel& model : type.models) {
      for (const NamedModel& other : known->models)
        FW_CHECK(model.name != other.name, "[add_architecture] there is a model '", model.name, "' already");
    }
  }
  registry().types.push_back(&type);
}

std::vector<NamedModel> named_models() {
  std::vector<NamedModel> models;
  for (const ArchitectureType* type : all_architectures())
    models.insert(models.end(), type->models.begin(), type->models.end());
  return models;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const NamedModel& model : named_models()) names.push_back(model.name);
  return names;
}

void refuse_model(const std::string& name) {
  const std::string close = suggestion(name, model_names());
  FW_CHECK(false, "unknown model '", name, "'",
           close.empty() ? "; 'fastweights models' lists the names" : close);
}

ModelConfig named_model(const std::string& name, const DataShape& shape) {
  for (const NamedModel& model : named_models()) {
    if (model.name != name) continue;
    return {.channels = shape.channels,
            .static_features = shape.static_features,
            .outputs = shape.outputs,
            .architecture = model.options(shape)};
  }
  refuse_model(name);
}

namespace {

Json fields_of(Architecture architecture) {
  FieldWriter writer;
  architecture.type().fields(architecture, writer);
  return std::move(writer.out);
}

// all keys of the architecture, added to those that are there
Json keys_of(Architecture architecture, Json keys = Json::object()) {
  KeyWriter writer;
  writer.out = std::move(keys);
  architecture.type().fields(architecture, writer);
  return std::move(writer.out);
}

// those keys of `changed` that differ from `plain` and that are among `possible`, too
void keep_changed(const Json& changed, const Json& plain, const Json& possible, Json& kept) {
  for (const auto& [key, value] : changed.items()) {
    if (!possible.contains(key) || (plain.contains(key) && value == plain[key])) continue;
    if (value.is_object()) {
      keep_changed(value, plain[key], possible[key], kept[key] = Json::object());
    } else {
      kept[key] = value;
    }
  }
}

// another architecture, with what was changed of options that both have
Architecture switched(const Architecture& before, const ArchitectureType& type, const std::string& name) {
  Architecture result = type.defaults(name);
  Json kept = Json::object();
  keep_changed(fields_of(before), fields_of(before.type().defaults(before.name())), keys_of(result), kept);
  FieldReader reader(kept, "");
  result.type().fields(result, reader);
  return result;
}

}  // namespace

void visit_fields(ModelConfig& c, Fields& visit) {
  visit("channels", c.channels);
  visit("static_features", c.static_features);
  visit("outputs", c.outputs);
  const auto types = types_by_name();
  const std::vector<std::string> names = names_in(types);
  const std::string before = c.architecture.name();
  const auto found = std::find(names.begin(), names.end(), before);
  FW_CHECK(found != names.end(), "[config] architecture ", before,
           " is not registered; call add_architecture() first");
  auto index = static_cast<size_t>(found - names.begin());
  visit.choice("architecture", names, index);
  if (names[index] != before)
    c.architecture = switched(c.architecture, *types.at(names[index]), names[index]);
  c.architecture.type().fields(c.architecture, visit);
}

void check_config(const ModelConfig& config, const std::vector<Rule>& custom_rules) {
  config.architecture.type().check(config, custom_rules);
}

SolverConfig* solver_of(ModelConfig& config) {
  const ArchitectureType& type = config.architecture.type();
  return type.solver ? type.solver(config.architecture) : nullptr;
}

const SolverConfig* solver_of(const ModelConfig& config) {
  // the options are not changed
  return solver_of(const_cast<ModelConfig&>(config));  // NOLINT
}

namespace {

// Version 0.1 wrote the keys of all architectures and alternatives, and a tensor map as a drive of fast
// weights. Keys that nothing reads were at their defaults, or the model could not have been made.
void drop_unknown(Json& json, const Json& known) {
  for (auto it = json.begin(); it != json.end();) {
    if (!known.contains(it.key())) {
      it = json.erase(it);
      continue;
    }
    if (it->is_object()) drop_unknown(*it, known[it.key()]);
    ++it;
  }
}

// the choices that decide which keys there are
Json choices_of(const Json& json) {
  Json choices = {{"architecture", json["architecture"]}};
  const auto add = [&](const char* group, const char* key) {
    if (json.contains(group) && json[group].is_object() && json[group].contains(key))
      choices[group][key] = json[group][key];
  };
  add("control", "kind");
  if (choices.contains("control") && choices["control"]["kind"] == "log_signature")
    add("control", "window_duration");
  add("solver", "steps");
  return choices;
}

}  // namespace

Json upgraded_model_json(Json json) {
  if (!json.is_object()) return json;
  const bool complete =
      !json.contains("architecture") && json.contains("map_layers") && json.contains("heads");
  if (json.contains("system") && !json.contains("architecture")) {
    Json name = json["system"];
    json.erase("system");
    json["architecture"] = std::move(name);
  }
  if (json.contains("drive") && json["drive"] == "tensor_map") {
    json.erase("drive");
    json["architecture"] = "tensor_map";
    if (json.contains("initial") && json["initial"] == "rule") json.erase("initial");
  }
  if (!complete) return json;
  if (!json.contains("architecture")) json["architecture"] = "fast_weights";
  // a name that does not exist is reported when the configuration is read
  const auto types = types_by_name();
  const auto found = json["architecture"].is_string() ? types.find(json["architecture"]) : types.end();
  if (found == types.end()) return json;
  ModelConfig config = {.architecture = found->second->defaults(json["architecture"])};
  drop_unknown(json, keys_of(config.architecture, json_of(config)));
  drop_unknown(json, json_of(read_fields(choices_of(json), config)));
  return json;
}

namespace {

bool has_key(const Json& json, const std::vector<std::string>& path) {
  const Json* inner = &json;
  for (const std::string& key : path) {
    if (!inner->is_object() || !inner->contains(key)) return false;
    inner = &(*inner)[key];
  }
  return true;
}

// the first key of `given` that `known` does not have, as a path; empty if it has all
std::vector<std::string> unknown_key(const Json& given, const Json& known) {
  for (const auto& [key, value] : given.items()) {
    if (!known.is_object() || !known.contains(key)) {
      if (!value.is_object() || value.empty()) return {key};
      std::vector<std::string> inner = unknown_key(value, Json::object());
      inner.insert(inner.begin(), key);
      return inner;
    }
    if (!value.is_object()) continue;
    std::vector<std::string> inner = unknown_key(value, known[key]);
    if (inner.empty()) continue;
    inner.insert(inner.begin(), key);
    return inner;
  }
  return {};
}

}  // namespace

void check_architecture_keys(const Json& given, const ModelConfig& base) {
  if (!given.is_object()) return;
  const auto types = types_by_name();
  const Json& chosen =
      given.contains("architecture") ? given["architecture"] : Json(base.architecture.name());
  const auto found = chosen.is_string() ? types.find(chosen.get<std::string>()) : types.end();
  if (found == types.end()) return;
  const auto keys = [](const ArchitectureType& type, const std::string& name) {
    const ModelConfig config = {.architecture = type.defaults(name)};
    return keys_of(config.architecture, json_of(config));
  };
  const std::vector<std::string> path = unknown_key(given, keys(*found->second, found->first));
  if (path.empty()) return;
  for (const auto& [name, type] : types) {
    if (!has_key(keys(*type, name), path)) continue;
    std::string key = path[0];
    for (size_t i = 1; i < path.size(); ++i) key += "." + path[i];
    FW_CHECK(false, "[config] ", key, " would not be used with architecture ", found->first);
  }
}

namespace {

ModelConfig read_config(const Json& given, const ModelConfig& base) {
  const Json json = upgraded_model_json(given);
  check_architecture_keys(json, base);
  return read_fields(json, base);
}

}  // namespace

std::string to_json(const ModelConfig& config) {
  try {
    return json_of(config).dump(2);
  } catch (const Json::type_error&) {
    FW_CHECK(false, "[config] a name in the configuration is not UTF-8 text");
  }
}

ModelConfig config_from_json(const std::string& text) { return read_config(parse_json(text), ModelConfig{}); }

ModelConfig with_setting(const ModelConfig& config, const std::string& key, const std::string& value) {
  return read_config(json_setting(key, value), config);
}

bool ModelConfig::operator==(const ModelConfig& other) const { return to_json(*this) == to_json(other); }

}  // namespace fastweights
