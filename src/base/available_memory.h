#pragma once

#include <cstdint>
#include <limits>
#include <string>

/// The memory of the machine, as far as this process may take it. Sizes are bytes.

namespace fastweights {

inline constexpr int64_t kUnknownMemory = std::numeric_limits<int64_t>::max();

/// The smallest limit of the control groups of this process, version 1 or 2, and the least that is left in
/// one of them, without inactive file pages.
struct GroupMemory {
  int64_t limit = kUnknownMemory, left = kUnknownMemory;
};

/// `root` is the folder that contains proc and sys; for tests.
GroupMemory group_memory(const std::string& root = "/");

/// What this process may take at all: the memory of the machine, within the limits of its control groups and
/// of its address space. kUnknownMemory if nothing is known.
int64_t total_memory();

/// What this process may still allocate: memory that the system has available, within the same limits.
int64_t available_memory();

/// 1.5 kB, 20 MB, 3.2 GB.
std::string shown_bytes(double bytes);

}  // namespace fastweights
