#include "tensor/runtime.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

namespace fastweights {

int thread_count() { return at::get_num_threads(); }

void set_thread_count(int threads) { at::set_num_threads(threads); }

std::string libtorch_version() { return TORCH_VERSION; }

}  // namespace fastweights
