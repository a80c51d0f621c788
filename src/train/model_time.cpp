#include "train/model_time.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "architectures/registry.h"
#include "base/error.h"
#include "data/model_time.h"
#include "train/first_guess.h"

namespace fastweights {
namespace {

using data::ModelClock;

// whether each row has a value: [R]
std::vector<bool> observed_rows(const Tensor& values) {
  const int64_t rows = values.size(0), channels = values.size(1);
  const float* x = values.data_ptr<float>();
  std::vector<bool> observed(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = x + i * channels;
    observed[static_cast<size_t>(i)] =
        !std::all_of(row, row + channels, [](float value) { return std::isnan(value); });
  }
  return observed;
}

// Calls use(row, clock) for each row, before the clock observes it.
template <typename Use>
void for_rows(const TaskRows& input, double usual_gap, const Use& use) {
  const std::vector<bool> observed = observed_rows(input.values);
  const double* t = input.times.data_ptr<double>();
  const std::vector<int64_t>& offsets = input.rows.offsets;
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    if (offsets[b] == offsets[b + 1]) continue;
    ModelClock clock(t[offsets[b]], usual_gap);
    for (int64_t i = offsets[b]; i < offsets[b + 1]; ++i) {
      use(i, clock);
      if (observed[static_cast<size_t>(i)]) clock.observe(t[i]);
    }
  }
}

// a set as the task gives it to a model, some samples at a time; use(inputs, first sample)
template <typename Use>
void for_inputs(const PreparedData& data, const TaskConfig& task, Targets targets, const Use& use) {
  constexpr int64_t kAtOnce = 256;
  for (int64_t first = 0; first < data.samples(); first += kAtOnce) {
    std::vector<int64_t> samples(static_cast<size_t>(std::min(kAtOnce, data.samples() - first)));
    std::iota(samples.begin(), samples.end(), first);
    use(task_rows(data, task, samples, /*seed=*/1, targets), first);
  }
}

// Times since the last observed row, of which a share is usual: at observed rows and outputs of imputation,
// or at outputs of forecasts.
std::vector<double> task_gaps(const PreparedData& data, const TaskConfig& task) {
  std::vector<double> gaps;
  for_inputs(data, task, Targets::HeldOut, [&](const TaskRows& input, int64_t) {
    std::vector<bool> counted = task.kind == TaskKind::Imputation
                                    ? observed_rows(input.values)
                                    : std::vector<bool>(input.rows.index.size());
    const int64_t* output = input.outputs->index.data_ptr<int64_t>();
    for (int64_t m = 0; m < input.outputs->index.size(0); ++m) counted[static_cast<size_t>(output[m])] = true;
    const double* t = input.times.data_ptr<double>();
    for_rows(input, 0, [&](int64_t i, const ModelClock& clock) {
      const double gap = clock.since_observed(t[i]);
      if (counted[static_cast<size_t>(i)] && gap > 0) gaps.push_back(gap);
    });
  });
  return gaps;
}

// series whose longest gap is far longer than usual
struct FarGaps {
  int64_t series = 0, count = 0;
  double longest = 0;
  std::string id;           // of the longest gap
  double longest_step = 0;  // in model time
};

void add_far_gaps(FarGaps& found, const PreparedData& data, const TaskRows& input, int64_t first_sample,
                  double usual_gap) {
  // at twice the usual gap a quarter of it is lost, at ten times nearly everything beyond
  constexpr double kFar = 10;
  const Tensor model = model_times(input, usual_gap);
  const double *t = input.times.data_ptr<double>(), *tau = model.data_ptr<double>();
  const std::vector<int64_t>& offsets = input.rows.offsets;
  std::vector<double> longest(offsets.size() - 1, 0.0);
  size_t b = 0;
  for_rows(input, usual_gap, [&](int64_t i, const ModelClock& clock) {
    while (i >= offsets[b + 1]) ++b;
    longest[b] = std::max(longest[b], clock.since_observed(t[i]));
    if (i > offsets[b]) found.longest_step = std::max(found.longest_step, tau[i] - tau[i - 1]);
  });
  for (size_t k = 0; k < longest.size(); ++k) {
    ++found.series;
    if (!(longest[k] > kFar * usual_gap)) continue;
    ++found.count;
    if (longest[k] <= found.longest) continue;
    found.longest = longest[k];
    found.id = data.ids[static_cast<size_t>(first_sample) + k];
  }
}

// " ..." about Runge-Kutta steps over whole gaps that are too long to be accurate
std::string method_note(const ModelConfig& model, double longest_step) {
  constexpr double kLong = 2;
  const SolverConfig* solver = solver_of(model);
  const auto* method = solver && solver->method ? std::get_if<Tableau>(&*solver->method) : nullptr;
  const auto* steps = solver ? std::get_if<ObservationSteps>(&solver->steps) : nullptr;
  if (!method || !steps) return "";
  const Json keys = json_of(model);
  // steps over windows are in units of windows
  const Json::json_pointer kind("/control/kind"), unit("/time_unit");
  if (!keys.contains(unit) || (keys.contains(kind) && keys.at(kind) == "log_signature")) return "";
  const double limit = steps->max_step > 0 ? steps->max_step : std::numeric_limits<double>::infinity();
  if (std::min(longest_step / keys.at(unit).get<double>(), limit) <= kLong) return "";
  return message("; method ", method->name, " may be inaccurate over long steps; see docs/time_and_gaps.md");
}

// per channel, the mean absolute difference of neighbouring observed values of a series
std::vector<double> naive_errors(const PreparedData& data) {
  const int64_t channels = data.values.size(1);
  const auto* x = data.values.data_ptr<float>();
  const int64_t* offsets = data.offsets.data_ptr<int64_t>();
  std::vector<double> errors;
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0, count = 0;
    for (int64_t b = 0; b < data.samples(); ++b) {
      double before = NAN;
      for (int64_t i = offsets[b]; i < offsets[b + 1]; ++i) {
        const double value = x[i * channels + c];
        if (std::isnan(value)) continue;
        sum += std::isnan(before) ? 0 : std::abs(value - before);
        count += std::isnan(before) ? 0 : 1;
        before = value;
      }
    }
    errors.push_back(count > 0 ? sum / count : 0);
  }
  return errors;
}

}  // namespace

Tensor model_times(const TaskRows& input, double usual_gap) {
  if (usual_gap == 0) return input.times;
  // rows that saturation would make equal stay apart
  const double apart = 1e-8 * usual_gap;
  Tensor out = at::empty_like(input.times);
  double* tau = out.data_ptr<double>();
  const double* t = input.times.data_ptr<double>();
  double before = 0;
  for_rows(input, usual_gap, [&](int64_t i, const ModelClock& clock) {
    const double gap = clock.since_observed(t[i]), own = clock.at(t[i]);
    const bool first = gap == 0;
    double least = std::nextafter(before, std::numeric_limits<double>::infinity());
    if (gap > usual_gap) least = std::max(least, before + apart);
    tau[i] = before = first ? own : std::max(own, least);
  });
  return out;
}

Tensor data_times(const Tensor& times, const TaskRows& series, double usual_gap) {
  if (usual_gap == 0) return times;
  const Tensor model = model_times(series, usual_gap);
  const int64_t rows = model.size(0);
  const double *t = series.times.data_ptr<double>(), *tau = model.data_ptr<double>();
  std::vector<ModelClock> clocks;  // after each row
  for_rows(series, usual_gap, [&](int64_t i, const ModelClock& clock) {
    if (i > 0) clocks.push_back(clock);
  });
  Tensor out = times.clone();
  double* found = out.data_ptr<double>();
  for (int64_t k = 0; k < out.size(0); ++k) {
    const int64_t i = std::upper_bound(tau, tau + rows, found[k]) - tau - 1;
    // a single row has one before it
    if (i < 0) continue;
    if (i + 1 == rows || tau[i] == found[k]) {
      found[k] = t[i];
    } else {
      found[k] = std::clamp(clocks[static_cast<size_t>(i)].inverse(found[k]), t[i], t[i + 1]);
    }
  }
  return out;
}

Preparation fit_preparation(const DataSet& data, const std::vector<int64_t>& samples,
                            const PrepareConfig& config, const TaskConfig& task) {
  Preparation p = fit_preparation(data, samples, config);
  TaskConfig own = task;
  own.kind = task_kind(data, task);
  const bool forecast = own.kind == TaskKind::Forecast;
  if (!forecast && own.kind != TaskKind::Imputation) return p;
  const PreparedData train = prepare(data, samples, p);
  if (p.usual_gap > 0) {
    // horizons are the question itself: the longest is usual
    const double gap = data::usual_gap_of(task_gaps(train, own), forecast ? 1 : config.usual_gaps);
    if (gap > p.usual_gap) data::fit_time(p, data, samples, gap);
  }
  p.naive_errors = naive_errors(train);
  if (config.first_guess == FirstGuess::Automatic) fit_first_guess(p, train, own);
  return p;
}

std::string gap_note(const std::vector<const PreparedData*>& parts, const Preparation& preparation,
                     const TaskConfig& task, const ModelConfig& model, Targets targets) {
  const double usual = preparation.usual_gap;
  if (usual == 0) return "";
  FarGaps found;
  for (const PreparedData* part : parts) {
    for_inputs(*part, task, targets, [&](const TaskRows& input, int64_t first) {
      add_far_gaps(found, *part, input, first, usual);
    });
  }
  if (found.count == 0) return "";
  char longest[32];
  std::snprintf(longest, sizeof longest, "%.3g", found.longest / usual);
  return message(found.count, " of ", found.series,
                 " series have gaps far longer than usual in training (longest: ", longest,
                 " times the usual gap, series '", found.id, "'); model time saturates there",
                 method_note(model, found.longest_step));
}

std::string gap_note(const Run& run) {
  const RunData& d = run.data;
  return gap_note({&d.train, &d.validation, &d.test}, d.preparation, d.task, run.config.model);
}

}  // namespace fastweights
