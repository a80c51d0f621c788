#pragma once

#include <string>
#include <string_view>

namespace fastweights {

/// Text from files for a terminal or a log: UTF-8 stays, control characters and bytes that are not UTF-8
/// become \xNN.
std::string printable(std::string_view text);

/// The number of bytes of the UTF-8 character at the beginning of the text; 0 if there is none.
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace fastweights
