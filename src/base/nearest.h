#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fastweights {

/// The word that is nearest in spelling, the first one of several; "" if none is near. Near: at most a third
/// of the letters, or one, must change, upper and lower case being equal; or one word contains the other. Two
/// neighbours that are swapped are one change.
std::string nearest(const std::string& word, const std::vector<std::string>& words);

std::string in_plain_quotes(const std::string& word);

/// How an error about an unknown word ends: "; the nearest is 'x'"; if none is near, "; expected one of a, b,
/// c";
/// "" if there are more than ten words.
std::string suggestion(const std::string& word, const std::vector<std::string>& words,
                       const std::function<std::string(const std::string&)>& quoted = in_plain_quotes);

}  // namespace fastweights
