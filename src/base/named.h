#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "fastweights/fields.h"

/// Enumerators by their names.

namespace fastweights {

template <typename E>
const std::string& name_of(E value) {
  for (const auto& [known, name] : names_of(value)) {
    if (known == value) return name;
  }
  FW_CHECK(false, "[config] there is no name for value ", static_cast<int>(value));
}

template <typename... T>
const std::string& name_of(const std::variant<T...>& value) {
  return alternatives_of(value)[value.index()].first;
}

}  // namespace fastweights
