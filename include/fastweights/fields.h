#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

/// Structs as lists of named fields. One function per struct is used to write, read, compare and list
/// configurations. The library finds the function of a nested struct by its name, visit_fields; an
/// architecture passes the function of its options itself, under any name (ArchitectureSpec::fields).
///
///     struct Options { int64_t width = 16; Kind kind = Kind::Plain; };
///     inline void visit_fields(Options& o, Fields& field) { field("width", o.width); field("kind", o.kind);
///     }

namespace fastweights {

/// Enumerators with their names. An enumeration E provides `const Names<E>& names_of(E)`.
template <typename E>
using Names = std::vector<std::pair<E, std::string>>;

/// The alternatives of a std::variant by their names, with default options, in the order of the variant V,
/// which provides `const Alternatives<V>& alternatives_of(const V&)`.
template <typename V>
using Alternatives = std::vector<std::pair<std::string, V>>;

class Fields {
 public:
  using Value = std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*>;

  virtual ~Fields() = default;

  template <typename T>
  void operator()(const char* key, T& value) {
    if constexpr (std::is_enum_v<T>) {
      std::vector<std::string> names;
      size_t index = 0;
      for (const auto& [known, name] : names_of(value)) {
        if (known == value) index = names.size();
        names.push_back(name);
      }
      choice(key, names, index);
      value = names_of(value)[index].first;
    } else if constexpr (std::is_constructible_v<Value, T*>) {
      scalar(key, &value);
    } else {
      group(key, [&](Fields& inner) { visit_fields(value, inner); });
    }
  }

  /// One of several structs: the key names it, and its fields are next to the key.
  template <typename... T>
  void operator()(const char* key, std::variant<T...>& value) {
    const auto& all = alternatives_of(value);
    std::vector<std::string> names;
    for (const auto& [name, options] : all) names.push_back(name);
    size_t index = value.index();
    choice(key, names, index);
    if (index != value.index()) value = all[index].second;
    std::visit([&](auto& options) { visit_fields(options, *this); }, value);
    for (size_t other = 0; other < all.size(); ++other) {
      if (other == index) continue;
      not_chosen(key, names[other], [&all, other](Fields& fields) {
        auto options = all[other].second;
        std::visit([&](auto& o) { visit_fields(o, fields); }, options);
      });
    }
  }

  virtual void scalar(const char* key, Value value) = 0;
  /// A choice among names; a reader may change the index.
  virtual void choice(const char* key, const std::vector<std::string>& names, size_t& index) = 0;
  virtual void group(const char* key, const std::function<void(Fields&)>& visit) = 0;
  /// The fields of an alternative that is not chosen.
  virtual void not_chosen(const char* /*key*/, const std::string& /*name*/,
                          const std::function<void(Fields&)>& /*visit*/) {}
};

}  // namespace fastweights
