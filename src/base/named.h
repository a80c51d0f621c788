#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "fastweights/fields.h"

/// Enumerators by their names, as values and as text.

namespace fastweights {

template <typename E>
const std::string& name_of(E value) {
  for (const auto& [known, name] : names_of(value)) {
    if (known == value) return name;
  }
  FW_CHECK(false, "[config] there is no name for value ", static_cast<int>(value));
}

/// The enumerator of this name; `key` stands in the message.
template <typename E>
E named_value(const std::string& name, const std::string& key) {
  std::vector<std::string> known;
  for (const auto& [value, known_name] : names_of(E{})) {
    if (known_name == name) return value;
    known.push_back(known_name);
  }
  FW_CHECK(false, "[config] ", key, " cannot be '", name, "'; the nearest is '", nearest(name, known), "'");
}

}  // namespace fastweights
