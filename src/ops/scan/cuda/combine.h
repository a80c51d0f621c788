#pragma once

#include <cstdint>

/// Steps of a linear rule in chunks of time: each takes W to W A + B (or, for Oja's rule, A W + B), so W at
/// all their beginnings follows from A and B of each. README.md, section 8.

namespace fastweights::kernels {

struct CudaChunks {
  const int64_t* offsets;  // [B + 1]: chunks of each sample, one sample after another
  int64_t samples, heads, width;
  bool left;       // A stands on the left of W
  bool backwards;  // gradients: from the last chunk to the first, with A transposed
};

/// a, b (or null: nothing) and m: [chunks, H, D, D]; start [B, H, D, D]. m of a chunk is what it begins with,
/// or backwards the gradient of what it ends with. Pointers are of the device.
void cuda_combine(const CudaChunks& chunks, const float* a, const float* b, const float* start, float* m,
                  void* stream);

}  // namespace fastweights::kernels
