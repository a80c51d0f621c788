#pragma once

#include "fastweights/run.h"

/// Several runs on the same data: cross-validation of a model, and comparison of models.

namespace fastweights {

/// How cross_validate() and compare() train a run; train_run() if it is empty.
using TrainFunction = std::function<RunResult(const Run&, const RunOptions&)>;

/// Cross-validation: one run per fold in folder/fold-1, fold-2, ..., each tested on another part of the data.
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
    int64_t folds = 0;  ///< in which it is finite
  };
  RunEnd end = RunEnd::Finished;  ///< of the last run
  std::vector<PartResult> tests = {};
  std::vector<Summary> summary = {};
};
FoldsResult cross_validate(const FoldsOptions& options, const DataSet& data);
/// Continues with the folds that have not finished.
FoldsResult resume_folds(const std::string& folder, const DataSet& data, const TrainFunction& train = {});
/// The setup of the cross-validation in a folder; empty if there is none.
std::optional<FoldsOptions> read_folds(const std::string& folder);
std::string to_json(const std::vector<FoldsResult::Summary>& summary);

/// Several models on the same data, split and training loop, in folder/MODEL each. Runs that have finished
/// are not repeated.
struct CompareOptions {
  std::string folder = {};
  std::vector<std::string> models = {};  ///< of known models; empty: all
  RunSetup setup = {};                   ///< its model is ignored
  TrainFunction train = {};
};
struct ComparedModel {
  std::string model;
  int64_t parameters = 0;
  double seconds_per_epoch = 0;
  int64_t best_epoch = 0;
  PartResult part = {};
  std::string failure = {};  ///< empty: it finished
};
struct Comparison {
  RunEnd end = RunEnd::Finished;  ///< Stopped: models are missing
  std::vector<ComparedModel> models = {};
};
/// Writes comparison.json and comparison.md after each run.
Comparison compare(const CompareOptions& options, const DataSet& data);
std::string to_json(const Comparison& comparison);
std::string markdown_table(const Comparison& comparison);

}  // namespace fastweights
