#pragma once

#include <string>

#include "fastweights/task.h"

/// What a run decides about its split: whether series are divided by time, and into which windows.

namespace fastweights {

/// Split and task with nothing left open that concerns a split by time.
struct SplitPlan {
  SplitConfig split = {};  ///< window and stride are known
  TaskConfig task = {};    ///< of forecasts of windows, the horizon is a number of rows
  std::string note = {};   ///< why few series are not divided by time; otherwise empty
};

/// Of a task whose kind is known. Tasks that predict rows divide series by time if there are too few of them
/// for the parts, no rule is chosen, and they are long enough.
SplitPlan plan_split(const DataSet& data, const SplitConfig& split, const TaskConfig& task);

/// Whether a rule divides series by time.
bool divides_time(SplitRule rule);

/// The rule of folds: Rolling if series are divided by time, otherwise Folds.
SplitRule rule_of_folds(SplitRule rule);
/// The rule of a run of folds: Rolling if the task predicts rows, no rule is chosen, and there are fewer
/// series than folds.
SplitRule rule_of_folds(const DataSet& data, const SplitConfig& split, const TaskConfig& task, int64_t folds);

/// A sentence about the windows of all parts; empty unless series are divided by time. `given`: the rule that
/// the settings name.
std::string split_note(const DataSet& data, const Split& parts, const SplitPlan& plan, SplitRule given);

/// The windows in which a model that was trained on windows reads series; empty: it reads them whole.
/// Forecasts: the end of each series. Other tasks: all rows.
std::vector<Window> model_windows(const DataSet& data, const Preparation& preparation, const TaskConfig& task,
                                  Targets targets);

}  // namespace fastweights
