#pragma once

#include <string>
#include <string_view>

namespace fastweights {

/// Text from a file as it may be printed on a terminal: UTF-8 stays, control characters and bytes that are
/// not UTF-8 become the text \xNN.
std::string printable(std::string_view text);

/// A word of a command as a shell takes it: in single quotes, unless all its characters are plain.
std::string shell_word(const std::string& word);

}  // namespace fastweights
