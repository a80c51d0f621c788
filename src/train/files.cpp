#include "train/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fastweights/error.h"

namespace fastweights {
namespace {

[[noreturn]] void refuse(const std::string& path, const char* what) {
  throw std::runtime_error(message("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

// removes a file that could not be written
[[noreturn]] void give_up(const std::string& path, const std::string& temporary) {
  const int error = errno;
  unlink(temporary.c_str());
  errno = error;
  refuse(path, "write");
}

}  // namespace

void replace_file(const std::string& path, const std::string& contents) {
  const std::string temporary = path + ".part";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) refuse(path, "write");
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t count = write(file, contents.data() + done, contents.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      close(file);
      errno = error;
      give_up(path, temporary);
    }
    done += static_cast<size_t>(count);
  }
  // on the disk before it takes the name of the old file
  const bool good = fsync(file) == 0;
  if (close(file) == 0 && good && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  give_up(path, temporary);
}

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path)) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace fastweights
