#pragma once

#include <gtest/gtest.h>

#include "ops/scan/cuda/finish.cuh"

/// The recurrence's kernels of a GPU, thread by thread on the CPU (emulated_cuda), against those of the CPU
/// in float64: outputs, reads, slopes and all gradients.

namespace fastweights::kernels {

struct KernelCase {
  ScanPhi phi;
  ScanMatrix matrix = ScanMatrix::Plain;
  ScanStep step = ScanStep::Stages;
  int64_t width, heads, stages;
  int64_t p_rows = 1, s_rows = 1, beta_rows = 1;
  int64_t queries = 0;
  ScanRead read = ScanRead::Along;
  bool slopes = false, dt_gradient = false;
  double p_scale = 1.2, s_scale = 1, dt_scale = 1;
  bool pauses = false;  // some steps with p = 0, some with dt = 0
};

/// The kernels of a kind.
struct CudaKernels {
  void (*forward)(const cuda::Task&, int head_groups);
  void (*backward)(const cuda::Task&, int head_groups);
  int64_t teams;  // heads of a block
  size_t room;    // shared memory
};

template <typename K>
CudaKernels kernels_of() {
  return {cuda::forward<K>, cuda::backward<K>, cuda::Team<K::kWidth>::kTeams,
          std::max(sizeof(cuda::ForwardRoom<K>), sizeof(cuda::BackwardRoom<K>))};
}

void expect_agreement(const KernelCase& c, const CudaKernels& forward, const CudaKernels& backward);

template <typename K>
void expect_agreement(const KernelCase& c) {
  expect_agreement(c, kernels_of<K>(), kernels_of<K>());
}

constexpr int phi(ScanPhi kind) { return static_cast<int>(kind); }

}  // namespace fastweights::kernels
