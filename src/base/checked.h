#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>

/// Arithmetic on sizes that come from a file.

namespace fastweights {

/// The product of sizes, or nothing if it does not fit. A factor of zero does not hide that the others
/// overflow.
template <typename Sizes>
std::optional<size_t> checked_product(const Sizes& sizes) {
  size_t product = 1;
  bool empty = false;
  for (const auto size : sizes) {
    empty = empty || size == 0;
    if (size != 0 && __builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  return empty ? 0 : product;
}
inline std::optional<size_t> checked_product(std::initializer_list<size_t> sizes) {
  return checked_product<std::initializer_list<size_t>>(sizes);
}

}  // namespace fastweights
