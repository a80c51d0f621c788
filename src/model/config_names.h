#pragma once

#include "base/named.h"
#include "fastweights/model_config.h"

/// Enumerators and alternatives by their names in configurations and on the command line.

namespace fastweights {

const Alternatives<ControlPath>& alternatives_of(const ControlPath&);
const Alternatives<ModelSteps>& alternatives_of(const ModelSteps&);
const Names<EndFilling>& names_of(EndFilling);
const Names<NeverObserved>& names_of(NeverObserved);
const Names<WindowTail>& names_of(WindowTail);
const Names<WindowClock>& names_of(WindowClock);
const Names<LastWindow>& names_of(LastWindow);
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
const Names<FieldForm>& names_of(FieldForm);
const Names<FieldEnd>& names_of(FieldEnd);
const Names<RowInput>& names_of(RowInput);
const Names<UpdateOrder>& names_of(UpdateOrder);
const Names<RocketHead>& names_of(RocketHead);
const Names<SeasonUnit>& names_of(SeasonUnit);

}  // namespace fastweights
