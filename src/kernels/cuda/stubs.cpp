#include <stdexcept>

#include "kernels/cuda/adam.h"
#include "kernels/cuda/dropout.h"
#include "kernels/cuda/path.h"
#include "kernels/cuda/signature.h"

/// Builds without CUDA: never reached, since no tensor is on a GPU.

namespace fastweights::kernels {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("this build has no CUDA"); }

}  // namespace

void cuda_adam(const CudaAdam&, void*) { refuse(); }
void cuda_dropout(float*, int64_t, double, uint64_t, const int64_t*, void*) { refuse(); }
void cuda_straight_path(PathKind, const CudaSeries&, float*, void*) { refuse(); }
void cuda_natural_path(PathKind, const CudaSeries&, int64_t, int64_t, float*, double*, void*) { refuse(); }
void cuda_rectilinear_knots(const CudaSeries&, int64_t, float*, void*) { refuse(); }
void cuda_last_observations(const CudaSeries&, float*, void*) { refuse(); }
void cuda_path_sample(const CudaPathSample&, void*) { refuse(); }
int64_t cuda_logsignature_scratch(const CudaSignature&) { refuse(); }
void cuda_logsignature(const CudaSignature&, double*, void*) { refuse(); }

}  // namespace fastweights::kernels
