#include "train/task_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace fastweights {

Rows rows_of(at::IntArrayRef offsets, const std::vector<int64_t>& samples) {
  const auto count = static_cast<int64_t>(offsets.size()) - 1;
  Rows rows;
  for (const int64_t b : samples) {
    FW_CHECK(b >= 0 && b < count, "[batch] sample ", b, " is out of range for ", count, " samples");
    for (int64_t i = offsets[b]; i < offsets[b + 1]; ++i) rows.index.push_back(i);
    rows.offsets.push_back(static_cast<int64_t>(rows.index.size()));
  }
  return rows;
}

namespace {

// rows of a horizon
constexpr double kMostAhead = 1e9;

}  // namespace

void check_horizon(const TaskConfig& config) {
  const double horizon = config.horizon;
  const bool fraction = horizon > 0 && horizon < 1,
             rows = horizon >= 1 && horizon <= kMostAhead && horizon == std::floor(horizon);
  FW_CHECK(fraction || rows, "[task] horizon must be a fraction between 0 and 1 or a number of rows, got ",
           horizon);
}

int64_t horizon_rows(const TaskConfig& config, int64_t length) {
  // a damaged file may have any number
  if (config.horizon >= 1) return std::llround(std::min(config.horizon, kMostAhead));
  return std::max<int64_t>(1, std::llround(config.horizon * static_cast<double>(length)));
}

namespace {

bool is_in_horizon(const TaskConfig& task, int64_t row, int64_t length) {
  return row >= std::max<int64_t>(length - horizon_rows(task, length), 1);
}

// Chooses the values of the next row that imputation holds out. Channels of a text column say the same, and
// are held out together.
void choose_values(std::vector<bool>& chosen, const TaskConfig& task, const std::vector<int64_t>& columns,
                   Random& random) {
  for (size_t c = 0; c < chosen.size(); ++c) {
    const bool own = random.uniform() < task.hidden;
    const size_t first = columns.empty() ? c : static_cast<size_t>(columns[c]);
    chosen[c] = first == c ? own : chosen[first];
  }
}

// independent of the other series of the batch
Random random_of(uint64_t seed, int64_t sample) {
  return Random(Random(Random(seed).next() ^ static_cast<uint64_t>(sample)).next());
}

// targets are removed from the input: the last rows of each series, or values at random
void hold_out(TaskRows& out, const TaskConfig& task, const std::vector<int64_t>& columns,
              const std::vector<int64_t>& samples, uint64_t seed) {
  const int64_t channels = out.values.size(1);
  std::vector<bool> chosen(static_cast<size_t>(channels));
  const std::vector<int64_t>& offsets = out.rows.offsets;
  const Tensor targets = at::full_like(out.values, NAN);
  out.values = out.values.clone();
  float* input = out.values.data_ptr<float>();
  float* target = targets.data_ptr<float>();
  std::vector<int64_t> kept, output_offsets = {0};
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    Random random = random_of(seed, samples[b]);
    const int64_t first = offsets[b], last = offsets[b + 1];
    for (int64_t i = first; i < last; ++i) {
      bool any = false;
      if (task.kind == TaskKind::Imputation) {
        choose_values(chosen, task, columns, random);
      } else {
        std::fill(chosen.begin(), chosen.end(), is_in_horizon(task, i - first, last - first));
      }
      for (int64_t j = i * channels; j < (i + 1) * channels; ++j) {
        if (!chosen[static_cast<size_t>(j - i * channels)]) continue;
        target[j] = input[j];
        any = any || !std::isnan(input[j]);
        input[j] = NAN;
      }
      if (any) kept.push_back(i);
    }
    output_offsets.push_back(static_cast<int64_t>(kept.size()));
  }
  out.outputs = RequestedRows{int64_tensor(kept), int64_tensor(output_offsets)};
  out.held_out = targets.index_select(0, out.outputs->index);
}

// rows after the last one with a value
int64_t trailing_missing_rows(const float* values, int64_t rows, int64_t channels) {
  int64_t count = 0;
  for (; count < rows; ++count) {
    const float* row = values + (rows - 1 - count) * channels;
    if (!std::all_of(row, row + channels, [](float x) { return std::isnan(x); })) break;
  }
  return count;
}

// rows of the values to predict
RequestedRows missing_rows(const Tensor& values, const std::vector<int64_t>& offsets, TaskKind kind) {
  const float* x = values.data_ptr<float>();
  std::vector<int64_t> missing, output_offsets = {0};
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    int64_t first = offsets[b];
    const int64_t last = offsets[b + 1];
    if (kind == TaskKind::Forecast)
      first = last - trailing_missing_rows(x + first * values.size(1), last - first, values.size(1));
    for (int64_t i = first; i < last; ++i) missing.push_back(i);
    output_offsets.push_back(static_cast<int64_t>(missing.size()));
  }
  return {int64_tensor(missing), int64_tensor(output_offsets)};
}

}  // namespace

TaskRows task_rows(const PreparedData& data, const TaskConfig& task, const std::vector<int64_t>& samples,
                   uint64_t seed, Targets targets) {
  const at::IntArrayRef offsets(data.offsets.data_ptr<int64_t>(), static_cast<size_t>(data.offsets.size(0)));
  TaskRows out = {.rows = rows_of(offsets, samples), .values = {}, .times = {}};
  const Tensor index = int64_tensor(out.rows.index);
  out.values = data.values.index_select(0, index);
  out.times = data.times.index_select(0, index);
  if (task.kind == TaskKind::Forecast || task.kind == TaskKind::Imputation) {
    if (targets == Targets::Missing) {
      out.outputs = missing_rows(out.values, out.rows.offsets, task.kind);
    } else {
      hold_out(out, task, data.columns, samples, seed);
    }
  } else if (task.kind == TaskKind::StepClassification) {
    out.outputs = RequestedRows{at::arange(index.size(0), at::kLong), int64_tensor(out.rows.offsets)};
  }
  return out;
}

}  // namespace fastweights
