#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Data sets that others publish, from the network. Needs libcurl, and libarchive for what is packed; a build
/// without them says so when asked.

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

/// Bytes so far and bytes in all, 0 if that is not known.
using DownloadProgress = std::function<void(int64_t, int64_t)>;

/// Brings a file from its address into a folder, and returns where it is. What is there of an interrupted
/// download (`<name>.part`) is continued if the file has not changed since. Size and SHA-256 are checked
/// where they are known; where not, the SHA-256 is kept in `<name>.sha256` and must be the same from then on.
std::string download(const KnownFile& file, const std::string& folder, const DownloadProgress& progress = {});

/// Unpacks a .zip, .tar.gz, ... into a folder; nothing in it may lead out of the folder.
void unpack(const std::string& archive, const std::string& folder);

/// Brings a known set to `<data_dir>/<name>` and returns that folder; nothing is done if it is there. It
/// appears only when it is complete.
std::string fetch(const KnownSet& set, const std::string& data_dir, const DownloadProgress& progress = {});

}  // namespace fastweights
