#include "ops/scan/cuda/launch.cuh"

namespace fastweights::kernels::cuda {

// in three files, since these kernels take the longest to compile
void launch_64(const Task& task, Pass pass, cudaStream_t stream) {
  if (task.step == ScanStep::Flow) return launch_64_flow(task, pass, stream);
  if (task.p_rows == 1) return launch_shared<64, true>(task, pass, stream);
  launch_64_each(task, pass, stream);
}

}  // namespace fastweights::kernels::cuda
