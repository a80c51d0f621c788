#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/nearest.h"
#include "fastweights/error.h"
#include "fastweights/model_config.h"
#include "model/config_names.h"

namespace fastweights {
namespace {

using Json = nlohmann::ordered_json;

// the keys, once: reading and writing both go through these lists

template <typename Visit>
void visit_fields(ControlConfig& c, Visit& visit) {
  visit("kind", c.kind);
  visit("end_filling", c.end_filling);
  visit("never_observed", c.never_observed);
  visit("time_channel", c.time_channel);
  visit("depth", c.depth);
  visit("window_increments", c.window_increments);
  visit("window_duration", c.window_duration);
  visit("window_tail", c.window_tail);
  visit("clock", c.clock);
  visit("last_window", c.last_window);
}

template <typename Visit>
void visit_fields(SolverConfig& c, Visit& visit) {
  visit("method", c.method);
  visit("steps", c.steps);
  visit("max_step", c.max_step);
  visit("step_size", c.step_size);
  visit("rtol", c.rtol);
  visit("atol", c.atol);
  visit("edges", c.edges);
  visit("shortening", c.shortening);
  visit("stage_times", c.stage_times);
  visit("error_control", c.error_control);
  visit("first_step_gradient", c.first_step_gradient);
  visit("gradient", c.gradient);
  visit("memory_limit", c.memory_limit);
}

template <typename Visit>
void visit_fields(ModelConfig& c, Visit& visit) {
  visit("channels", c.channels);
  visit("static_features", c.static_features);
  visit("outputs", c.outputs);
  visit("rule", c.rule);
  visit("drive", c.drive);
  visit("control", c.control);
  visit("solver", c.solver);
  visit("backend", c.backend);
  visit("hidden_size", c.hidden_size);
  visit("heads", c.heads);
  visit("key_width", c.key_width);
  visit("value_width", c.value_width);
  visit("feed_forward_size", c.feed_forward_size);
  visit("static_hidden_size", c.static_hidden_size);
  visit("layers", c.layers);
  visit("layer_input", c.layer_input);
  visit("residual", c.residual);
  visit("value_norm", c.value_norm);
  visit("map_hidden_size", c.map_hidden_size);
  visit("map_layers", c.map_layers);
  visit("initial", c.initial);
  visit("query", c.query);
  visit("read", c.read);
  visit("learning_rate", c.learning_rate);
  visit("value_activation", c.value_activation);
  visit("dropout", c.dropout);
  visit("value_dropout", c.value_dropout);
  visit("time_unit", c.time_unit);
  visit("deterministic", c.deterministic);
  visit("unused_layer", c.unused_layer);
}

// text of a message, not a book
std::string shortened(const std::string& text) {
  constexpr size_t kMost = 120;
  return text.size() <= kMost ? text : text.substr(0, kMost) + " ...";
}

std::string shown(const Json& json) {
  return shortened(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// JSON without keys that come twice, which the library would drop in silence, and without deep nesting, which
// it writes by recursion
Json parse(const std::string& text) {
  constexpr int kDeepest = 8;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto look = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    FW_CHECK(depth <= kDeepest, "[config] objects and lists are nested deeper than ", kDeepest, " levels");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      FW_CHECK(keys.back().insert(key).second, "[config] the key '", shortened(key), "' comes twice");
    }
    return true;
  };
  return Json::parse(text, look);
}

template <typename T>
concept Group = std::is_same_v<T, ControlConfig> || std::is_same_v<T, SolverConfig>;

struct Writer {
  Json out = Json::object();

  template <typename T>
  void operator()(const char* key, T& value) {
    if constexpr (Group<T>) {
      Writer inner;
      visit_fields(value, inner);
      out[key] = std::move(inner.out);
    } else if constexpr (std::is_enum_v<T>) {
      out[key] = name_of(value);
    } else {
      out[key] = value;
    }
  }
};

struct Reader {
  const Json& in;
  std::string where = {};
  std::vector<std::string> known = {};

  template <typename T>
  void operator()(const char* key, T& value) {
    known.push_back(key);
    if (!in.contains(key)) return;
    const Json& given = in[key];
    const std::string name = where + key;
    if constexpr (Group<T>) {
      read_object(given, name + ".", value);
    } else if constexpr (std::is_enum_v<T>) {
      value = named_value<T>(text(given, name), name);
    } else if constexpr (std::is_same_v<T, bool>) {
      FW_CHECK(given.is_boolean(), "[config] ", name, " must be true or false, got ", shown(given));
      value = given.get<bool>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = text(given, name);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      const bool fits = given.is_number_integer() &&
                        (!given.is_number_unsigned() || given.get<uint64_t>() <= uint64_t{INT64_MAX});
      FW_CHECK(fits, "[config] ", name, " must be a whole number, got ", shown(given));
      value = given.get<int64_t>();
    } else {
      FW_CHECK(given.is_number(), "[config] ", name, " must be a number, got ", shown(given));
      value = given.get<double>();
    }
  }

  static std::string text(const Json& given, const std::string& name) {
    FW_CHECK(given.is_string(), "[config] ", name, " must be a name in quotes, got ", shown(given));
    return given.get<std::string>();
  }

  template <typename T>
  static void read_object(const Json& in, const std::string& where, T& value) {
    FW_CHECK(in.is_object(), "[config] ",
             where.empty() ? "a configuration" : where.substr(0, where.size() - 1),
             " must be an object { ... }, got ", shown(in));
    Reader reader = {in, where};
    visit_fields(value, reader);
    for (const auto& [key, unused] : in.items()) {
      const bool found = std::find(reader.known.begin(), reader.known.end(), key) != reader.known.end();
      FW_CHECK(found, "[config] there is no key '", where, shortened(key), "'; the nearest is '", where,
               nearest(key, reader.known), "'");
    }
  }
};

}  // namespace

std::string to_json(const ModelConfig& config) {
  ModelConfig copy = config;
  Writer writer;
  visit_fields(copy, writer);
  try {
    return writer.out.dump(2);
  } catch (const Json::type_error&) {
    FW_CHECK(false, "[config] rule '", shown(config.rule), "' is not UTF-8 text");
  }
}

ModelConfig config_from_json(const std::string& text) {
  Json json;
  try {
    json = parse(text);
  } catch (const Json::exception& error) {
    // behind the library's own number of the error
    const std::string what = error.what();
    FW_CHECK(false, "[config] this is not JSON: ", shortened(what.substr(what.find("] ") + 2)));
  }
  ModelConfig config;
  Reader::read_object(json, "", config);
  return config;
}

ModelConfig with_setting(const ModelConfig& config, const std::string& key, const std::string& value) {
  // what is no JSON is a name
  Json json = value;
  try {
    json = parse(value);
  } catch (const Json::exception&) {
  }
  const size_t dot = key.find('.');
  const std::string last = dot == std::string::npos ? key : key.substr(dot + 1);
  Json object = {{last, json}};
  if (dot != std::string::npos) object = {{key.substr(0, dot), object}};
  ModelConfig changed = config;
  Reader::read_object(object, "", changed);
  return changed;
}

bool ModelConfig::operator==(const ModelConfig& other) const { return to_json(*this) == to_json(other); }

}  // namespace fastweights
