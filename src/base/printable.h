#pragma once

#include <string>
#include <string_view>

namespace fastweights {

/// Text from a file as it may be printed on a terminal: UTF-8 stays, control characters and bytes that are
/// not UTF-8 become the text \xNN.
std::string printable(std::string_view text);

}  // namespace fastweights
