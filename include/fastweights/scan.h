#pragma once

#include <optional>
#include <string>
#include <variant>

#include "fastweights/backend.h"
#include "fastweights/rule.h"
#include "fastweights/tableau.h"
#include "fastweights/tensor.h"

/// The fast weights of a batch through all of its steps at once.
///
///     ScanOutput out = scan({.k = k, .v = v, .beta = beta, .dt = dt, .w0 = w0, .offsets = offsets},
///                           {.rule = delta_post()});
///
/// Keys, values and rates do not depend on W, so they come ready-made, and what is left is one recurrence per
/// sample and head. src/ops/scan/README.md derives it.

namespace fastweights {

/// Copies of index tensors on another device.
struct ScanIndex {
  Tensor offsets = {}, output_steps = {}, output_offsets = {};
};

/// R rows are the steps of all samples, one after another: sample b owns the rows offsets[b] .. offsets[b +
/// 1] - 1. P is 1, if all stages of a step share what is there, or the number of stages; k, v and beta may
/// differ in it. They come as they enter the rule. Index tensors are on the CPU, whatever the others are on.
struct ScanInput {
  Tensor k;                    // [R, P, H, K]
  Tensor v;                    // [R, P, H, V]
  Tensor beta;                 // [R, P, H]
  Tensor dt;                   // [R]
  Tensor w0;                   // [B, H, V, K]
  Tensor offsets;              // [B + 1] int64
  Tensor q = {};               // [R, S, Q, H, K], Q = 1 or 2: queries at every stage, or none
  Tensor output_steps = {};    // [M] int64: W is wanted after so many steps of its sample, rising ...
  Tensor output_offsets = {};  // [B + 1] int64: ... for each sample; default: at the end of each
  ScanIndex on_device = {};    // where k, v and w0 are on a GPU: the index tensors, too; made if absent
};

/// The solution itself, for rules that are linear in W and constant over each step (P = 1).
struct ExactFlow {};
using ScanMethod = std::variant<Tableau, ExactFlow>;

/// What is read with the queries at the stages: W q, dW/dt q, or both.
enum class ScanReads { Weights, Slopes, Both };

/// On a GPU, linear rules can do pieces of time side by side, three times the work in much less time where
/// there are few series. Auto does so where it is faster.
enum class TimeParallel { Auto, Never };

struct ScanOptions {
  Rule rule = delta_pre();
  ScanMethod method = rk4();
  Read read = Read::Plain;  ///< of queries
  ScanReads reads = ScanReads::Weights;
  Backend backend = Backend::Auto;
  TimeParallel time_parallel = TimeParallel::Auto;
};

struct ScanOutput {
  Tensor w;             // [M, H, V, K]
  Tensor y;             // [R, S, Q, H, V]: W q, if asked for (with Read::Transposed: W^T q)
  Tensor dy;            // [R, S, Q, H, V]: (dW/dt) q, if asked for
  std::string backend;  ///< that ran: reference, cpu-avx512, cpu-avx2, cpu-baseline or cuda
};

/// Differentiable with respect to k, v, beta, dt, w0 and q.
ScanOutput scan(const ScanInput& input, const ScanOptions& options = {});

/// Why the kernels of the CPU, or of the GPU that w0 is on, cannot do this, or an empty text.
std::string scan_refusal(const ScanInput& input, const ScanOptions& options);

}  // namespace fastweights
