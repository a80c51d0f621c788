#pragma once

#include "ops/scan/cuda/finish.cuh"

/// The kernels of one width; scan.cu chooses among them.

namespace fastweights::kernels::cuda {

// blocks that a multiprocessor should have room for: the recurrence waits, and others may work meanwhile.
// More of them would leave too few registers, which costs more than it gains
template <typename K>
inline constexpr int kBackwardBlocks = K::kShared && !K::kExtras && K::kWidth <= 8 ? 6
                                       : K::kWidth <= 10                           ? 5
                                       : K::kWidth <= 20                           ? 4
                                       : K::kWidth <= 32                           ? 3
                                                                                   : 1;

template <int Width, bool Shared, int Phi, int Stages, Scope Use>
__global__ void __launch_bounds__(kForwardThreads)
    forward_kernel(const __grid_constant__ Task task, int head_groups) {
  forward<Kind<Width, Shared, Phi, Stages, Use>>(task, head_groups);
}

template <int Width, bool Shared, int Phi, int Stages, Scope Use>
__global__ void __launch_bounds__(kBackwardThreads, kBackwardBlocks<Kind<Width, Shared, Phi, Stages, Use>>)
    backward_kernel(const __grid_constant__ Task task, int head_groups) {
  backward<Kind<Width, Shared, Phi, Stages, Use>>(task, head_groups);
}

template <typename Kernel>
void start(Kernel kernel, int threads, const Task& task, int groups, size_t room, cudaStream_t stream) {
  // more than this must be asked for
  constexpr size_t kPlain = 48 * 1024;
  if (room > kPlain)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(room));
  kernel<<<static_cast<unsigned>(task.samples.samples * groups), threads, room, stream>>>(task, groups);
}

template <int Width, bool Shared, int Phi, int Stages, Scope Use>
void launch(const Task& task, Pass pass, cudaStream_t stream) {
  using K = Kind<Width, Shared, Phi, Stages, Use>;
  const int groups = (task.heads + Team<Width>::kTeams - 1) / Team<Width>::kTeams;
  if (pass == Pass::Forward) {
    start(forward_kernel<Width, Shared, Phi, Stages, Use>, kForwardThreads, task, groups,
          sizeof(ForwardRoom<K>), stream);
  } else {
    start(backward_kernel<Width, Shared, Phi, Stages, Use>, kBackwardThreads, task, groups,
          sizeof(BackwardRoom<K>), stream);
  }
}

// methods of four stages have kernels of their own for every rule
template <int Width, bool Shared>
void launch_stages(const Task& task, Pass pass, cudaStream_t stream) {
  if (task.stages != 4) return launch<Width, Shared, -1, 0, Scope::Stages>(task, pass, stream);
  switch (task.phi) {
    case ScanPhi::Value:
      return launch<Width, Shared, static_cast<int>(ScanPhi::Value), 4, Scope::Stages>(task, pass, stream);
    case ScanPhi::Difference:
      return launch<Width, Shared, static_cast<int>(ScanPhi::Difference), 4, Scope::Stages>(task, pass,
                                                                                            stream);
    case ScanPhi::Tanh:
      return launch<Width, Shared, static_cast<int>(ScanPhi::Tanh), 4, Scope::Stages>(task, pass, stream);
    case ScanPhi::Softmax:
      return launch<Width, Shared, static_cast<int>(ScanPhi::Softmax), 4, Scope::Stages>(task, pass, stream);
  }
}

// so have flows
template <int Width>
void launch_flow(const Task& task, Pass pass, cudaStream_t stream) {
  if (task.phi == ScanPhi::Value) {
    launch<Width, true, static_cast<int>(ScanPhi::Value), 1, Scope::Flow>(task, pass, stream);
  } else if (task.phi == ScanPhi::Difference) {
    launch<Width, true, static_cast<int>(ScanPhi::Difference), 1, Scope::Flow>(task, pass, stream);
  } else {
    launch<Width, true, static_cast<int>(ScanPhi::Tanh), 1, Scope::Flow>(task, pass, stream);
  }
}

// four stages of wide heads with a p each do not fit into the registers
template <int Width, bool Shared>
void launch_shared(const Task& task, Pass pass, cudaStream_t stream) {
  if constexpr (Width > 32 && !Shared) {
    launch<Width, Shared, -1, 0, Scope::Stages>(task, pass, stream);
  } else {
    launch_stages<Width, Shared>(task, pass, stream);
  }
}

// stages share p, or each has its own; a flow has one
template <int Width>
void launch_width(const Task& task, Pass pass, cudaStream_t stream) {
  if (task.step == ScanStep::Flow) return launch_flow<Width>(task, pass, stream);
  if (task.p_rows == 1) return launch_shared<Width, true>(task, pass, stream);
  launch_shared<Width, false>(task, pass, stream);
}

void launch_4(const Task& task, Pass pass, cudaStream_t stream);
void launch_5(const Task& task, Pass pass, cudaStream_t stream);
void launch_8(const Task& task, Pass pass, cudaStream_t stream);
void launch_10(const Task& task, Pass pass, cudaStream_t stream);
void launch_16(const Task& task, Pass pass, cudaStream_t stream);
void launch_20(const Task& task, Pass pass, cudaStream_t stream);
void launch_32(const Task& task, Pass pass, cudaStream_t stream);
void launch_64(const Task& task, Pass pass, cudaStream_t stream);
void launch_64_each(const Task& task, Pass pass, cudaStream_t stream);  // stages with a p each
void launch_64_flow(const Task& task, Pass pass, cudaStream_t stream);
void launch_extras(const Task& task, Pass pass, cudaStream_t stream);

}  // namespace fastweights::kernels::cuda
