#include "model/config_names.h"

namespace fastweights {

const Alternatives<ControlPath>& alternatives_of(const ControlPath&) {
  static const Alternatives<ControlPath> kAlternatives = {{"natural_cubic", NaturalCubic{}},
                                                          {"hermite_cubic", HermiteCubic{}},
                                                          {"linear", Linear{}},
                                                          {"rectilinear", Rectilinear{}},
                                                          {"hold", Hold{}},
                                                          {"log_signature", LogSignatures{}}};
  return kAlternatives;
}

const Alternatives<ModelSteps>& alternatives_of(const ModelSteps&) {
  static const Alternatives<ModelSteps> kAlternatives = {
      {"observations", ObservationSteps{}},
      {"fixed", RegularSteps{}},
      {"shared_grid", FixedSteps{.edges = StageEdges::Inside}},
      {"adaptive", AdaptiveSteps{.rtol = 1e-6, .atol = 1e-8}}};
  return kAlternatives;
}

const Names<EndFilling>& names_of(EndFilling) {
  static const Names<EndFilling> kNames = {{EndFilling::WholeGap, "whole_gap"},
                                           {EndFilling::EndPoint, "end_point"}};
  return kNames;
}

const Names<NeverObserved>& names_of(NeverObserved) {
  static const Names<NeverObserved> kNames = {{NeverObserved::Zero, "zero"},
                                              {NeverObserved::Reject, "reject"}};
  return kNames;
}

const Names<WindowTail>& names_of(WindowTail) {
  static const Names<WindowTail> kNames = {{WindowTail::Drop, "drop"}, {WindowTail::Keep, "keep"}};
  return kNames;
}

const Names<WindowClock>& names_of(WindowClock) {
  static const Names<WindowClock> kNames = {{WindowClock::Windows, "windows"}, {WindowClock::Time, "time"}};
  return kNames;
}

const Names<LastWindow>& names_of(LastWindow) {
  static const Names<LastWindow> kNames = {{LastWindow::Once, "once"}, {LastWindow::Twice, "twice"}};
  return kNames;
}

const Names<StageEdges>& names_of(StageEdges) {
  static const Names<StageEdges> kNames = {
      {StageEdges::AsIs, "as_is"}, {StageEdges::Inside, "inside"}, {StageEdges::Shortened, "shortened"}};
  return kNames;
}

const Names<StageTimes>& names_of(StageTimes) {
  static const Names<StageTimes> kNames = {{StageTimes::Double, "double"}, {StageTimes::Single, "single"}};
  return kNames;
}

const Names<ErrorControl>& names_of(ErrorControl) {
  static const Names<ErrorControl> kNames = {{ErrorControl::PerSample, "per_sample"},
                                             {ErrorControl::Joint, "joint"}};
  return kNames;
}

const Names<FirstStepGradient>& names_of(FirstStepGradient) {
  static const Names<FirstStepGradient> kNames = {{FirstStepGradient::None, "none"},
                                                  {FirstStepGradient::Through, "through"}};
  return kNames;
}

const Names<Gradient>& names_of(Gradient) {
  static const Names<Gradient> kNames = {
      {Gradient::Exact, "exact"}, {Gradient::Checkpointed, "checkpointed"}, {Gradient::Adjoint, "adjoint"}};
  return kNames;
}

const Names<InitialWeights>& names_of(InitialWeights) {
  static const Names<InitialWeights> kNames = {{InitialWeights::Rule, "rule"},
                                               {InitialWeights::Zero, "zero"},
                                               {InitialWeights::StaticFeatures, "static_features"},
                                               {InitialWeights::FirstObservation, "first_observation"}};
  return kNames;
}

const Names<QueryTime>& names_of(QueryTime) {
  static const Names<QueryTime> kNames = {{QueryTime::Output, "output"},
                                          {QueryTime::LastOfBatch, "last_of_batch"},
                                          {QueryTime::FirstObservation, "first_observation"}};
  return kNames;
}

const Names<LayerInput>& names_of(LayerInput) {
  static const Names<LayerInput> kNames = {{LayerInput::Weights, "weights"}, {LayerInput::Update, "update"}};
  return kNames;
}

const Names<Backend>& names_of(Backend) {
  static const Names<Backend> kNames = {{Backend::Auto, "auto"},
                                        {Backend::Reference, "reference"},
                                        {Backend::Cpu, "cpu"},
                                        {Backend::Cuda, "cuda"}};
  return kNames;
}

const Names<Drive>& names_of(Drive) {
  static const Names<Drive> kNames = {{Drive::X, "x"},
                                      {Drive::DerivativeKeys, "derivative_keys"},
                                      {Drive::DerivativeValues, "derivative_values"},
                                      {Drive::Derivative, "derivative"}};
  return kNames;
}

const Names<LearningRate>& names_of(LearningRate) {
  static const Names<LearningRate> kNames = {{LearningRate::Sigmoid, "sigmoid"}, {LearningRate::Raw, "raw"}};
  return kNames;
}

const Names<ValueActivation>& names_of(ValueActivation) {
  static const Names<ValueActivation> kNames = {{ValueActivation::Tanh, "tanh"},
                                                {ValueActivation::None, "none"}};
  return kNames;
}

const Names<Read>& names_of(Read) {
  static const Names<Read> kNames = {{Read::Plain, "plain"}, {Read::Transposed, "transposed"}};
  return kNames;
}

const Names<FieldForm>& names_of(FieldForm) {
  static const Names<FieldForm> kNames = {{FieldForm::Full, "full"}, {FieldForm::RankOne, "rank_one"}};
  return kNames;
}

const Names<FieldEnd>& names_of(FieldEnd) {
  static const Names<FieldEnd> kNames = {{FieldEnd::TanhOutput, "tanh_output"},
                                         {FieldEnd::TanhHidden, "tanh_hidden"}};
  return kNames;
}

const Names<RowInput>& names_of(RowInput) {
  static const Names<RowInput> kNames = {{RowInput::Masked, "masked"},
                                         {RowInput::Published, "published"},
                                         {RowInput::PublishedInPlace, "published_in_place"}};
  return kNames;
}

const Names<UpdateOrder>& names_of(UpdateOrder) {
  static const Names<UpdateOrder> kNames = {{UpdateOrder::OdeFirst, "ode_first"},
                                            {UpdateOrder::DataFirst, "data_first"}};
  return kNames;
}

const Names<RocketHead>& names_of(RocketHead) {
  static const Names<RocketHead> kNames = {{RocketHead::Ridge, "ridge"}, {RocketHead::Logistic, "logistic"}};
  return kNames;
}

const Names<SeasonUnit>& names_of(SeasonUnit) {
  static const Names<SeasonUnit> kNames = {{SeasonUnit::Rows, "rows"}, {SeasonUnit::Time, "time"}};
  return kNames;
}

}  // namespace fastweights
