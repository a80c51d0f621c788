#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

namespace fastweights {
namespace {

namespace fs = std::filesystem;

// a file descriptor that is closed with its owner
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  // an errno value
  int close() { return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

 private:
  int number_;
};

// write errors are errno values, so that the temporary file can be removed before they are reported
int write_all(int file, const std::vector<std::string_view>& pieces) {
  for (std::string_view bytes : pieces) {
    while (!bytes.empty()) {
      const ssize_t count = write(file, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  return 0;
}

// NAME.part-PID-RANDOM: nobody can guess it and wait there with a link
constexpr std::string_view kPartMark = ".part-";
constexpr size_t kRandomDigits = 16;

std::string part_path(const fs::path& target) {
  std::random_device random;
  const uint64_t bits = uint64_t{random()} << 32 | random();
  char end[64];
  std::snprintf(end, sizeof end, "%d-%016llx", static_cast<int>(getpid()),
                static_cast<unsigned long long>(bits));
  // names have at most 255 bytes
  const std::string name = target.filename().string().substr(0, 200);
  return (target.parent_path() / (name + std::string(kPartMark) + end)).string();
}

// the process in the name of a temporary file; 0 for any other file
pid_t process_of(std::string_view name) {
  const size_t mark = name.rfind(kPartMark);
  if (mark == std::string_view::npos) return 0;
  name.remove_prefix(mark + kPartMark.size());
  const size_t dash = name.find('-');
  constexpr std::string_view kDigits = "0123456789", kHex = "0123456789abcdef";
  if (dash == std::string_view::npos || name.size() != dash + 1 + kRandomDigits ||
      name.substr(0, dash).find_first_not_of(kDigits) != std::string_view::npos ||
      name.substr(dash + 1).find_first_not_of(kHex) != std::string_view::npos)
    return 0;
  return static_cast<pid_t>(std::strtol(std::string(name.substr(0, dash)).c_str(), nullptr, 10));
}

// whether the process that wrote it is gone: processes lock their temporary files. Some file systems have no
// locks; there the process must be unknown, and the file an hour old, since it may belong to another host.
bool is_leftover(int file, pid_t process) {
  constexpr time_t kOld = 3600;
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  struct stat found = {};
  return fstat(file, &found) == 0 && std::time(nullptr) - found.st_mtime > kOld && process > 0 &&
         kill(process, 0) != 0 && errno == ESRCH;
}

// removes what killed processes have left; a folder of very many files is not searched to its end
void remove_leftovers(const std::string& folder) {
  constexpr int kMostEntries = 4096;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(opendir(folder.c_str()), &closedir);
  if (!list) return;
  const int at = dirfd(list.get());
  int count = 0;
  for (const dirent* entry = readdir(list.get()); entry && count < kMostEntries;
       entry = readdir(list.get())) {
    ++count;
    const pid_t process = process_of(entry->d_name);
    if (process == 0) continue;
    const Descriptor file(openat(at, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat found = {};
    if (file && fstat(file.number(), &found) == 0 && S_ISREG(found.st_mode) &&
        is_leftover(file.number(), process))
      unlinkat(at, entry->d_name, 0);
  }
}

// a new file that this process has locked, or an errno value
struct PartFile {
  std::string path;
  int file = -1, error = 0;
};

PartFile create_part(const fs::path& target, mode_t mode) {
  for (;;) {
    PartFile part = {.path = part_path(target)};
    part.file = open(part.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (part.file < 0 && errno == EEXIST) continue;
    if (part.file < 0) {
      part.error = errno;
      return part;
    }
    // before it was locked, another process may have taken it for a leftover
    struct stat found = {};
    const bool locked = flock(part.file, LOCK_EX) == 0;
    if (!locked || fstat(part.file, &found) != 0 || found.st_nlink > 0) return part;
    close(part.file);
  }
}

// owner and mode of the file that is replaced. Only the superuser can give files away; a group that the old
// file did not have gets no access.
void keep_owner(int file, const struct stat& old) {
  const bool kept =
      fchown(file, old.st_uid, old.st_gid) == 0 || fchown(file, static_cast<uid_t>(-1), old.st_gid) == 0;
  fchmod(file, old.st_mode & (kept ? 0777 : 0707));
}

// after a rename, so that the new name outlasts a loss of power, too
int sync_folder(const std::string& folder) {
  Descriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // a folder that may be written to but not listed, or a file system that cannot do it
  if (!file || fsync(file.number()) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS) return 0;
  return errno;
}

std::string folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

int replace_regular(const fs::path& target, const struct stat* old,
                    const std::vector<std::string_view>& pieces) {
  remove_leftovers(folder_of(target));
  const PartFile part = create_part(target, old ? 0600 : 0644);
  if (part.error != 0) return part.error;
  Descriptor file(part.file);
  if (old) keep_owner(file.number(), *old);
  int error = write_all(file.number(), pieces);
  // on disk before it replaces the old file
  if (error == 0 && fsync(file.number()) != 0) error = errno;
  // closed afterwards: until it is renamed, the lock says that it is in use
  if (error == 0 && std::rename(part.path.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(part.path.c_str());
    return error;
  }
  error = file.close();
  return error != 0 ? error : sync_folder(folder_of(target));
}

// standard output or standard error, if a link such as /dev/stdout leads there: opened again, a file would be
// overwritten from its beginning
int own_stream(const std::string& path, const struct stat& target) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return -1;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat found = {};
    if (fstat(stream, &found) == 0 && found.st_dev == target.st_dev && found.st_ino == target.st_ino)
      return stream;
  }
  return -1;
}

// devices, pipes and sockets are not replaced
int write_in_place(const std::string& path, int stream, const std::vector<std::string_view>& pieces) {
  Descriptor file(stream >= 0 ? dup(stream) : open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return errno;
  const int error = write_all(file.number(), pieces);
  const int closed = file.close();
  return error != 0 ? error : closed;
}

// where links lead, also one whose target does not exist yet; nothing if they lead in a circle
std::optional<fs::path> without_links(fs::path path) {
  constexpr int kMost = 40;
  std::error_code error;
  for (int i = 0; i < kMost; ++i) {
    if (!fs::is_symlink(path, error)) return path;
    const fs::path next = fs::read_symlink(path, error);
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return {};
}

int replace(const std::string& path, const std::vector<std::string_view>& pieces) {
  struct stat old = {};
  const bool exists = stat(path.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) return errno;
  if (exists && S_ISDIR(old.st_mode)) return EISDIR;
  const int stream = exists ? own_stream(path, old) : -1;
  if (exists && (stream >= 0 || !S_ISREG(old.st_mode))) return write_in_place(path, stream, pieces);
  const std::optional<fs::path> target = without_links(path);
  return target ? replace_regular(*target, exists ? &old : nullptr, pieces) : ELOOP;
}

// waits for the writer of a pipe, but not for ever; returns what it has read meanwhile
std::string await_writer(const std::string& path, int file) {
  constexpr int kMilliseconds = 5000;
  pollfd wait = {.fd = file, .events = POLLIN, .revents = 0};
  std::string first;
  if (poll(&wait, 1, kMilliseconds) == 0) {
    // without a writer this is the end of the file; a writer that has not written yet is waited for
    char byte = 0;
    const ssize_t got = read(file, &byte, 1);
    if (got == 0) throw std::runtime_error(path + ": expected a file, got a pipe that nothing writes to");
    if (got == 1) first = byte;
  }
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return first;
}

}  // namespace

std::string read_file(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0 && errno == ENOENT) throw std::runtime_error(path + ": no such file");
  if (S_ISDIR(status.st_mode)) throw std::runtime_error(path + ": expected a file, got a folder");
  const bool pipe = S_ISFIFO(status.st_mode);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (pipe ? O_NONBLOCK : 0)));
  if (!file) throw std::runtime_error(path + ": cannot be opened: " + std::strerror(errno));
  std::string bytes = pipe ? await_writer(path, file.number()) : "";
  size_t size = bytes.size();
  // one byte more than expected, so that a second read finds the end
  const auto expected = S_ISREG(status.st_mode) ? static_cast<size_t>(status.st_size) : 0;
  bytes.resize(expected == 0 ? 1 << 15 : expected + 1);
  for (;;) {
    const ssize_t got = read(file.number(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::runtime_error(path + ": cannot be read: " + std::strerror(errno));
    if (got == 0) break;
    size += static_cast<size_t>(got);
    if (size == bytes.size()) bytes.resize(2 * size);
  }
  bytes.resize(size);
  return bytes;
}

GrowingFile::GrowingFile(const std::string& path, Start start) : path_(path) {
  const int how = start == Start::Empty ? O_TRUNC : O_APPEND;
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | how, 0644);
  if (file_ < 0) throw std::runtime_error(path_ + ": cannot be opened: " + std::strerror(errno));
}

GrowingFile::~GrowingFile() {
  if (file_ >= 0) ::close(file_);
}

void GrowingFile::append(std::string_view bytes) {
  const int error = write_all(file_, {bytes});
  if (error != 0) throw std::runtime_error(path_ + ": cannot be written: " + std::strerror(error));
}

void GrowingFile::close() {
  if (::close(std::exchange(file_, -1)) != 0)
    throw std::runtime_error(path_ + ": cannot be written: " + std::strerror(errno));
}

void replace_file(const std::string& path, const std::vector<std::string_view>& pieces) {
  const int error = replace(path, pieces);
  if (error != 0) throw std::runtime_error(path + ": cannot be written: " + std::strerror(error));
}

void replace_file(const std::string& path, std::string_view contents) {
  replace_file(path, std::vector<std::string_view>{contents});
}

}  // namespace fastweights
