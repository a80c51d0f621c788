#pragma once

#include <string>
#include <vector>

namespace fastweights {

/// Version of this library, "1.2.3".
std::string version();

/// A way to compute, and whether this machine can.
struct BackendInfo {
  std::string name;
  bool usable;
  std::string detail;  ///< what it runs on, or why it cannot
};

/// What the library finds on this machine.
struct Environment {
  std::string version;
  std::string compiler;
  std::string libtorch;
  std::string blas;
  int threads;  ///< that LibTorch and the kernels use
  int cores;
  std::string processor;
  /// avx512, avx2 or baseline: what the kernels use, the widest that the processor has. FASTWEIGHTS_ISA
  /// narrows it.
  std::string instruction_set;
  std::vector<BackendInfo> backends;
};

Environment environment();

/// Number of threads for LibTorch and the kernels; 0 takes all cores. LibTorch may start with one.
void set_threads(int threads);

}  // namespace fastweights
