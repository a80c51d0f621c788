#pragma once

#include "fastweights/model.h"
#include "golden.h"

/// Models of the published code as golden files describe them.

namespace fastweights::golden {

struct PublishedModel {
  Model model;
  std::map<std::string, std::string> names;  // ours to theirs
  ModelInput input;

  /// Theirs that get a gradient, and the tensors.
  std::vector<std::pair<std::string, Tensor>> named() const;
};

/// Speech and sepsis: splines through in.X_raw on in.times, read at in.final_index.
PublishedModel spline_model(GoldenFile& file);

/// Compares the spline's coefficients with the file's.
void compare_coefficients(GoldenFile& file);

/// Cross entropy, or binary cross entropy with a weight for positives: as the file's text says.
Tensor published_loss(GoldenFile& file, const Tensor& logits);

/// Outputs [B, O], or [B] where the file has no channel for them.
Tensor published_logits(const ModelOutput& output, const Tensor& like);

/// The gradient of a loss with respect to the model's parameters, by their published names.
std::map<std::string, Tensor> published_gradients(const PublishedModel& published, const Tensor& loss);

/// Copies of tensors under param., by name.
std::map<std::string, Tensor> file_parameters(GoldenFile& file);

}  // namespace fastweights::golden
