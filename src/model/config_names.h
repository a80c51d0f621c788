#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "fastweights/error.h"
#include "fastweights/model_config.h"

/// Enumerators by their names in configurations and on the command line.

namespace fastweights {

template <typename E>
using Names = std::vector<std::pair<E, std::string>>;

const Names<ControlKind>& names_of(ControlKind);
const Names<EndFilling>& names_of(EndFilling);
const Names<NeverObserved>& names_of(NeverObserved);
const Names<WindowTail>& names_of(WindowTail);
const Names<WindowClock>& names_of(WindowClock);
const Names<LastWindow>& names_of(LastWindow);
const Names<StepRule>& names_of(StepRule);
const Names<StageEdges>& names_of(StageEdges);
const Names<StageTimes>& names_of(StageTimes);
const Names<ErrorControl>& names_of(ErrorControl);
const Names<FirstStepGradient>& names_of(FirstStepGradient);
const Names<Gradient>& names_of(Gradient);
const Names<InitialWeights>& names_of(InitialWeights);
const Names<QueryTime>& names_of(QueryTime);
const Names<LayerInput>& names_of(LayerInput);
const Names<Backend>& names_of(Backend);
const Names<Drive>& names_of(Drive);
const Names<LearningRate>& names_of(LearningRate);
const Names<ValueActivation>& names_of(ValueActivation);
const Names<Read>& names_of(Read);

template <typename E>
const std::string& name_of(E value) {
  for (const auto& [known, name] : names_of(value)) {
    if (known == value) return name;
  }
  FW_CHECK(false, "[config] there is no name for value ", static_cast<int>(value));
}

/// The enumerator of this name; `key` stands in the message.
template <typename E>
E named_value(const std::string& name, const std::string& key) {
  std::vector<std::string> known;
  for (const auto& [value, known_name] : names_of(E{})) {
    if (known_name == name) return value;
    known.push_back(known_name);
  }
  FW_CHECK(false, "[config] ", key, " cannot be '", name, "'; the nearest is '", nearest(name, known), "'");
}

}  // namespace fastweights
