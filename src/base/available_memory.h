#pragma once

#include <cstdint>
#include <string>

namespace fastweights {

/// Bytes that this process may still allocate: memory that the system has available, within the limits of the
/// process and its control group. The largest int64 if nothing is known.
int64_t available_memory();

/// 1.5 kB, 20 MB, 3.2 GB.
std::string shown_bytes(double bytes);

}  // namespace fastweights
