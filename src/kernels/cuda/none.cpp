#include <stdexcept>

#include "kernels/cuda/adam.h"
#include "kernels/cuda/dropout.h"

/// Builds without CUDA: nobody gets here, since no tensor is on a GPU.

namespace fastweights::kernels {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("this build has no CUDA"); }

}  // namespace

void cuda_adam(const CudaAdam&, void*) { refuse(); }
void cuda_dropout(float*, int64_t, double, uint64_t, void*) { refuse(); }

}  // namespace fastweights::kernels
