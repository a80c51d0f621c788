#pragma once

#include "fastweights/run.h"
#include "model/config_fields.h"

/// Names and keys of a run's configuration.

namespace fastweights {

const Names<SplitRule>& names_of(SplitRule);
const Names<Scaling>& names_of(Scaling);
const Names<TaskKind>& names_of(TaskKind);
const Names<RateSchedule>& names_of(RateSchedule);
const Names<ClassWeights>& names_of(ClassWeights);
const Names<SpeechForm>& names_of(SpeechForm);

template <typename Visit>
void visit_fields(DataConfig& c, Visit& visit) {
  visit("path", c.path);
  visit("format", c.format);
  visit("time_unit", c.time_unit);
  visit("id", c.id);
  visit("time", c.time);
  visit("label", c.label);
  visit("group", c.group);
  visit("statics", c.statics);
  visit("targets", c.targets);
  visit("speech", c.speech);
  visit("skip_bad", c.skip_bad);
}

template <typename Visit>
void visit_fields(SplitConfig& c, Visit& visit) {
  visit("rule", c.rule);
  visit("validation", c.validation);
  visit("test", c.test);
  visit("seed", c.seed);
  visit("folds", c.folds);
  visit("fold", c.fold);
  visit("indices", c.indices);
}

template <typename Visit>
void visit_fields(PrepareConfig& c, Visit& visit) {
  visit("scaling", c.scaling);
  visit("clip", c.clip);
  visit("time_channel", c.time_channel);
  visit("intensity", c.intensity);
  visit("typical_time", c.typical_time);
  visit("typical_count", c.typical_count);
}

template <typename Visit>
void visit_fields(TaskConfig& c, Visit& visit) {
  visit("kind", c.kind);
  visit("horizon", c.horizon);
  visit("hidden", c.hidden);
}

template <typename Visit>
void visit_fields(TrainConfig& c, Visit& visit) {
  visit("epochs", c.epochs);
  visit("batch_size", c.batch_size);
  visit("bucket_batches", c.bucket_batches);
  // the name in runs of version 0.1
  if constexpr (requires { visit.renamed("like_length", c.bucket_batches); })
    visit.renamed("like_length", c.bucket_batches);
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
  visit("seed", c.seed);
}

template <typename Visit>
void visit_fields(RunConfig& c, Visit& visit) {
  visit("data", c.data);
  visit("split", c.split);
  visit("prepare", c.prepare);
  visit("task", c.task);
  visit("model", c.model);
  visit("training", c.training);
}

}  // namespace fastweights
