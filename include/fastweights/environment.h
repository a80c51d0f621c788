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
  std::string instruction_set;  ///< the widest of AVX-512, AVX2 and the baseline that the processor has
  std::vector<BackendInfo> backends;
};

Environment environment();

/// Number of threads for LibTorch and the kernels; 0 takes all cores. LibTorch may start with one.
void set_threads(int threads);

}  // namespace fastweights
