#pragma once

#include <string>
#include <vector>

namespace fastweights {

/// The word with the smallest edit distance, the first one of several; "" if `words` is empty.
std::string nearest(const std::string& word, const std::vector<std::string>& words);

}  // namespace fastweights
