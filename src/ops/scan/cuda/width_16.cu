#include "ops/scan/cuda/launch.cuh"

namespace fastweights::kernels::cuda {

void launch_16(const Task& task, Pass pass, cudaStream_t stream) { launch_width<16>(task, pass, stream); }

}  // namespace fastweights::kernels::cuda
