#include "ops/scan/cuda/launch.cuh"

namespace fastweights::kernels::cuda {

void launch_64_each(const Task& task, Pass pass, cudaStream_t stream) {
  launch_shared<64, false>(task, pass, stream);
}

}  // namespace fastweights::kernels::cuda
