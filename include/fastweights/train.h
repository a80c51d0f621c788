#pragma once

#include "fastweights/data.h"
#include "fastweights/optimise.h"
#include "fastweights/run.h"
#include "fastweights/task.h"
#include "fastweights/trainer.h"

/// Training: tasks and metrics, the trainer, runs in folders; and several runs on the same data, for
/// cross-validation of a model and comparison of models.

namespace fastweights {

/// Trains a run for cross_validate() and compare(); empty: train_run().
using TrainFunction = std::function<RunResult(const Run&, const RunOptions&)>;

/// Cross-validation: one run per fold in folder/fold-1, fold-2, ..., each tested on a different part.
struct FoldsOptions {
  std::string folder = {};
  int64_t folds = 5;
  RunSetup setup = {};
  TrainFunction train = {};
};
struct FoldsResult {
  struct Summary {
    std::string name;  ///< of the metric
    double mean = 0, deviation = 0;
    int64_t folds = 0;  ///< in which the metric is finite
  };
  RunEnd end = RunEnd::Finished;  ///< of the last run
  std::vector<PartResult> tests = {};
  std::vector<Summary> summary = {};
};
FoldsResult cross_validate(const FoldsOptions& options, const DataSet& data);
/// Continues with the unfinished folds.
FoldsResult resume_folds(const std::string& folder, const DataSet& data, const TrainFunction& train = {});
/// The setup of the cross-validation in a folder; empty if there is none.
std::optional<FoldsOptions> read_folds(const std::string& folder);
std::string to_json(const std::vector<FoldsResult::Summary>& summary);

/// Several models on the same data, split and training loop, each in folder/MODEL. Finished runs are not
/// repeated. Settings of the model that a fitted architecture lacks are for the others.
struct CompareOptions {
  std::string folder = {};
  std::vector<std::string> models = {};  ///< names of known models; empty: all that serve the task
  RunSetup setup = {};                   ///< its model is ignored
  TrainFunction train = {};
};
struct ComparedModel {
  std::string model;
  int64_t parameters = 0;
  double seconds_per_epoch = 0;
  int64_t best_epoch = 0;
  PartResult part = {};                       ///< test, or if there is none, validation or train
  std::optional<PartResult> validation = {};  ///< in addition to `part`
  int64_t rank = 0;                           ///< by validation, from 1; 0: there is no validation part
  std::string failure = {};                   ///< the reason; empty: it finished
};
struct Comparison {
  RunEnd end = RunEnd::Finished;  ///< Stopped: models are missing
  std::string metric = {};        ///< that ranks
  std::vector<ComparedModel> models = {};
};
/// Writes comparison.json and comparison.md after each run. Models are ranked by their main metric on the
/// validation part: accuracy (AUROC for two classes) or mean squared error; ties by the log loss. The table
/// is in this order.
Comparison compare(const CompareOptions& options, const DataSet& data);
std::string to_json(const Comparison& comparison);
std::string markdown_table(const Comparison& comparison);

}  // namespace fastweights
