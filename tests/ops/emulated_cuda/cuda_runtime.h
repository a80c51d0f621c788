#pragma once

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

/// As much of CUDA as the kernels that are tested here use, on the CPU: a thread for each thread of a block,
/// which meet where a block's threads meet and nowhere else. It is slow, and shows what a GPU would: wrong
/// numbers, accesses beyond arrays and, under a thread sanitizer, races.

#define __device__
#define __host__
#define __shared__

using cudaStream_t = void*;

struct alignas(16) float4 {
  float x, y, z, w;
};

struct EmulatedIndex {
  unsigned x = 0, y = 0;
};
inline thread_local EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

namespace emulated_cuda {

struct Warp {
  std::barrier<> meeting{32};
  float numbers[32] = {};
};

struct Block {
  explicit Block(unsigned threads) : meeting(threads), warps(threads / 32) {
    for (auto& warp : warps) warp = std::make_unique<Warp>();
  }
  std::barrier<> meeting;
  std::vector<std::unique_ptr<Warp>> warps;
};

inline thread_local Block* block = nullptr;

inline Warp& warp() { return *block->warps[threadIdx.x / 32]; }

/// Blocks of a grid, one after another.
inline void run(EmulatedIndex grid, unsigned threads, const std::function<void()>& kernel) {
  for (unsigned b = 0; b < grid.x * grid.y; ++b) {
    Block here(threads);
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t)
      all.emplace_back([&, b, t] {
        threadIdx = {t, 0};
        blockIdx = {b % grid.x, b / grid.x};
        blockDim = {threads, 1};
        gridDim = grid;
        block = &here;
        kernel();
      });
    for (std::thread& thread : all) thread.join();
  }
}
inline void run(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  run(EmulatedIndex{blocks, 1}, threads, kernel);
}

}  // namespace emulated_cuda

inline void __syncthreads() { emulated_cuda::block->meeting.arrive_and_wait(); }
inline void __syncwarp() { emulated_cuda::warp().meeting.arrive_and_wait(); }

inline float __shfl_xor_sync(unsigned, float x, int far) {
  emulated_cuda::Warp& warp = emulated_cuda::warp();
  const unsigned lane = threadIdx.x % 32;
  warp.numbers[lane] = x;
  warp.meeting.arrive_and_wait();
  const float other = warp.numbers[lane ^ static_cast<unsigned>(far)];
  warp.meeting.arrive_and_wait();
  return other;
}

inline float __expf(float x) { return std::exp(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }

using std::max;
using std::min;
