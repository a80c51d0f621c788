#pragma once

#include "architectures/registry.h"
#include "fastweights/run.h"

/// Names and keys of a run's configuration.

namespace fastweights {

const Names<SplitRule>& names_of(SplitRule);
const Names<Scaling>& names_of(Scaling);
const Names<FirstGuess>& names_of(FirstGuess);
const Names<TaskKind>& names_of(TaskKind);
const Names<RateSchedule>& names_of(RateSchedule);
const Names<ClassWeights>& names_of(ClassWeights);
const Names<CalibrationRule>& names_of(CalibrationRule);
const Names<SpeechForm>& names_of(SpeechForm);
const Names<DecimalMark>& names_of(DecimalMark);
const Names<UnsortedRows>& names_of(UnsortedRows);
const Names<Duplicates>& names_of(Duplicates);

/// The configuration in config.json, also of version 0.1.
RunConfig run_config_of(const Json& json);

inline void visit_fields(DataConfig& c, Fields& visit) {
  visit("path", c.path);
  visit("absolute_path", c.absolute_path);
  visit("format", c.read.format);
  visit("time_unit", c.read.time_unit);
  visit("id", c.read.columns.id);
  visit("time", c.read.columns.time);
  visit("label", c.read.columns.label);
  visit("group", c.read.columns.group);
  visit("statics", c.read.columns.statics);
  visit("targets", c.read.columns.targets);
  visit("columns", c.read.columns.channels);
  visit("ignored", c.read.columns.ignored);
  visit("texts", c.read.columns.texts);
  visit("missing", c.read.table.missing);
  visit("decimal", c.read.table.decimal);
  visit("order", c.read.table.order);
  visit("duplicates", c.read.table.duplicates);
  visit("speech", c.read.speech);
  visit("skip_bad", c.read.skip_bad);
}

inline void visit_fields(SplitConfig& c, Fields& visit) {
  visit("rule", c.rule);
  visit("validation", c.validation);
  visit("test", c.test);
  visit("seed", c.seed);
  visit("folds", c.folds);
  visit("fold", c.fold);
  visit("indices", c.indices);
  visit("window", c.window);
  visit("stride", c.stride);
  visit("gap", c.gap);
}

inline void visit_fields(PrepareConfig& c, Fields& visit) {
  visit("scaling", c.scaling);
  visit("clip", c.clip);
  visit("time_channel", c.time_channel);
  visit("intensity", c.intensity);
  visit("typical_time", c.typical_time);
  visit("typical_count", c.typical_count);
  visit("usual_gaps", c.usual_gaps);
  visit("first_guess", c.first_guess);
}

inline void visit_fields(TaskConfig& c, Fields& visit) {
  visit("kind", c.kind);
  visit("horizon", c.horizon);
  visit("hidden", c.hidden);
}

inline void visit_fields(TrainConfig& c, Fields& visit) {
  visit("epochs", c.epochs);
  visit("batch_size", c.batch_size);
  visit("bucket_batches", c.bucket_batches);
  visit("learning_rate", c.learning_rate);
  visit("weight_decay", c.weight_decay);
  visit("clip", c.clip);
  visit("schedule", c.schedule);
  visit("warm_up", c.warm_up);
  visit("plateau_patience", c.plateau_patience);
  visit("patience", c.patience);
  visit("metric", c.metric);
  visit("class_weights", c.class_weights);
  visit("positive_weight", c.positive_weight);
  visit("penalty", c.penalty);
  visit("head_rate", c.head_rate);
  visit("threshold_for", c.threshold_for);
  visit("calibration", c.calibration);
  visit("interval", c.interval);
  visit("seed", c.seed);
}

inline void visit_fields(RunConfig& c, Fields& visit) {
  visit("data", c.data);
  visit("split", c.split);
  visit("prepare", c.prepare);
  visit("task", c.task);
  visit("model", c.model);
  visit("training", c.training);
}

}  // namespace fastweights
