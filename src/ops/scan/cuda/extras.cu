#include "ops/scan/cuda/launch.cuh"

namespace fastweights::kernels::cuda {

void launch_extras(const Task& task, Pass pass, cudaStream_t stream) {
  if (task.width <= 4) return launch<4, false, -1, 0, Scope::Extras>(task, pass, stream);
  if (task.width <= 8) return launch<8, false, -1, 0, Scope::Extras>(task, pass, stream);
  if (task.width <= 16) return launch<16, false, -1, 0, Scope::Extras>(task, pass, stream);
  if (task.width <= 32) return launch<32, false, -1, 0, Scope::Extras>(task, pass, stream);
  launch<64, false, -1, 0, Scope::Extras>(task, pass, stream);
}

}  // namespace fastweights::kernels::cuda
