#include "base/json_fields.h"

#include <cmath>
#include <set>

namespace fastweights {
namespace {

// JSON without keys that come twice, which the library would drop in silence, and without deep nesting, which
// it writes by recursion
Json parsed(const std::string& text) {
  constexpr int kDeepest = 8;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto look = [&](int depth, Json::parse_event_t event, const Json& value) {
    FW_CHECK(depth <= kDeepest, "[config] objects and lists are nested deeper than ", kDeepest, " levels");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      FW_CHECK(keys.back().insert(key).second, "[config] the key '", shortened_text(key), "' comes twice");
    }
    return true;
  };
  return Json::parse(text, look);
}

}  // namespace

std::string shortened_text(const std::string& text) {
  constexpr size_t kMost = 120;
  return text.size() <= kMost ? text : text.substr(0, kMost) + " ...";
}

std::string shown_json(const Json& json) {
  return shortened_text(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string text_of(const Json& given, const std::string& name) {
  FW_CHECK(given.is_string(), "[config] ", name, " must be a name in quotes, got ", shown_json(given));
  return given.get<std::string>();
}

int64_t whole_number_of(const Json& given, const std::string& name) {
  // above it not every whole number is a double
  constexpr double kMost = 9007199254740992.0;
  if (given.is_number_float()) {
    const auto number = given.get<double>();
    if (std::abs(number) <= kMost && number == std::floor(number)) return static_cast<int64_t>(number);
  }
  const bool fits = given.is_number_integer() &&
                    (!given.is_number_unsigned() || given.get<uint64_t>() <= uint64_t{INT64_MAX});
  FW_CHECK(fits, "[config] ", name, " must be a whole number, got ", shown_json(given));
  return given.get<int64_t>();
}

Json parse_json(const std::string& text) {
  try {
    return parsed(text);
  } catch (const Json::exception& error) {
    // without the error number of the library
    const std::string what = error.what();
    FW_CHECK(false, "[config] this is not JSON: ", shortened_text(what.substr(what.find("] ") + 2)));
  }
}

Json json_setting(const std::string& key, const std::string& value) {
  const size_t dot = key.find('.');
  if (dot != std::string::npos) return Json{{key.substr(0, dot), json_setting(key.substr(dot + 1), value)}};
  try {
    return Json{{key, parsed(value)}};
  } catch (const Json::exception&) {
    // a name
    return Json{{key, value}};
  }
}

}  // namespace fastweights
