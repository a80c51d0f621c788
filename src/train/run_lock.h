#pragma once

#include <string>

namespace fastweights {

/// Reserves a folder for this process while the object lives: a locked file `lock` that names the process and
/// its host, and that is removed at the end. The lock of a process that was killed is free at once. If
/// another process holds it, a std::runtime_error names it.
class RunLock {
 public:
  explicit RunLock(const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  std::string path_;
  int file_ = -1;
};

/// Whether a process holds the lock of a folder, as far as this host knows; takes no lock itself.
bool is_locked(const std::string& folder);

}  // namespace fastweights
