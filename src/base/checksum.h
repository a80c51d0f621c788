#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fastweights {

/// Checksum of bytes that are added in pieces: XXH64 with seed 0, several gigabytes per second. It finds
/// damage, not forgery.
class Checksum {
 public:
  Checksum& add(std::string_view bytes);
  /// The number in eight bytes, so that neighbours cannot be confused.
  Checksum& add(uint64_t number);
  /// Of all bytes so far.
  uint64_t value() const;
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  void block(const char* bytes);

  std::array<uint64_t, 4> state_ = {0x60ea27eeadc0b5d6, 0xc2b2ae3d27d4eb4f, 0, 0x61c8864e7a143579};
  std::array<char, 32> rest_ = {};
  uint64_t count_ = 0;  // bytes
};

}  // namespace fastweights
