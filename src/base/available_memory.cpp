#include "base/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace fastweights {
namespace {

namespace fs = std::filesystem;

// a number at the beginning of a text, after spaces
int64_t number_of(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number >= 0 ? number : kUnknownMemory;
}

// of a file with one number; "max" is no limit
int64_t number_in(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  return std::getline(in, line) ? number_of(line) : kUnknownMemory;
}

// of a file of lines "key value"
int64_t value_in(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key)) return number_of(std::string_view(line).substr(key.size()));
  }
  return kUnknownMemory;
}

// the same in kB
int64_t kilobytes_in(const fs::path& file, std::string_view key) {
  const int64_t value = value_in(file, key);
  return value > kUnknownMemory / 1024 ? kUnknownMemory : value * 1024;
}

int64_t limit_left(int64_t limit, int64_t used) {
  return limit == kUnknownMemory || used == kUnknownMemory ? kUnknownMemory
                                                           : std::max<int64_t>(limit - used, 0);
}

// files of a version of control groups
struct GroupFiles {
  const char *limit, *used, *statistics, *cache;
};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat",
                                  "total_inactive_file "};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "memory.stat", "inactive_file "};

// a group and those above it; inside a container the path may be that of the host, of which only the top is
// visible
void add_groups(GroupMemory& memory, const fs::path& top, const std::string& path, const GroupFiles& files) {
  const bool inside = path.starts_with('/') && path.find("/..") == std::string::npos;
  for (fs::path group = inside ? path.substr(1) : "";; group = group.parent_path()) {
    const fs::path folder = top / group;
    const int64_t limit = number_in(folder / files.limit);
    if (limit != kUnknownMemory) {
      // inactive file pages are released before the limit is reached
      int64_t used = number_in(folder / files.used);
      const int64_t cache = value_in(folder / files.statistics, files.cache);
      if (used != kUnknownMemory && cache <= used) used -= cache;
      memory.limit = std::min(memory.limit, limit);
      memory.left = std::min(memory.left, limit_left(limit, used));
    }
    if (group.empty()) return;
  }
}

// whether memory is among the controllers a,b,c
bool has_memory(std::string_view controllers) {
  for (size_t at = 0; at <= controllers.size();) {
    const size_t end = std::min(controllers.find(',', at), controllers.size());
    if (controllers.substr(at, end - at) == "memory") return true;
    at = end + 1;
  }
  return false;
}

int64_t address_space_limit() {
  rlimit limit = {};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < uint64_t{kUnknownMemory};
  return limited ? static_cast<int64_t>(limit.rlim_cur) : kUnknownMemory;
}

}  // namespace

GroupMemory group_memory(const std::string& root) {
  const fs::path top = fs::path(root) / "sys/fs/cgroup";
  GroupMemory memory;
  std::ifstream in(fs::path(root) / "proc/self/cgroup");
  // number:controllers:path, of version 2 0::path
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', std::min(first, line.size() - 1) + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1),
                      path = line.substr(second + 1);
    if (controllers.empty()) {
      for (const fs::path& folder : {top, top / "unified"}) add_groups(memory, folder, path, kVersion2);
    } else if (has_memory(controllers)) {
      add_groups(memory, top / "memory", path, kVersion1);
    }
  }
  return memory;
}

int64_t total_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  const int64_t physical = pages > 0 && size > 0 ? int64_t{pages} * size : kUnknownMemory;
  return std::min({physical, group_memory().limit, address_space_limit()});
}

int64_t available_memory() {
  const int64_t swap = kilobytes_in("/proc/meminfo", "SwapFree:");
  int64_t left = kilobytes_in("/proc/meminfo", "MemAvailable:");
  if (left != kUnknownMemory && swap != kUnknownMemory) left += swap;
  return std::min({left, group_memory().left,
                   limit_left(address_space_limit(), kilobytes_in("/proc/self/status", "VmSize:"))});
}

std::string shown_bytes(double bytes) {
  constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  char text[48];
  std::snprintf(text, sizeof text, bytes < 10 && unit > 0 ? "%.2g %s" : "%.0f %s", bytes, kUnits[unit]);
  return text;
}

}  // namespace fastweights
