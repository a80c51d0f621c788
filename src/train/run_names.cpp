#include "train/run_fields.h"

namespace fastweights {

const Names<SplitRule>& names_of(SplitRule) {
  static const Names<SplitRule> kNames = {
      {SplitRule::Automatic, "automatic"}, {SplitRule::Given, "given"},
      {SplitRule::Random, "random"},       {SplitRule::Stratified, "stratified"},
      {SplitRule::Grouped, "grouped"},     {SplitRule::Folds, "folds"},
      {SplitRule::Indices, "indices"},     {SplitRule::Time, "time"},
      {SplitRule::Rolling, "rolling"}};
  return kNames;
}

const Names<Scaling>& names_of(Scaling) {
  static const Names<Scaling> kNames = {
      {Scaling::Standard, "standard"}, {Scaling::Robust, "robust"}, {Scaling::None, "none"}};
  return kNames;
}

const Names<FirstGuess>& names_of(FirstGuess) {
  static const Names<FirstGuess> kNames = {{FirstGuess::Automatic, "automatic"}, {FirstGuess::None, "none"}};
  return kNames;
}

const Names<TaskKind>& names_of(TaskKind) {
  static const Names<TaskKind> kNames = {
      {TaskKind::Automatic, "automatic"},   {TaskKind::Classification, "classification"},
      {TaskKind::Regression, "regression"}, {TaskKind::StepClassification, "step_classification"},
      {TaskKind::Forecast, "forecast"},     {TaskKind::Imputation, "imputation"}};
  return kNames;
}

const Names<RateSchedule>& names_of(RateSchedule) {
  static const Names<RateSchedule> kNames = {{RateSchedule::Cosine, "cosine"},
                                             {RateSchedule::Plateau, "plateau"},
                                             {RateSchedule::Constant, "constant"}};
  return kNames;
}

const Names<ClassWeights>& names_of(ClassWeights) {
  static const Names<ClassWeights> kNames = {{ClassWeights::None, "none"},
                                             {ClassWeights::Balanced, "balanced"}};
  return kNames;
}

const Names<CalibrationRule>& names_of(CalibrationRule) {
  static const Names<CalibrationRule> kNames = {{CalibrationRule::Automatic, "auto"},
                                                {CalibrationRule::Temperature, "temperature"},
                                                {CalibrationRule::None, "none"}};
  return kNames;
}

const Names<SpeechForm>& names_of(SpeechForm) {
  static const Names<SpeechForm> kNames = {{SpeechForm::Mfcc, "mfcc"}, {SpeechForm::Wave, "wave"}};
  return kNames;
}

const Names<DecimalMark>& names_of(DecimalMark) {
  static const Names<DecimalMark> kNames = {
      {DecimalMark::Automatic, "automatic"}, {DecimalMark::Point, "point"}, {DecimalMark::Comma, "comma"}};
  return kNames;
}

const Names<UnsortedRows>& names_of(UnsortedRows) {
  static const Names<UnsortedRows> kNames = {{UnsortedRows::Refuse, "refuse"}, {UnsortedRows::Sort, "sort"}};
  return kNames;
}

const Names<Duplicates>& names_of(Duplicates) {
  static const Names<Duplicates> kNames = {
      {Duplicates::Error, "error"}, {Duplicates::First, "first"}, {Duplicates::Mean, "mean"}};
  return kNames;
}

}  // namespace fastweights
