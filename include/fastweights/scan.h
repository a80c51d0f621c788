#pragma once

#include <optional>
#include <string>

#include "fastweights/rule.h"
#include "fastweights/solve.h"
#include "fastweights/tensor.h"

/// The fast weights of a batch through all of its steps at once.
///
///     ScanOutput out = scan({.k = k, .v = v, .beta = beta, .dt = dt, .w0 = w0, .offsets = offsets},
///                           {.rule = delta_post()});
///
/// Keys, values and rates do not depend on W, so they are inputs, and what remains is one recurrence per
/// sample and head. src/ops/scan/README.md contains the derivation.

namespace fastweights {

/// Copies of index tensors on another device.
struct ScanIndex {
  Tensor offsets = {}, output_steps = {}, output_offsets = {};
};

/// R rows are the steps of all samples, one after another: sample b owns the rows offsets[b] .. offsets[b +
/// 1] - 1. P is 1 if all stages of a step share an entry, or the number of stages; k, v and beta may differ
/// in it. They are the activated values that enter the rule. Index tensors are always on the CPU.
struct ScanInput {
  Tensor k;                    // [R, P, H, K]
  Tensor v;                    // [R, P, H, V]
  Tensor beta;                 // [R, P, H]
  Tensor dt;                   // [R]
  Tensor w0;                   // [B, H, V, K]
  Tensor offsets;              // [B + 1] int64
  Tensor q = {};               // [R, S, Q, H, K], Q = 1 or 2: queries at every stage, or undefined
  Tensor output_steps = {};    // [M] int64: return W after this many steps of its sample, increasing ...
  Tensor output_offsets = {};  // [B + 1] int64: ... within each sample; default: after the last step of each
  ScanIndex on_device = {};    // if w0 is on a GPU: copies of the index tensors there; created if absent
};

/// What queries read at the stages: W q, dW/dt q, or both. A flow has one stage: W in the middle of the step,
/// and the mean of dW/dt over the step.
enum class ScanReads { Weights, Slopes, Both };

/// On a GPU, linear rules can process pieces of time in parallel: three times the work, but much faster for
/// few series. Auto does so where it is faster.
enum class TimeParallel { Auto, Never };

struct ScanOptions {
  Rule rule = delta_pre();
  Method method = rk4();    ///< not Adams
  Read read = Read::Plain;  ///< of queries
  ScanReads reads = ScanReads::Weights;
  Backend backend = Backend::Auto;
  TimeParallel time_parallel = TimeParallel::Auto;
};

struct ScanOutput {
  Tensor w;             // [M, H, V, K]
  Tensor y;             // [R, S, Q, H, V]: W q, if requested (with Read::Transposed: W^T q)
  Tensor dy;            // [R, S, Q, H, V]: (dW/dt) q, if requested
  std::string backend;  ///< the one that ran: reference, cpu-avx512, cpu-avx2, cpu-baseline or cuda
};

/// Differentiable with respect to k, v, beta, dt, w0 and q.
ScanOutput scan(const ScanInput& input, const ScanOptions& options = {});

/// Why the kernels of the device of w0 do not support this input; empty: they do.
std::string scan_refusal(const ScanInput& input, const ScanOptions& options);

}  // namespace fastweights
