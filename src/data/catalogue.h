#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fastweights {

/// One file of a known data set. A size of 0 or an empty checksum is not known: what comes first is recorded
/// (fetch.h).
struct KnownFile {
  std::string address = {};
  int64_t size = 0;         ///< bytes
  std::string sha256 = {};  ///< 64 hexadecimal digits
};

/// A data set that others publish, with the official addresses.
struct KnownSet {
  std::string name = {};
  std::string sentence = {};
  std::string license = {};
  std::string page = {};  ///< about it, with whom to cite
  std::vector<KnownFile> files = {};
};

/// All of them, in alphabetical order.
const std::vector<KnownSet>& known_sets();

/// One of them; an unknown name is an error that says which is nearest.
const KnownSet& known_set(const std::string& name);

}  // namespace fastweights
