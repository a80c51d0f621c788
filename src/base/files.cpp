#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>

namespace fastweights {
namespace {

namespace fs = std::filesystem;

// a file descriptor; write errors are errno values, so that the temporary file can be removed before they are
// reported
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

int write_file(const std::string& path, const std::vector<std::string_view>& pieces) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return errno;
  int error = 0;
  for (const std::string_view piece : pieces) {
    if (error == 0) error = write_all(file, piece);
  }
  // on disk before it replaces the old file
  if (error == 0 && fsync(file) != 0) error = errno;
  if (close(file) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

std::string read_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw std::runtime_error(path + ": no such file");
  if (fs::is_directory(status)) throw std::runtime_error(path + ": expected a file, got a folder");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw std::runtime_error(path + ": cannot be opened: " + std::strerror(errno));
  // most files fit into one read, which needs no buffer
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
  std::string bytes;
  size_t size = 0;
  // one byte more than expected, so that a single read finds the end
  const std::uintmax_t expected = fs::is_regular_file(status) ? fs::file_size(path, error) : 0;
  for (size_t room = error || expected == 0 ? 1 << 15 : expected + 1; true; room *= 2) {
    bytes.resize(size + room);
    const size_t got = std::fread(bytes.data() + size, 1, room, file.get());
    size += got;
    if (got < room) break;
  }
  if (std::ferror(file.get())) throw std::runtime_error(path + ": cannot be read");
  bytes.resize(size);
  return bytes;
}

void replace_file(const std::string& path, const std::vector<std::string_view>& pieces) {
  // unique per process: two of them may replace the same cache file
  const std::string temporary = path + ".part" + std::to_string(getpid());
  int error = write_file(temporary, pieces);
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  unlink(temporary.c_str());
  throw std::runtime_error(path + ": cannot be written: " + std::strerror(error));
}

void replace_file(const std::string& path, std::string_view contents) {
  replace_file(path, std::vector<std::string_view>{contents});
}

}  // namespace fastweights
