#pragma once

#include "fastweights/calibration.h"
#include "fastweights/data.h"
#include "fastweights/data_set.h"
#include "fastweights/optimise.h"
#include "fastweights/predictions.h"
#include "fastweights/run.h"
#include "fastweights/task.h"
#include "fastweights/trained_model.h"
#include "fastweights/trainer.h"

/// Training: tasks and metrics, the trainer, runs in folders; and several runs on the same data: folds,
/// seeds, and comparison of models.

namespace fastweights {

/// Trains a run for train_runs() and compare(); empty: train_run().
using TrainFunction = std::function<RunResult(const Run&, const RunOptions&)>;

/// Several runs of one setup, each in a folder of its own; either folds or seeds.
struct RunsOptions {
  std::string folder = {};
  /// Cross-validation: folder/fold-1, fold-2, ..., each tested on a different part.
  int64_t folds = 0;
  /// Two or more: folder/seed-N, which differ in training.seed and share the split.
  std::vector<int64_t> seeds = {};
  RunSetup setup = {};
  TrainFunction train = {};
};
/// A metric over those runs in which it is finite.
struct Spread {
  std::string name;
  double mean = 0, deviation = 0, least = 0, largest = 0;
  int64_t runs = 0;
};
struct RunsPart {
  std::string name;  ///< validation or test
  std::vector<PartResult> runs = {};
  std::vector<Spread> spread = {};
  /// All runs at once. Seeds: the mean of their models. Folds: every series of the data, predicted by the
  /// model that was not trained on it; no metrics for validation.
  PartResult together = {};
};
struct RunsResult {
  RunEnd end = RunEnd::Finished;     ///< of the last run
  std::vector<RunsPart> parts = {};  ///< in the order of a run's result
};
/// Writes result.json and a report of all runs; load_trained() of the folder is the mean of their models.
RunsResult train_runs(const RunsOptions& options, const DataSet& data);
/// Continues with the unfinished runs.
RunsResult resume_runs(const std::string& folder, const DataSet& data, const TrainFunction& train = {});
/// The runs of a folder; empty if it holds no such set.
std::optional<RunsOptions> read_runs(const std::string& folder);
std::string to_json(const RunsResult& result, const RunsOptions& options);

/// Several models on the same data, split and training loop, each in folder/MODEL. Finished runs are not
/// repeated. Settings of the model that a fitted architecture lacks are for the others.
struct CompareOptions {
  std::string folder = {};
  std::vector<std::string> models = {};  ///< names of known models; empty: all that serve the task
  RunSetup setup = {};                   ///< its model is ignored
  std::vector<int64_t> seeds = {};       ///< one run per seed, as in RunsOptions; empty: one run
  TrainFunction train = {};
};
struct ComparedModel {
  std::string model;
  int64_t parameters = 0;
  double seconds_per_epoch = 0;
  int64_t best_epoch = 0;
  /// Test, or if there is none, validation or train; with several seeds mean metrics.
  PartResult part = {};
  std::optional<PartResult> validation = {};  ///< in addition to `part`
  int64_t rank = 0;                           ///< by validation, from 1; 0: there is no validation part
  Metrics deviations = {};                    ///< of `part` over the seeds; empty: one run
  std::string failure = {};                   ///< the reason; empty: it finished
};
struct Comparison {
  RunEnd end = RunEnd::Finished;  ///< Stopped: models are missing
  std::string metric = {};        ///< that ranks
  std::vector<ComparedModel> models = {};
};
/// Writes comparison.json and comparison.md after each run. Models are ranked by training.metric on the
/// validation part (the default is accuracy, AUROC for two classes, or mean squared error); ties by the log
/// loss. The table is in this order.
Comparison compare(const CompareOptions& options, const DataSet& data);
std::string to_json(const Comparison& comparison);
std::string markdown_table(const Comparison& comparison);

}  // namespace fastweights
