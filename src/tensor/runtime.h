#pragma once

#include <string>

namespace fastweights {

/// Threads that LibTorch and parallel_for use.
int thread_count();
void set_thread_count(int threads);

/// Refuses a value of FASTWEIGHTS_ISA that names no instruction set, before kernels run.
void check_instruction_set();

/// Version of the LibTorch headers this was compiled with.
std::string libtorch_version();

}  // namespace fastweights
