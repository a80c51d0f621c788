#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fastweights/model_config.h"

/// From functions on an architecture's own options to an ArchitectureType.

namespace fastweights {

template <typename Options>
struct ArchitectureSpec {
  /// Names in JSON with the default options of each; most architectures have one.
  std::vector<std::pair<std::string, Options>> names;
  /// Which of the names; not needed if there is one.
  std::string (*name)(const Options&) = nullptr;
  void (*fields)(Options&, Fields&);
  /// Throws std::invalid_argument with the key and the reason.
  void (*check)(const ModelConfig&, const Options&);
  std::shared_ptr<const Network> (*make)(const ModelConfig&, const Options&, const ModelOptions&);
  /// Where the options keep their solver, if they have one.
  SolverConfig* (*solver)(Options&) = nullptr;
  std::vector<NamedModel> models;
};

template <typename Options>
ArchitectureType make_architecture_type(const ArchitectureSpec<Options>& spec) {
  ArchitectureType type;
  for (const auto& [name, options] : spec.names) type.names.push_back(name);
  type.name = [spec](const Architecture& a) {
    return spec.name ? spec.name(a.get<Options>()) : spec.names[0].first;
  };
  type.defaults = [spec](const std::string& name) -> Architecture {
    for (const auto& [known, options] : spec.names) {
      if (known == name) return options;
    }
    return spec.names[0].second;
  };
  type.fields = [spec](Architecture& a, Fields& visit) { spec.fields(a.get<Options>(), visit); };
  type.check = [spec](const ModelConfig& config, const std::vector<Rule>&) {
    spec.check(config, config.architecture.get<Options>());
  };
  type.make = [spec](const ModelConfig& config, const ModelOptions& options) {
    return spec.make(config, config.architecture.get<Options>(), options);
  };
  if (spec.solver) type.solver = [spec](Architecture& a) { return spec.solver(a.get<Options>()); };
  type.models = spec.models;
  return type;
}

}  // namespace fastweights
