#pragma once

#include "ops/scan/features.h"
#include "ops/scan/kernel.h"

/// What the kernels of all backends share: which inputs they take, and how rule, method and input become
/// their plan.

namespace fastweights {

/// dW/dt = v g^T instead of g k^T.
bool is_oja(const Rule& rule);

/// Whether the solution is known for constant k, v and beta.
bool has_flow(const Rule& rule);

/// Why no kernel takes this rule and method with heads of these widths, or an empty text.
std::string kernel_refusal(const Rule& rule, const Method& method, int64_t value_width, int64_t key_width);

/// Whether kernels return the slopes' vectors at the stages, too.
enum class StageSlopes { No, Yes };

/// W at the outputs and, where requested, reads and slopes at the stages.
struct KernelOutput {
  Tensor w;  // [M, H, D, D]
  Tensor y;  // [R, S, Q, H, D]
  Tensor g;  // [R, S, H, D]: dW/dt is g k^T (Delta, Hebb), v g^T (Oja)
};

kernels::ScanForm form_of(KeyForm form);
kernels::ScanForm form_of(ValueForm form);
kernels::ScanForm form_of(LearningRate rate);

/// From rule and method; parts, queries and stretch are not set yet.
kernels::ScanPlan scan_plan(const ScanOptions& options, int64_t heads, int64_t width);

/// Sets parts and queries for an input that has keys, values and rates.
void set_given(kernels::ScanPlan& plan, const ScanInput& input, const ScanOptions& options);

/// Memory that kernels write before it is read; FASTWEIGHTS_POISON=1 fills it with NaN to show that they do.
Tensor scan_buffer(at::IntArrayRef shape, const at::TensorOptions& options);

}  // namespace fastweights
