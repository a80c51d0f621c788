#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Published data sets and their files on the network. Downloads need libcurl, and libarchive for archives; a
/// build without them reports an error when called.

namespace fastweights::data {

/// One file of a published set. Size 0 or an empty checksum: unknown; that of the first download is recorded.
struct KnownFile {
  std::string address = {};
  int64_t size = 0;         ///< bytes
  std::string sha256 = {};  ///< 64 hexadecimal digits
};

/// A published set with its official addresses.
struct KnownSet {
  std::string name = {};
  std::string sentence = {};
  std::string license = {};
  std::string page = {};  ///< description and citation
  std::vector<KnownFile> files = {};
};

/// In alphabetical order.
const std::vector<KnownSet>& catalogue();

/// A set by name; the error for an unknown name suggests the nearest one.
const KnownSet& known_set(const std::string& name);

/// Bytes so far and in total; 0: unknown.
using DownloadProgress = std::function<void(int64_t, int64_t)>;

/// Called with a sentence about a file that could not be verified.
using DownloadNote = std::function<void(const std::string&)>;

/// Downloads a file into a folder and returns its path. An interrupted download (<name>.part) is resumed if
/// the file has not changed on the server. Size and SHA-256 are checked where they are known, and an archive
/// must be complete. Otherwise a note says that the file was not verified, its SHA-256 is stored in
/// <name>.sha256, and later downloads must match it.
std::string download(const KnownFile& file, const std::string& folder, const DownloadProgress& progress = {},
                     const DownloadNote& note = {});

/// Unpacks a .zip, .tar.gz, ... into a folder. An entry that would leave the folder is an error.
void unpack(const std::string& archive, const std::string& folder);

/// An error if a .zip, .tar.gz, ... is damaged or incomplete. A build without libarchive cannot tell.
void check_archive(const std::string& archive);

/// fetch_data() for a set that need not be in the catalogue.
std::string fetch(const KnownSet& set, const std::string& data_dir, const DownloadProgress& progress = {},
                  const DownloadNote& note = {});

}  // namespace fastweights::data
