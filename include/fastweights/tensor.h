#pragma once

/// All headers except module.h include LibTorch through this file. The order matters: clang 14 in C++20 mode
/// needs ivalue.h first with LibTorch 1.13.
#include <ATen/core/ivalue.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace fastweights {

using at::Tensor;

}  // namespace fastweights
