#pragma once

#include <string>

#include "fastweights/tensor.h"

namespace fastweights {

/// Threads that LibTorch and parallel_for use.
int thread_count();
void set_thread_count(int threads);

/// Refuses a value of FASTWEIGHTS_ISA that names no instruction set, before kernels run.
void check_instruction_set();

/// Sets LibTorch's precision of matrix products for a scope; it is one for the whole process.
class Tf32Scope {
 public:
  explicit Tf32Scope(Tf32 use);
  ~Tf32Scope();
  Tf32Scope(const Tf32Scope&) = delete;
  Tf32Scope& operator=(const Tf32Scope&) = delete;

 private:
  std::string before_;
};
/// Whether products may round to TF32 now.
bool uses_tf32();

/// Version of the LibTorch headers this was compiled with.
std::string libtorch_version();

}  // namespace fastweights
