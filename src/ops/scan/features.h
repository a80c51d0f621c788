#pragma once

#include "fastweights/scan.h"

/// The same recurrence with keys, values and rates that the kernel projects from features z of the signal, so
/// that no array of the size of the keys is stored.
///
///     k = form(k_weight z),  v = form(v_weight z) mask,  beta = form(beta_weight z)

namespace fastweights {

struct ScanFeatures {
  Tensor z;               // [R, P, F]
  Tensor k_weight;        // [H, D, I]: of the first I features
  Tensor beta_weight;     // [H, I]
  Tensor v_weight;        // [H, D, J]: of the last J features
  Tensor v_mask = {};     // [B, H, D] or undefined
  int64_t key_rows;       // 1: stages share keys and rates, from the first row of each step; or P
  int64_t value_rows;     // likewise
  Tensor dt;              // [R]
  Tensor w0;              // [B, H, D, D]
  Tensor offsets;         // [B + 1]
  Tensor output_steps;    // [M]
  Tensor output_offsets;  // [B + 1]
};

/// The activations that turn projections into keys, values and rates.
struct ProgramForms {
  KeyForm key = KeyForm::Softmax;
  ValueForm value = ValueForm::Tanh;
  LearningRate rate = LearningRate::Sigmoid;
};

/// Fast weights [M, H, D, D]; differentiable with respect to z, the weights, dt and w0.
ScanOutput scan_features(const ScanFeatures& input, const ProgramForms& forms, const ScanOptions& options);

/// Bytes that a call keeps until its backward pass besides its tensors, and its scratch.
struct ScanMemory {
  int64_t kept, scratch;
};

}  // namespace fastweights
