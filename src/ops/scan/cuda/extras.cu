#include "ops/scan/cuda/launch.cuh"

namespace fastweights::kernels::cuda {

template <bool Shared, int Stages, Scope Use>
void launch_widths(const Task& task, Pass pass, cudaStream_t stream) {
  if (task.width <= 4) return launch<4, Shared, -1, Stages, Use>(task, pass, stream);
  if (task.width <= 8) return launch<8, Shared, -1, Stages, Use>(task, pass, stream);
  if (task.width <= 16) return launch<16, Shared, -1, Stages, Use>(task, pass, stream);
  if (task.width <= 32) return launch<32, Shared, -1, Stages, Use>(task, pass, stream);
  launch<64, Shared, -1, Stages, Use>(task, pass, stream);
}

// a p for each stage: where stages share one, it is fetched for each
void launch_extras(const Task& task, Pass pass, cudaStream_t stream) {
  if (task.step == ScanStep::Flow) return launch_widths<true, 1, Scope::FlowExtras>(task, pass, stream);
  launch_widths<false, 0, Scope::StageExtras>(task, pass, stream);
}

}  // namespace fastweights::kernels::cuda
