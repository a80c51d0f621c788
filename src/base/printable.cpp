#include "base/printable.h"

#include <cstdint>

namespace fastweights {

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  uint32_t code = first & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  // neither longer than necessary, nor half of a pair, nor beyond the last one
  const uint32_t smallest = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  return code < smallest || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    // C0 and DEL; C1 is U+0080 to U+009F, which is C2 80 to C2 9F
    const bool control = first < 0x20 || first == 0x7f ||
                         (length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
    const size_t count = length == 0 ? 1 : length;
    for (const char c : text.substr(0, count)) {
      constexpr const char* kHex = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      safe +=
          length == 0 || control ? std::string{'\\', 'x', kHex[byte >> 4], kHex[byte & 15]} : std::string{c};
    }
    text.remove_prefix(count);
  }
  return safe;
}

}  // namespace fastweights
