#include "base/json_fields.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/nearest.h"

namespace fastweights {
namespace {

// levels of objects and lists
constexpr int kDeepest = 8;

// JSON without keys that come twice, which the library would drop in silence, and without deep nesting, which
// it writes by recursion
Json parsed(const std::string& text) {
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

std::string shown_dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string shown_json(const Json& json) { return shortened_text(shown_dump(json)); }

std::string json_error(const Json::exception& error) {
  const std::string what = error.what();
  return shortened_text(what.substr(what.find("] ") + 2));
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
  FW_CHECK(fits, "[config] ", name, " must be an integer, got ", shown_json(given));
  return given.get<int64_t>();
}

Json parse_json(const std::string& text) {
  try {
    return parsed(text);
  } catch (const Json::exception& error) {
    FW_CHECK(false, "[config] this is not JSON: ", json_error(error));
  }
}

Json json_setting(const std::string& key, const std::string& value) {
  FW_CHECK(std::count(key.begin(), key.end(), '.') <= kDeepest, "[config] the key '", shortened_text(key),
           "' has more than ", kDeepest, " dots");
  const size_t dot = key.find('.');
  if (dot != std::string::npos) return Json{{key.substr(0, dot), json_setting(key.substr(dot + 1), value)}};
  try {
    return Json{{key, parsed(value)}};
  } catch (const Json::exception&) {
    // a name
    return Json{{key, value}};
  }
}

void FieldWriter::scalar(const char* key, Value value) {
  std::visit([&](const auto* given) { out[key] = *given; }, value);
}

void FieldWriter::choice(const char* key, const std::vector<std::string>& names, size_t& index) {
  out[key] = names[index];
}

void FieldWriter::group(const char* key, const std::function<void(Fields&)>& visit) {
  FieldWriter inner;
  visit(inner);
  out[key] = std::move(inner.out);
}

void KeyWriter::group(const char* key, const std::function<void(Fields&)>& visit) {
  KeyWriter inner;
  visit(inner);
  out[key] = std::move(inner.out);
}

void KeyWriter::not_chosen(const char*, const std::string&, const std::function<void(Fields&)>& visit) {
  visit(*this);
}

FieldReader::FieldReader(const Json& in, std::string where) : in_(in), where_(std::move(where)) {
  FW_CHECK(in.is_object(), "[config] ",
           where_.empty() ? "a configuration" : where_.substr(0, where_.size() - 1),
           " must be an object { ... }, got ", shown_json(in));
}

const Json* FieldReader::find(const char* key) {
  known_.push_back(key);
  return in_.contains(key) ? &in_[key] : nullptr;
}

namespace {

void read_value(const Json& given, const std::string& name, bool* value) {
  FW_CHECK(given.is_boolean(), "[config] ", name, " must be true or false, got ", shown_json(given));
  *value = given.get<bool>();
}

void read_value(const Json& given, const std::string& name, int64_t* value) {
  *value = whole_number_of(given, name);
}

void read_value(const Json& given, const std::string& name, double* value) {
  FW_CHECK(given.is_number(), "[config] ", name, " must be a number, got ", shown_json(given));
  *value = given.get<double>();
}

void read_value(const Json& given, const std::string& name, std::string* value) {
  *value = text_of(given, name);
}

void read_value(const Json& given, const std::string& name, std::vector<std::string>* value) {
  FW_CHECK(given.is_array(), "[config] ", name, " must be a list of names, got ", shown_json(given));
  value->clear();
  for (const Json& item : given) value->push_back(text_of(item, name));
}

}  // namespace

void FieldReader::scalar(const char* key, Value value) {
  const Json* given = find(key);
  if (!given) return;
  std::visit([&](auto* target) { read_value(*given, where_ + key, target); }, value);
}

void FieldReader::choice(const char* key, const std::vector<std::string>& names, size_t& index) {
  const Json* given = find(key);
  if (!given) return;
  const std::string name = text_of(*given, where_ + key);
  const auto found = std::find(names.begin(), names.end(), name);
  FW_CHECK(found != names.end(), "[config] ", where_, key, " cannot be '", name, "'",
           suggestion(name, names));
  index = static_cast<size_t>(found - names.begin());
}

void FieldReader::group(const char* key, const std::function<void(Fields&)>& visit) {
  const Json* given = find(key);
  if (!given) return;
  FieldReader inner(*given, where_ + key + ".");
  visit(inner);
  inner.check_unknown();
}

void FieldReader::not_chosen(const char* key, const std::string& name,
                             const std::function<void(Fields&)>& visit) {
  KeyWriter keys;
  visit(keys);
  for (const auto& [unused, value] : keys.out.items()) {
    std::string& needs = unused_[unused];
    needs += needs.empty() ? where_ + key + " " + name : " or " + name;
  }
}

void FieldReader::check_unknown() const {
  for (const auto& [key, value] : in_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const auto unused = unused_.find(key);
    FW_CHECK(unused == unused_.end(), "[config] ", where_, key, " would not be used here; it needs ",
             unused->second);
    std::vector<std::string> keys = known_;
    for (const auto& [other, needs] : unused_) keys.push_back(other);
    FW_CHECK(
        false, "[config] unknown key '", where_, shortened_text(key), "'",
        suggestion(key, keys, [&](const std::string& other) { return in_plain_quotes(where_ + other); }));
  }
}

}  // namespace fastweights
