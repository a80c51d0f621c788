#pragma once

#include "fastweights/train.h"

/// Folds or seeds in a folder: which runs belong to the set, and in which of their settings they differ.

namespace fastweights {

/// folds.json or seeds.json.
struct RunSet {
  RunsOptions options = {};
  std::string fingerprint = {};  ///< of the data
};
std::optional<RunSet> read_run_set(const std::string& folder);
void write_run_set(const RunSet& set);
void remove_run_set(const RunSet& set);

/// "fold" or "seed".
std::string kind_of(const RunsOptions& options);

/// A sentence about what tests the runs.
std::string tests_text(const RunsOptions& options);

/// One run of the set: the name of its folder, and its own settings.
struct SetRun {
  std::string name;
  Settings settings;
};
std::vector<SetRun> set_runs(const RunsOptions& options);

/// An error unless the runs are folds or seeds, in numbers that make sense.
void check_runs(const RunsOptions& options);
/// An error unless these are the data of the set.
void check_set_data(const RunSet& set, const DataSet& data);

/// Trains the runs that have not finished. `first` is a run of the setup that has been made already; seeds
/// share its data.
RunsResult train_set(const RunSet& set, const DataSet& data, std::optional<Run> first = {});

/// Results of all runs, which have finished; writes result.json and the report.
RunsResult collect_runs(const RunSet& set, const DataSet& data);

/// Mean, deviation and range of each metric.
std::vector<Spread> spread_of(const std::vector<PartResult>& runs);

/// report.json and report.html of all runs.
void write_runs_report(const RunSet& set, const RunsResult& result, const DataSet& data,
                       const TrainedModel& trained);

}  // namespace fastweights
