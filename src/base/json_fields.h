#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/named.h"

/// Structures as JSON by one list of their fields. Keys that are absent keep their values; an unknown key or
/// name is an error that says which one is nearest.

namespace fastweights {

using Json = nlohmann::ordered_json;

/// JSON without keys that come twice, which the library would drop in silence, and without deep nesting,
/// which it writes by recursion.
Json parse_json(const std::string& text);

/// What a JSON exception says, shortened and without the error number of the library.
std::string json_error(const Json::exception& error);

/// The JSON of a file, as `read` takes it; errors name the file.
template <typename Read>
auto read_json_file(const std::string& path, const Read& read) {
  const std::string text = read_file(path);
  try {
    return read(parse_json(text));
  } catch (const Json::exception& error) {
    throw std::runtime_error(message(path, ": ", json_error(error)));
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(message(path, ": ", error.what()));
  }
}

/// Text in which bytes that are not UTF-8 are replaced; for pages and lines that only show it.
std::string shown_dump(const Json& json, int indent = -1);

/// { key: value } with dots in the key as inner objects; a value that is no JSON is a name.
Json json_setting(const std::string& key, const std::string& value);

/// For messages: the text, or its beginning.
std::string shortened_text(const std::string& text);
std::string shown_json(const Json& json);

/// The text of a JSON string; `name` stands in the message.
std::string text_of(const Json& given, const std::string& name);

/// A whole number, which may be written as 1e9.
int64_t whole_number_of(const Json& given, const std::string& name);

class FieldWriter : public Fields {
 public:
  Json out = Json::object();

  void scalar(const char* key, Value value) override;
  void choice(const char* key, const std::vector<std::string>& names, size_t& index) override;
  void group(const char* key, const std::function<void(Fields&)>& visit) override;
};

/// All keys, also those of alternatives that are not chosen; the values mean nothing.
class KeyWriter : public FieldWriter {
 public:
  void group(const char* key, const std::function<void(Fields&)>& visit) override;
  void not_chosen(const char* key, const std::string& name,
                  const std::function<void(Fields&)>& visit) override;
};

class FieldReader : public Fields {
 public:
  /// `where` stands before keys in messages.
  FieldReader(const Json& in, std::string where);

  void scalar(const char* key, Value value) override;
  void choice(const char* key, const std::vector<std::string>& names, size_t& index) override;
  void group(const char* key, const std::function<void(Fields&)>& visit) override;
  void not_chosen(const char* key, const std::string& name,
                  const std::function<void(Fields&)>& visit) override;
  /// After all fields: an error for a key that none of them has.
  void check_unknown() const;

 private:
  const Json* find(const char* key);

  const Json& in_;
  std::string where_;
  std::vector<std::string> known_;
  // keys of alternatives that were not chosen, with the choices that would read them
  std::map<std::string, std::string> unused_;
};

/// All fields of a structure.
template <typename T>
Json json_of(T value) {
  FieldWriter writer;
  visit_fields(value, static_cast<Fields&>(writer));
  return std::move(writer.out);
}

/// The structure with the fields that are given.
template <typename T>
T read_fields(const Json& json, T value) {
  FieldReader reader(json, "");
  visit_fields(value, static_cast<Fields&>(reader));
  reader.check_unknown();
  return value;
}

}  // namespace fastweights
