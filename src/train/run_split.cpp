#include "train/run_split.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/time_split.h"
#include "train/run_fields.h"
#include "train/task_rows.h"

namespace fastweights {
namespace {

// of a window, if nothing says otherwise
constexpr int64_t kFewestWindowRows = 8, kMostWindowRows = 400;
// of the shortest part, if it is long enough
constexpr int64_t kWindowsPerPart = 12;

bool predicts_rows(TaskKind kind) {
  return kind == TaskKind::StepClassification || kind == TaskKind::Forecast || kind == TaskKind::Imputation;
}

// rows without values at the end of a series
int64_t trailing_rows(const DataSet& data, int64_t sample) {
  const auto end = data.values.begin() + data.offsets[static_cast<size_t>(sample) + 1] * data.channels(),
             begin = end - data.length(sample) * data.channels();
  auto known = end;
  while (known != begin && std::isnan(*(known - 1))) --known;
  return (end - known) / data.channels();
}

int64_t longest_series(const DataSet& data) {
  int64_t rows = 0;
  for (int64_t b = 0; b < data.samples(); ++b) rows = std::max(rows, data.length(b));
  return rows;
}

// of all folds the first has the shortest parts
int64_t shortest_part(int64_t length, SplitConfig config) {
  config.fold = 0;
  const data::TimeParts parts = data::time_parts(length, config);
  int64_t rows = parts.train.size();
  if (config.validation > 0) rows = std::min(rows, parts.validation.size());
  if (config.test > 0 || config.rule == SplitRule::Rolling) rows = std::min(rows, parts.test.size());
  return rows;
}

// that a part must have
int64_t least_rows(const SplitConfig& split) { return split.window > 0 ? split.window : kFewestWindowRows; }

// rows of a window, if the shortest part has enough
int64_t window_rows(int64_t shortest, const TaskConfig& task) {
  constexpr int64_t kWindowsOfHorizon = 4;
  const bool forecast = task.kind == TaskKind::Forecast;
  if (forecast && task.horizon >= 1) return std::min(kWindowsOfHorizon * horizon_rows(task, 0), shortest);
  // the fraction of a window by which the next one is later
  const double moved = forecast ? task.horizon : 1;
  const auto rows = static_cast<int64_t>(static_cast<double>(shortest) /
                                         (1 + static_cast<double>(kWindowsPerPart - 1) * moved));
  return std::clamp(rows, kFewestWindowRows, kMostWindowRows);
}

void complete_windows(SplitPlan& plan, int64_t shortest) {
  SplitConfig& split = plan.split;
  TaskConfig& task = plan.task;
  FW_CHECK(predicts_rows(task.kind), "[split] the rule ", name_of(split.rule),
           " divides the rows of series, and the task ", name_of(task.kind),
           " predicts series as a whole; choose another split");
  FW_CHECK(split.window > 0 || shortest >= kFewestWindowRows,
           "[split] the series are too short for the rule ", name_of(split.rule), ": a part has ", shortest,
           " rows, and a window at least ", kFewestWindowRows, "; set split.window to take fewer");
  if (split.window == 0) split.window = window_rows(shortest, task);
  if (task.kind == TaskKind::Forecast) {
    check_horizon(task);
    const int64_t horizon = horizon_rows(task, split.window);
    FW_CHECK(horizon < split.window, "[split] a window of ", split.window,
             " rows has none left before a horizon of ", horizon,
             " rows: there are too few rows, or split.window is too small, or task.horizon too large");
    task.horizon = static_cast<double>(horizon);
    if (split.stride == 0) split.stride = horizon;
  }
  if (split.stride == 0) split.stride = split.window;
}

// whether the automatic rule has too few series for the parts
bool lacks_parts(const DataSet& data, const SplitConfig& split) {
  const Split parts = split_data(data, split);
  const bool by_series = parts.rule == SplitRule::Random || parts.rule == SplitRule::Stratified;
  return by_series &&
         ((split.validation > 0 && parts.validation.empty()) || (split.test > 0 && parts.test.empty()));
}

// whether windows of the series would say more than the series themselves
bool has_few_long_series(const DataSet& data, const SplitConfig& split, const TaskConfig& task,
                         int64_t longest) {
  constexpr int64_t kFew = 20, kLong = 400;
  return predicts_rows(task.kind) && data.samples() < kFew && longest >= kLong &&
         split_data(data, split).rule == SplitRule::Random;
}

std::string count_of(int64_t count, const char* one, const char* more) {
  return message(count, " ", count == 1 ? one : more);
}

std::string too_short_note(const DataSet& data, const SplitConfig& split, int64_t longest) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t few = 0, enough = 1;
  for (; enough < kMost && shortest_part(enough, split) < least_rows(split); enough *= 2) few = enough;
  while (enough - few > 1) {
    const int64_t middle = few + (enough - few) / 2;
    (shortest_part(middle, split) < least_rows(split) ? few : enough) = middle;
  }
  return message(count_of(data.samples(), "series is", "series are"), " too few to divide by series, and ",
                 count_of(longest, "row is", "rows are"), " too few to divide by time, which takes ", enough,
                 " rows; a smaller split.window takes fewer");
}

// "71 windows for training (2024-01-01 to 2024-09-13)"
std::string part_text(const DataSet& data, const Split& parts, const std::vector<int64_t>& part,
                      const char* name) {
  double begin = std::numeric_limits<double>::infinity(), end = -begin;
  int64_t first = 0, last = 0;
  for (const int64_t i : part) {
    const Window& window = parts.windows[static_cast<size_t>(i)];
    const int64_t offset = data.offsets[static_cast<size_t>(window.sample)];
    const auto time = [&](int64_t row) { return data.times[static_cast<size_t>(row)]; };
    if (time(offset + window.first) < begin) first = offset + window.first;
    if (time(offset + window.last - 1) > end) last = offset + window.last - 1;
    begin = std::min(begin, time(offset + window.first));
    end = std::max(end, time(offset + window.last - 1));
  }
  if (part.empty()) return message("none for ", name);
  return message(part.size(), " for ", name, " (", time_text(data, first), " to ", time_text(data, last),
                 ")");
}

}  // namespace

bool divides_time(SplitRule rule) { return rule == SplitRule::Time || rule == SplitRule::Rolling; }

SplitPlan plan_split(const DataSet& data, const SplitConfig& split, const TaskConfig& task) {
  SplitPlan plan = {.split = split, .task = task};
  const int64_t longest = longest_series(data);
  if (split.rule == SplitRule::Automatic && predicts_rows(task.kind) && lacks_parts(data, split)) {
    if (shortest_part(longest, split) >= least_rows(split)) {
      plan.split.rule = SplitRule::Time;
    } else {
      plan.note = too_short_note(data, split, longest);
    }
  } else if (split.rule == SplitRule::Automatic && has_few_long_series(data, split, task, longest)) {
    plan.note =
        message("the ", data.samples(),
                " series are divided by series, so few are left to train on and to judge by; --split time "
                "divides each of them along its time");
  }
  if (divides_time(plan.split.rule)) complete_windows(plan, shortest_part(longest, plan.split));
  return plan;
}

SplitRule rule_of_folds(SplitRule rule) { return divides_time(rule) ? SplitRule::Rolling : SplitRule::Folds; }

SplitRule rule_of_folds(const DataSet& data, const SplitConfig& split, const TaskConfig& task,
                        int64_t folds) {
  const bool few = split.rule == SplitRule::Automatic && data.samples() < folds;
  return few && predicts_rows(task_kind(data, task)) ? SplitRule::Rolling : rule_of_folds(split.rule);
}

std::string split_note(const DataSet& data, const Split& parts, const SplitPlan& plan, SplitRule given) {
  if (parts.windows.empty()) return plan.note;
  std::string text = "split by time";
  if (parts.rule == SplitRule::Rolling)
    text += message(", fold ", plan.split.fold + 1, " of ", plan.split.folds);
  if (given == SplitRule::Automatic)
    text += message(", since ", count_of(data.samples(), "series is", "series are"),
                    " too few to divide by series (--split chooses another rule)");
  text += message(": windows of ", plan.split.window, " rows");
  if (plan.task.kind == TaskKind::Forecast)
    text += plan.task.horizon == 1 ? ", of which the last is forecast"
                                   : message(", of which the last ", plan.task.horizon, " are forecast");
  text += "; " + part_text(data, parts, parts.train, "training") + ", " +
          part_text(data, parts, parts.validation, "validation") + ", " +
          part_text(data, parts, parts.test, "the test");
  if (plan.split.gap > 0) text += message("; ", count_of(plan.split.gap, "row", "rows"), " left out between");
  return text;
}

std::vector<Window> model_windows(const DataSet& data, const Preparation& preparation, const TaskConfig& task,
                                  Targets targets) {
  const int64_t length = preparation.window;
  if (length == 0 || longest_series(data) <= length) return {};
  std::vector<Window> windows;
  for (int64_t b = 0; b < data.samples(); ++b) {
    const int64_t rows = data.length(b);
    if (task.kind != TaskKind::Forecast) {
      const std::vector<Window> own = data::windows_of(b, {0, rows}, length, length);
      windows.insert(windows.end(), own.begin(), own.end());
      continue;
    }
    // the rows to forecast may be more, or fewer, than in training
    const int64_t horizon = horizon_rows(task, length),
                  asked = targets == Targets::HeldOut ? horizon : trailing_rows(data, b);
    windows.push_back({b, std::max<int64_t>(0, rows - std::max<int64_t>(length - horizon, 1) - asked), rows});
  }
  return windows;
}

}  // namespace fastweights
