#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fastweights::data {

/// Incremental SHA-256 (FIPS 180-4).
class Sha256 {
 public:
  Sha256& add(std::string_view bytes);
  /// Of all bytes added, as 64 hexadecimal digits; nothing may be added afterwards.
  std::string digest();

 private:
  void block(const unsigned char* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest_ = {};
  uint64_t count_ = 0;  // bytes
};

std::string sha256(std::string_view bytes);
std::string sha256_of_file(const std::string& path);

}  // namespace fastweights::data
