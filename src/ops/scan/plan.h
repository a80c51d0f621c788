#pragma once

#include "ops/scan/features.h"
#include "ops/scan/kernel.h"

/// What rule, method and input say to the kernels, on a CPU and on a GPU alike.

namespace fastweights {

bool is_oja(const Rule& rule);

kernels::ScanForm form_of(KeyForm form);
kernels::ScanForm form_of(ValueForm form);
kernels::ScanForm form_of(LearningRate rate);

/// Of rule and method; parts, queries and stretch are still to come.
kernels::ScanPlan scan_plan(const ScanOptions& options, int64_t heads, int64_t width);

/// Parts and queries of keys, values and rates that come ready-made.
void set_given(kernels::ScanPlan& plan, const ScanInput& input, const ScanOptions& options);

/// Memory that kernels write before it is read; FASTWEIGHTS_POISON=1 fills it with NaN to show that they do.
Tensor scan_buffer(at::IntArrayRef shape, const at::TensorOptions& options);

}  // namespace fastweights
