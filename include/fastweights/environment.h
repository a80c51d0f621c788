#pragma once

#include <string>
#include <vector>

namespace fastweights {

/// Version of this library, "1.2.3".
std::string version();

/// A backend, and whether it is usable on this machine.
struct BackendInfo {
  std::string name;
  bool usable;
  std::string detail;  ///< the device that it runs on, or why it is not usable
};

/// Properties of this machine and of the build.
struct Environment {
  std::string version;
  std::string compiler;
  std::string libtorch;
  std::string blas;
  int threads;  ///< used by LibTorch and the kernels
  int cores;
  std::string processor;
  /// avx512, avx2 or baseline: used by the kernels, the widest that the processor supports. FASTWEIGHTS_ISA
  /// limits it.
  std::string instruction_set;
  std::vector<BackendInfo> backends;
};

Environment environment();

/// Sets the number of threads of LibTorch and the kernels; 0: all cores. LibTorch may start with one.
void set_threads(int threads);

}  // namespace fastweights
