#include <stdexcept>

#include "ops/scan/cuda/collapse.h"
#include "ops/scan/cuda/combine.h"
#include "ops/scan/cuda/net.h"
#include "ops/scan/cuda/program.h"
#include "ops/scan/cuda/scan.h"

/// Builds without CUDA: never reached, since no tensor is on a GPU.

namespace fastweights::kernels {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error("this build has no CUDA"); }

}  // namespace

void cuda_scan_forward(const ScanPlan&, const ScanArrays<float>&, const CudaSamples&, const CudaKept&,
                       void*) {
  refuse();
}
void cuda_scan_backward(const ScanPlan&, const ScanArrays<float>&, const ScanArrays<float>&,
                        const CudaSamples&, const CudaKept&, void*) {
  refuse();
}
void cuda_clear_unused(float*, int64_t, int64_t, const int64_t*, void*) { refuse(); }
void cuda_program(const CudaProgram&, const CudaProgramOutput&, void*) { refuse(); }
void cuda_program_backward(const CudaProgram&, const CudaProgramOutput&, const CudaProgramOutput&, float*,
                           float*, void*) {
  refuse();
}
void cuda_normalise(const CudaNormalise&, float*, float*, void*) { refuse(); }
int64_t cuda_normalise_parts(const CudaNormalise&) { refuse(); }
void cuda_normalise_backward(const CudaNormalise&, const CudaNormaliseGradient&, const float*, float*, float*,
                             void*) {
  refuse();
}
void cuda_collapse(const CudaLayers&, float*, double*, void*) { refuse(); }
void cuda_collapse_backward(const CudaLayers&, const float*, const double*, const CudaLayerGradients&,
                            void*) {
  refuse();
}
bool cuda_net_pays(int64_t, int64_t) { return false; }
void cuda_net(const CudaNet&, const CudaProgramOutput&, void*) { refuse(); }
CudaNetParts cuda_net_parts(const CudaNet&) { refuse(); }
void cuda_net_backward(const CudaNet&, const CudaProgramOutput&, const CudaProgramOutput&,
                       const CudaNetGradients&, void*) {
  refuse();
}
void cuda_combine(const CudaChunks&, const float*, const float*, const float*, float*, void*) { refuse(); }

}  // namespace fastweights::kernels
