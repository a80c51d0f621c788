#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// UTF-8, the encoding of all text in memory.

namespace fastweights {

/// Bytes of the character at the beginning of a text; 0 if it is not valid UTF-8, or if the text is empty.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

/// Appends a code point; one that Unicode does not have becomes U+FFFD.
void append_utf8(std::string& text, uint32_t code_point);

}  // namespace fastweights
