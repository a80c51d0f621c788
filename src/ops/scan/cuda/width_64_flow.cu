#include "ops/scan/cuda/launch.cuh"

namespace fastweights::kernels::cuda {

void launch_64_flow(const Task& task, Pass pass, cudaStream_t stream) { launch_flow<64>(task, pass, stream); }

}  // namespace fastweights::kernels::cuda
