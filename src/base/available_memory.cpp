#include "base/available_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

namespace fastweights {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// of a file of lines "key: value kB"
int64_t kilobytes_in(const char* path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return kUnknown;
}

int64_t number_in(const char* path) {
  std::ifstream in(path);
  int64_t number = kUnknown;
  return in >> number ? number : kUnknown;
}

int64_t limit_left(int64_t limit, int64_t used) {
  return limit == kUnknown || used == kUnknown ? kUnknown : std::max<int64_t>(limit - used, 0);
}

}  // namespace

int64_t available_memory() {
  const int64_t swap = kilobytes_in("/proc/meminfo", "SwapFree");
  int64_t left = kilobytes_in("/proc/meminfo", "MemAvailable");
  if (left != kUnknown && swap != kUnknown) left += swap;
  left = std::min(
      left, limit_left(number_in("/sys/fs/cgroup/memory.max"), number_in("/sys/fs/cgroup/memory.current")));
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    left = std::min(
        left, limit_left(static_cast<int64_t>(limit.rlim_cur), kilobytes_in("/proc/self/status", "VmSize")));
  return left;
}

std::string shown_bytes(double bytes) {
  constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  char text[48];
  std::snprintf(text, sizeof text, bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes, kUnits[unit]);
  return text;
}

}  // namespace fastweights
