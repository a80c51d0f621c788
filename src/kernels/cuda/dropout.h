#pragma once

#include <cstdint>

/// Masks of dropout on a GPU, bit for bit those of the CPU.

namespace fastweights::kernels {

/// count values, each 0 with probability `rate` and 1 / (1 - rate) otherwise, from a generator
/// (base/random.h) in this state, plus what `seed` points to unless that is null. Pointers are of the device,
/// `stream` is a cudaStream_t; a launch that fails throws.
void cuda_dropout(float* mask, int64_t count, double rate, uint64_t state, const int64_t* seed, void* stream);

}  // namespace fastweights::kernels
