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

/// Architectures as values. The configuration of a model contains its sizes and the options of one
/// architecture. Every architecture has its own struct of options, so an option that it does not have does
/// not compile.
///
///     Model model({.channels = 3, .outputs = 2, .architecture = FastWeights{.rule = "oja", .heads = 8}});
///     Model other({.channels = 3, .outputs = 2, .architecture = NeuralCde{.hidden_size = 16}});
///
/// fast_weights.h and baselines.h define the structs of the library; docs/adding_an_architecture.md shows how
/// a program adds its own.

namespace fastweights {

struct ModelConfig;
struct ModelOptions;
class Network;
struct ArchitectureType;

/// The options of one architecture, of any type that has an ArchitectureType.
class Architecture {
 public:
  /// The function `architecture_type(const Options&)` in the namespace of Options returns the type.
  template <typename Options>
  Architecture(Options options)  // NOLINT: options are an architecture
      : type_(&architecture_type(options)), options_(std::move(options)) {}

  const ArchitectureType& type() const { return *type_; }
  /// The name in JSON, for example "fast_weights".
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

/// The properties of a data set that default options depend on.
struct DataShape {
  int64_t channels = 1, static_features = 0, outputs = 1;
  int64_t known_channels = 0;  ///< leading channels that are always observed: time and counts
  double median_gap = 1;       ///< between neighbouring times
  double length = 0;           ///< of a typical series, in rows
  double dropout = 0;          ///< a rate that suits the number of series
  bool per_row = false;        ///< whether the task has an output at every row
};

/// A name for `--model`: an architecture with some of its options set.
struct NamedModel {
  std::string name;       ///< "delta-cde"
  std::string sentence;   ///< description in one line
  std::string reference;  ///< where it was published
  /// Options that suit data of this shape.
  std::function<Architecture(const DataShape& shape)> options;
};

/// The devices on which an architecture runs.
enum class Devices { Cpu, CpuAndCuda };

/// Everything that the library knows about an architecture: its row in the registry. The functions receive
/// options as an Architecture; make_architecture_type() creates them from functions on the Options struct.
struct ArchitectureType {
  std::vector<std::string> names;  ///< in JSON; if there are several, the options select one of them
  std::function<std::string(const Architecture&)> name;
  /// Default options under one of the names.
  std::function<Architecture(const std::string& name)> defaults;
  std::function<void(Architecture&, Fields&)> fields;
  /// Throws std::invalid_argument with the key and the reason.
  std::function<void(const ModelConfig&, const std::vector<Rule>& custom_rules)> check;
  std::function<std::shared_ptr<const Network>(const ModelConfig&, const ModelOptions&)> make;
  /// The member of the options that holds the solver; empty for an architecture without a solver.
  std::function<SolverConfig*(Architecture&)> solver;
  Devices devices = Devices::Cpu;
  std::vector<NamedModel> models;
};

inline std::string Architecture::name() const { return type_->name(*this); }

/// Registers an architecture, so that files, `--model` and comparisons find it by name. The type must exist
/// until the program ends. A name that is already registered is an error; registering a type twice is not.
void add_architecture(const ArchitectureType& type);

/// All registered architectures: those of the library, then the added ones.
std::vector<const ArchitectureType*> all_architectures();

/// The named models of all architectures, and their names.
std::vector<NamedModel> named_models();
std::vector<std::string> model_names();

/// The configuration of a named model for data of this shape. An unknown name is an error that names the
/// nearest one.
ModelConfig named_model(const std::string& name, const DataShape& shape);

}  // namespace fastweights
