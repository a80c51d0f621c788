#include "ops/scan/cuda/program.h"

#include "kernels/cuda/check.cuh"
#include "ops/scan/cuda/fast.cuh"
#include "ops/scan/cuda/lanes.cuh"

namespace fastweights::kernels {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(int64_t threads) {
  constexpr int64_t kMost = 1 << 14;
  return static_cast<unsigned>(min((threads + kThreads - 1) / kThreads, kMost));
}

// where the parts of one row and head begin
struct Offsets {
  int64_t key, value, rate;  // in projections, or in values
  int64_t made;              // in k and v
};

__device__ Offsets offsets_of(const CudaProgram& task, int64_t item) {
  const int64_t width = task.width, each = task.values ? width + 1 : 2 * width + 1, first = item * each;
  return {first, task.values ? item * width : first + width, first + each - 1, item * width};
}

// factors of an item's values, or null; a 64-bit division, paid only with a mask
__device__ const float* mask_of(const CudaProgram& task, int64_t item) {
  if (!task.mask) return nullptr;
  const int64_t row = item / task.heads, head = item % task.heads;
  return task.mask + (task.samples[row / task.times] * task.heads + head) * task.width;
}

// a team for each row and head, and a lane for each number of its vectors; wide ones have two for each
template <int Lanes, int Each>
__global__ void program_kernel(CudaProgram task, CudaProgramOutput out) {
  const int64_t items = task.rows * task.heads, teams = static_cast<int64_t>(gridDim.x) * (kThreads / Lanes);
  const int lane = static_cast<int>(threadIdx.x) % Lanes, width = static_cast<int>(task.width);
  const float* values = task.values ? task.values : task.projections;
  int64_t item = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / Lanes;
  // whole warps stay together, for the sums
  for (; item - (threadIdx.x % 32) / Lanes < items; item += teams) {
    const bool inside = item < items;
    const Offsets at = offsets_of(task, inside ? item : 0);
    const float* mask = inside ? mask_of(task, item) : nullptr;
    float key[Each], largest = -INFINITY, sum = 0;
#pragma unroll
    for (int r = 0; r < Each; ++r) {
      const int i = lane + 32 * r;
      const bool own = inside && i < width;
      key[r] = own ? task.projections[at.key + i] : -INFINITY;
      largest = fmaxf(largest, key[r]);
      if (!own) continue;
      const float value = values[at.value + i];
      out.v[at.made + i] = (task.value == ScanForm::Tanh ? cuda::fast_tanh(cuda::kTwoLog2E * value) : value) *
                           (mask ? mask[i] : 1.0f);
    }
    if (inside && lane == 0) {
      const float rate = task.projections[at.rate];
      out.beta[item] = task.rate == ScanForm::Sigmoid ? cuda::fast_sigmoid(rate) : rate;
    }
    float scale = 1;
    if (task.key == ScanForm::Softmax) {
      largest = cuda::lanes_max<Lanes>(largest);
#pragma unroll
      for (int r = 0; r < Each; ++r) {
        key[r] = lane + 32 * r < width ? cuda::fast_exp2(0.5f * cuda::kTwoLog2E * (key[r] - largest)) : 0.0f;
        sum += key[r];
      }
      scale = cuda::fast_reciprocal(cuda::lanes_sum<Lanes>(sum));
    }
#pragma unroll
    for (int r = 0; r < Each; ++r) {
      if (inside && lane + 32 * r < width) out.k[at.made + lane + 32 * r] = key[r] * scale;
    }
  }
}

template <int Lanes, int Each>
__global__ void program_backward_kernel(CudaProgram task, CudaProgramOutput made, CudaProgramOutput grads,
                                        float* grad_projections, float* grad_values) {
  const int64_t items = task.rows * task.heads, teams = static_cast<int64_t>(gridDim.x) * (kThreads / Lanes);
  const int lane = static_cast<int>(threadIdx.x) % Lanes, width = static_cast<int>(task.width);
  float* to_values = task.values ? grad_values : grad_projections;
  const bool soft = task.key == ScanForm::Softmax;
  const int64_t count = task.steps ? *task.steps * task.times * task.heads : items;
  int64_t item = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / Lanes;
  for (; item - (threadIdx.x % 32) / Lanes < items; item += teams) {
    const bool inside = item < items, present = item < count;
    const Offsets at = offsets_of(task, inside ? item : 0);
    const float* mask = present ? mask_of(task, item) : nullptr;
    float key[Each] = {}, grad_key[Each] = {}, along = 0;
#pragma unroll
    for (int r = 0; r < Each; ++r) {
      const int i = lane + 32 * r;
      if (inside && !present && i < width) to_values[at.value + i] = 0;
      if (!present || i >= width) continue;
      grad_key[r] = grads.k[at.made + i];
      if (soft) key[r] = made.k[at.made + i];
      along += key[r] * grad_key[r];
      const float factor = mask ? mask[i] : 1.0f;
      float slope = factor;
      if (task.value == ScanForm::Tanh) {
        const float made_value = made.v[at.made + i];
        const float value = mask && factor != 0 ? made_value * cuda::fast_reciprocal(factor) : made_value;
        slope -= factor * value * value;
      }
      to_values[at.value + i] = grads.v[at.made + i] * slope;
    }
    if (inside && lane == 0) {
      const float beta = made.beta[item];
      grad_projections[at.rate] =
          present ? grads.beta[item] * (task.rate == ScanForm::Sigmoid ? beta * (1.0f - beta) : 1.0f) : 0.0f;
    }
    if (soft) along = cuda::lanes_sum<Lanes>(along);
#pragma unroll
    for (int r = 0; r < Each; ++r) {
      const int i = lane + 32 * r;
      if (inside && i < width)
        grad_projections[at.key + i] = soft ? key[r] * (grad_key[r] - along) : grad_key[r];
    }
  }
}

// calls with the lanes that a width needs
template <typename Launch>
void with_lanes(int64_t width, const Launch& launch) {
  if (width <= 4) return launch.template operator()<4, 1>();
  if (width <= 8) return launch.template operator()<8, 1>();
  if (width <= 16) return launch.template operator()<16, 1>();
  if (width <= 32) return launch.template operator()<32, 1>();
  launch.template operator()<32, 2>();
}

}  // namespace

void cuda_program(const CudaProgram& task, const CudaProgramOutput& out, void* stream) {
  if (task.rows == 0) return;
  with_lanes(task.width, [&]<int Lanes, int Each>() {
    program_kernel<Lanes, Each>
        <<<blocks_for(task.rows * task.heads * Lanes), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(task,
                                                                                                         out);
  });
  cuda::check_launch("program");
}

void cuda_program_backward(const CudaProgram& task, const CudaProgramOutput& made,
                           const CudaProgramOutput& grads, float* grad_projections, float* grad_values,
                           void* stream) {
  if (task.rows == 0) return;
  with_lanes(task.width, [&]<int Lanes, int Each>() {
    program_backward_kernel<Lanes, Each>
        <<<blocks_for(task.rows * task.heads * Lanes), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
            task, made, grads, grad_projections, grad_values);
  });
  cuda::check_launch("program");
}

}  // namespace fastweights::kernels
