#include "base/utf8.h"

#include <cstring>

namespace fastweights {
namespace {

constexpr uint32_t kLastCodePoint = 0x10ffff;

bool is_surrogate(uint32_t c) { return c >= 0xd800 && c < 0xe000; }

// bytes of text at the beginning that are ASCII, in steps of 8
size_t ascii_length(std::string_view text) {
  size_t at = 0;
  for (uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    if (word & 0x8080808080808080) break;
  }
  return at;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || length > text.size()) return 0;
  uint32_t c = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    c = c << 6 | (byte(i) & 0x3f);
  }
  // a longer form than necessary, or no character
  const uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  return c < least || c > kLastCodePoint || is_surrogate(c) ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (true) {
    text.remove_prefix(ascii_length(text));
    if (text.empty()) return true;
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
}

void append_utf8(std::string& text, uint32_t c) {
  constexpr uint32_t kReplacement = 0xfffd;
  if (c > kLastCodePoint || is_surrogate(c)) c = kReplacement;
  const auto put = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

}  // namespace fastweights
