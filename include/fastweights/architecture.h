#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fastweights/fields.h"
#include "fastweights/model_options.h"
#include "fastweights/rule.h"

/// Architectures as values. A model's configuration is its sizes and the options of one architecture, a
/// struct of its own, so an option that the architecture does not read cannot be written.
///
///     Model model({.channels = 3, .outputs = 2, .architecture = FastWeights{.rule = "oja", .heads = 8}});
///     Model other({.channels = 3, .outputs = 2, .architecture = NeuralCde{.hidden_size = 16}});
///
/// fast_weights.h and baselines.h have the structs of the library; docs/adding_an_architecture.md shows how a
/// program adds its own.

namespace fastweights {

struct ModelConfig;
struct ModelOptions;
class Network;
struct ArchitectureType;

/// The options of one architecture, of any type that has an ArchitectureType.
class Architecture {
 public:
  /// `architecture_type(const Options&)`, found beside Options, says what the architecture is.
  template <typename Options>
  Architecture(Options options)  // NOLINT: options are an architecture
      : type_(&architecture_type(options)), options_(std::move(options)) {}

  const ArchitectureType& type() const { return *type_; }
  /// As in JSON, for example "fast_weights".
  std::string name() const;

  /// The options, or null if they are those of another architecture.
  template <typename Options>
  const Options* get_if() const {
    return std::any_cast<Options>(&options_);
  }
  template <typename Options>
  Options* get_if() {
    return std::any_cast<Options>(&options_);
  }
  /// The options; an error if they are those of another architecture.
  template <typename Options>
  const Options& get() const {
    if (!get_if<Options>()) refuse(Architecture(Options{}));
    return *get_if<Options>();
  }
  template <typename Options>
  Options& get() {
    if (!get_if<Options>()) refuse(Architecture(Options{}));
    return *get_if<Options>();
  }

 private:
  [[noreturn]] void refuse(const Architecture& expected) const;

  const ArchitectureType* type_;
  std::any options_;
};

/// What defaults depend on.
struct DataShape {
  int64_t channels = 1, static_features = 0, outputs = 1;
  int64_t known_channels = 0;  ///< leading channels that are always observed: time and counts
  double median_gap = 1;       ///< between neighbouring times
  double length = 0;           ///< of a typical series, in rows
  double dropout = 0;          ///< that suits the number of series
  bool per_row = false;        ///< whether the task has an output at every row
};

/// A name for `--model`: an architecture with some of its choices.
struct NamedModel {
  std::string name;       ///< "delta-cde"
  std::string sentence;   ///< what it is, in one line
  std::string reference;  ///< where it was published
  /// Options that suit data of this shape.
  std::function<Architecture(const DataShape& shape)> options;
};

/// Where an architecture can be computed.
enum class Devices { Cpu, CpuAndCuda };

/// Everything the library knows about an architecture: its row in the registry. Functions get the options
/// that they belong to; make_architecture_type() makes them from functions on the options' own type.
struct ArchitectureType {
  std::vector<std::string> names;  ///< in JSON; options choose among them where there are several
  std::function<std::string(const Architecture&)> name;
  /// Default options under one of the names.
  std::function<Architecture(const std::string& name)> defaults;
  std::function<void(Architecture&, Fields&)> fields;
  /// Throws std::invalid_argument with the key and the reason.
  std::function<void(const ModelConfig&, const std::vector<Rule>& custom_rules)> check;
  std::function<std::shared_ptr<const Network>(const ModelConfig&, const ModelOptions&)> make;
  /// Where the options keep their solver; empty for an architecture that solves no equation.
  std::function<SolverConfig*(Architecture&)> solver;
  Devices devices = Devices::Cpu;
  std::vector<NamedModel> models;
};

inline std::string Architecture::name() const { return type_->name(*this); }

/// Adds an architecture to those that files, `--model` and comparisons find by name. The type must outlive
/// the program; names that exist already are an error, the same type twice is not.
void add_architecture(const ArchitectureType& type);

/// All of them: the library's first, then added ones.
std::vector<const ArchitectureType*> all_architectures();

/// The models of all architectures that have a name.
std::vector<NamedModel> named_models();
std::vector<std::string> model_names();

/// The configuration that a name stands for on data of this shape; an error names the nearest one.
ModelConfig named_model(const std::string& name, const DataShape& shape);

}  // namespace fastweights
