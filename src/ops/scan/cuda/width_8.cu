#include "ops/scan/cuda/launch.cuh"

namespace fastweights::kernels::cuda {

void launch_8(const Task& task, Pass pass, cudaStream_t stream) { launch_width<8>(task, pass, stream); }

}  // namespace fastweights::kernels::cuda
