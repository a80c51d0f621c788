#pragma once

#include <string>
#include <vector>

namespace fastweights {

/// The word with the fewest letters to change, the first one of several; "" if there are no words.
std::string nearest(const std::string& word, const std::vector<std::string>& words);

}  // namespace fastweights
