#include "train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "base/error.h"
#include "base/printable.h"

namespace fastweights {
namespace {

// who holds a lock: a line "PID HOST"
struct Holder {
  pid_t process = 0;
  std::string host;
};

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Holder holder_of(int file) {
  std::array<char, 512> text = {};
  if (pread(file, text.data(), text.size() - 1, 0) <= 0) return {};
  std::istringstream in(text.data());
  Holder holder;
  in >> holder.process >> holder.host;
  return holder;
}

// without locks of the file system, only processes of this host can be looked for
bool may_live(const Holder& holder) {
  if (holder.process <= 0) return false;
  return holder.host != host_name() || (holder.process != getpid() && kill(holder.process, 0) == 0) ||
         (holder.process != getpid() && errno == EPERM);
}

[[noreturn]] void refuse_lock(const std::string& path, const std::string& what) {
  throw std::runtime_error(message(path, ": ", what));
}

[[noreturn]] void refuse_holder(const std::string& folder, const Holder& holder, const std::string& advice) {
  const std::string who = holder.process > 0
                              ? message("process ", holder.process, " on host '", printable(holder.host), "'")
                              : "another process";
  throw std::runtime_error(message(folder, " is in use: ", who, " trains in it", advice));
}

// whether the name still means this file: its last holder may have removed it meanwhile
bool is_current(const std::string& path, int file) {
  struct stat named = {}, opened = {};
  return lstat(path.c_str(), &named) == 0 && fstat(file, &opened) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

}  // namespace

RunLock::RunLock(const std::string& folder) : path_(folder + "/lock") {
  for (;;) {
    const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);
    if (file < 0) refuse_lock(path_, message("cannot be opened: ", std::strerror(errno)));
    const int error = flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    const Holder holder = error == 0 ? Holder{} : holder_of(file);
    const bool without_locks = error != 0 && error != EWOULDBLOCK;
    if (error == EWOULDBLOCK || (without_locks && may_live(holder))) {
      close(file);
      refuse_holder(folder, holder,
                    without_locks ? message("; if that is wrong, remove ", path_) : "; wait until it ends");
    }
    if (is_current(path_, file)) {
      file_ = file;
      break;
    }
    close(file);
  }
  // on a full disk it is locked all the same, only the name of the holder is missing
  const std::string line = message(getpid(), " ", host_name(), "\n");
  [[maybe_unused]] const bool named =
      ftruncate(file_, 0) == 0 && pwrite(file_, line.data(), line.size(), 0) > 0;
}

RunLock::~RunLock() {
  // first the name, then the lock: whoever waits finds that the file is not the current one
  unlink(path_.c_str());
  close(file_);
}

bool is_locked(const std::string& folder) {
  const int file = open((folder + "/lock").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  const Holder holder = holder_of(file);
  close(file);
  return may_live(holder) || holder.process == getpid();
}

}  // namespace fastweights
