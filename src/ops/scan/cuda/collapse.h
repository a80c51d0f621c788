#pragma once

#include <cstdint>

/// On a GPU: the collapsed slow net (README.md, section 5) from its parameters, and back, in one launch and
/// in two.

namespace fastweights::kernels {

/// Linear [A a] of C channels to d units, LayerNorm gamma, b, Linear S, c to O projections.
struct CudaLayers {
  int64_t channels, units, projections;
  const float *in_weight, *in_bias;      // A [d, C], a [d]
  const float *norm_weight, *norm_bias;  // gamma [d], b [d]
  const float *out_weight, *out_bias;    // S [O, d], c [O]
};

/// With B = [A a] less its column means: map [O, C + 2] = [S diag(gamma) B, S b + c], gram [C + 1, C + 1] =
/// B^T B / d.
void cuda_collapse(const CudaLayers& layers, float* map, double* gram, void* stream);

/// Gradients of the layers, all set, and room for those of B.
struct CudaLayerGradients {
  float *in_weight, *in_bias, *norm_weight, *norm_bias, *out_weight, *out_bias;
  double* centred;  // [d, C + 1]
};

/// Gradients of map and gram, either of which may be null: zero.
void cuda_collapse_backward(const CudaLayers& layers, const float* grad_map, const double* grad_gram,
                            const CudaLayerGradients& to, void* stream);

}  // namespace fastweights::kernels
