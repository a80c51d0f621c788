#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Whole files: one way to read them, one way to replace them.

namespace fastweights {

/// All bytes of a file. A missing or unreadable file, a folder, or a pipe that nothing writes to, is a
/// std::runtime_error.
std::string read_file(const std::string& path);

/// Replaces a file as a whole or not at all, even if the machine stops meanwhile: writes the pieces to a
/// temporary file beside it (NAME.part-PID-RANDOM), flushes that to disk and renames it. Mode and, if
/// allowed, owner stay; so does a symbolic link, whose target is replaced. Devices and pipes are written to.
/// Removes temporary files that killed processes have left in the folder.
void replace_file(const std::string& path, const std::vector<std::string_view>& pieces);
void replace_file(const std::string& path, std::string_view contents);

/// A file that grows piece by piece, such as a download. A link at its name is an error. Errors name the
/// file.
class GrowingFile {
 public:
  enum class Start { Empty, AtTheEnd };
  GrowingFile(const std::string& path, Start start);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  void append(std::string_view bytes);
  /// Some file systems report that nothing was written only here.
  void close();

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace fastweights
