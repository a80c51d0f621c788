#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fastweights/model.h"

/// Any system of the library as one type: what is trained, evaluated, saved and compared.
///
///     SequenceModel model({.channels = 3, .outputs = 2, .system = System::NeuralCde});
///     const Tensor logits = model.forward({.series = series}).outputs;

namespace fastweights {

class ComparedSystem;

/// A copy shares the parameters.
class SequenceModel {
 public:
  SequenceModel(FastWeightProgrammer model);  // NOLINT: a fast weight programmer is one
  /// The system that the configuration names.
  explicit SequenceModel(const ModelConfig& config, const ModelOptions& options = {});

  /// Differentiable with respect to the parameters, the series' values and the static features. Systems other
  /// than fast weight programmers begin at the beginning: they take no `start`.
  ModelOutput forward(const ModelInput& input, const ForwardOptions& options = {}) const;

  const ModelConfig& config() const;
  /// Whether it solves an equation, so that there are methods, steps and several ways to its gradient.
  bool has_solver() const;
  /// See FastWeightProgrammer::set_solver().
  void set_solver(const SolverConfig& solver);
  const NamedParameters& parameters() const&;
  NamedParameters parameters() &&;
  std::vector<Tensor> parameter_tensors() const;
  int64_t parameter_count() const;

  at::Device device() const;
  /// An error that says why this model cannot be computed where it is.
  void check_device() const;
  /// A copy with parameters of its own on that device; only fast weight programmers go to a GPU.
  SequenceModel to(const at::Device& device) const;
  /// See FastWeightProgrammer::plan().
  std::optional<MemoryPlan> plan(const ModelInput& input) const;

  /// The fast weight programmer that it is, or null.
  const FastWeightProgrammer* programmer() const { return std::get_if<FastWeightProgrammer>(&model_); }

 private:
  struct Compared {
    ModelConfig config;
    std::shared_ptr<const ComparedSystem> system;
  };

  std::variant<FastWeightProgrammer, Compared> model_;
};

/// Writes parameters as safetensors with the configuration in the metadata.
void save_model(const std::string& path, const SequenceModel& model);

/// Reads such a file. Rules beyond the built-in ones must be given.
SequenceModel load_sequence_model(const std::string& path, const std::vector<Rule>& own_rules = {});

}  // namespace fastweights
