#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/named.h"

/// Structures as JSON by one list of their fields. Keys that are absent keep their values; an unknown key or
/// name is an error that says which one is nearest.

namespace fastweights {

using Json = nlohmann::ordered_json;

/// JSON without keys that come twice, which the library would drop in silence, and without deep nesting,
/// which it writes by recursion.
Json parse_json(const std::string& text);

/// { key: value } with dots in the key as inner objects; a value that is no JSON is a name.
Json json_setting(const std::string& key, const std::string& value);

/// For messages: the text, or its beginning.
std::string shortened_text(const std::string& text);
std::string shown_json(const Json& json);

/// The text of a JSON string; `name` stands in the message.
std::string text_of(const Json& given, const std::string& name);

/// A whole number, which may be written as 1e9.
int64_t whole_number_of(const Json& given, const std::string& name);

/// A type with a list of fields: `template <typename Visit> void visit_fields(T&, Visit&)` beside it.
struct AnyVisit {
  template <typename T>
  void operator()(const char*, T&) {}
};
template <typename T>
concept Group = requires(T& value, AnyVisit visit) {
  visit_fields(value, visit);
};

struct FieldWriter {
  Json out = Json::object();

  template <typename T>
  void operator()(const char* key, T& value) {
    if constexpr (Group<T>) {
      FieldWriter inner;
      visit_fields(value, inner);
      out[key] = std::move(inner.out);
    } else if constexpr (std::is_enum_v<T>) {
      out[key] = name_of(value);
    } else {
      out[key] = value;
    }
  }
};

struct FieldReader {
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
      value = named_value<T>(text_of(given, name), name);
    } else if constexpr (std::is_same_v<T, bool>) {
      FW_CHECK(given.is_boolean(), "[config] ", name, " must be true or false, got ", shown_json(given));
      value = given.get<bool>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = text_of(given, name);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      FW_CHECK(given.is_array(), "[config] ", name, " must be a list of names, got ", shown_json(given));
      value.clear();
      for (const Json& item : given) value.push_back(text_of(item, name));
    } else if constexpr (std::is_same_v<T, int64_t>) {
      value = whole_number_of(given, name);
    } else {
      FW_CHECK(given.is_number(), "[config] ", name, " must be a number, got ", shown_json(given));
      value = given.get<double>();
    }
  }

  /// The same value under the key of an older version; it is never suggested.
  template <typename T>
  void renamed(const char* old_key, T& value) {
    if (!in.contains(old_key)) return;
    (*this)(old_key, value);
  }

  template <typename T>
  static void read_object(const Json& in, const std::string& where, T& value) {
    FW_CHECK(in.is_object(), "[config] ",
             where.empty() ? "a configuration" : where.substr(0, where.size() - 1),
             " must be an object { ... }, got ", shown_json(in));
    FieldReader reader = {in, where};
    visit_fields(value, reader);
    for (const auto& [key, unused] : in.items()) {
      const bool found = std::find(reader.known.begin(), reader.known.end(), key) != reader.known.end();
      FW_CHECK(found, "[config] there is no key '", where, shortened_text(key), "'; the nearest is '", where,
               nearest(key, reader.known), "'");
    }
  }
};

/// All fields of a structure.
template <typename T>
Json json_of(T value) {
  FieldWriter writer;
  visit_fields(value, writer);
  return std::move(writer.out);
}

/// The structure with the fields that are given.
template <typename T>
T read_fields(const Json& json, T value) {
  FieldReader::read_object(json, "", value);
  return value;
}

}  // namespace fastweights
