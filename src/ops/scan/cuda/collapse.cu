#include "ops/scan/cuda/collapse.cuh"

#include "kernels/cuda/check.cuh"

namespace fastweights::kernels {
namespace {

using cuda::kCollapseColumns;

__global__ void collapse_kernel(const __grid_constant__ CudaLayers layers, float* map, double* gram) {
  cuda::collapse(layers, map, gram);
}

__global__ void collapse_backward_kernel(const __grid_constant__ CudaLayers layers, const float* grad_map,
                                         const double* grad_gram, CudaLayerGradients to) {
  __shared__ cuda::CollapseRoom room;
  cuda::collapse_backward(layers, grad_map, grad_gram, to, room);
}

__global__ void centre_backward_kernel(const __grid_constant__ CudaLayers layers, CudaLayerGradients to) {
  __shared__ double sums[kCollapseColumns];
  cuda::centre_backward(layers, to, sums);
}

}  // namespace

void cuda_collapse(const CudaLayers& layers, float* map, double* gram, void* stream) {
  const auto blocks = static_cast<unsigned>(layers.projections + layers.channels + 1);
  collapse_kernel<<<blocks, kCollapseColumns, 0, static_cast<cudaStream_t>(stream)>>>(layers, map, gram);
  cuda::check_launch("collapse");
}

void cuda_collapse_backward(const CudaLayers& layers, const float* grad_map, const double* grad_gram,
                            const CudaLayerGradients& to, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  collapse_backward_kernel<<<static_cast<unsigned>(layers.units + layers.projections), kCollapseColumns, 0,
                             on>>>(layers, grad_map, grad_gram, to);
  centre_backward_kernel<<<static_cast<unsigned>(layers.channels + 1), kCollapseColumns, 0, on>>>(layers, to);
  cuda::check_launch("collapse");
}

}  // namespace fastweights::kernels
