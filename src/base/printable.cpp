#include "base/printable.h"

#include "base/utf8.h"

namespace fastweights {
namespace {

// of ASCII, and U+0080 to U+009F, which some terminals obey
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string result;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(character.size());
    if (length > 0 && !is_control(character)) {
      result += character;
      continue;
    }
    for (const char c : character) {
      const auto byte = static_cast<unsigned char>(c);
      result += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return result;
}

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./:=,+@%-").find(c) != std::string_view::npos;
  };
  bool quoted = word.empty();
  std::string inside;
  for (const char c : word) {
    quoted = quoted || !plain(c);
    inside += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted ? "'" + inside + "'" : word;
}

}  // namespace fastweights
