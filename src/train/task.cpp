#include "fastweights/task.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "tensor/autograd.h"
#include "tensor/device.h"
#include "tensor/parallel.h"
#include "train/first_guess.h"
#include "train/model_time.h"
#include "train/run_fields.h"
#include "train/task_rows.h"

namespace fastweights {
namespace {

bool any_known(const std::vector<int64_t>& labels) {
  return std::any_of(labels.begin(), labels.end(), [](int64_t label) { return label >= 0; });
}

TaskKind found_kind(const DataSet& data) {
  if (any_known(data.labels)) return TaskKind::Classification;
  if (!data.head.targets.empty()) return TaskKind::Regression;
  return any_known(data.step_labels) ? TaskKind::StepClassification : TaskKind::Forecast;
}

// entries of a list
template <typename T>
std::vector<T> entries_at(const std::vector<T>& list, const std::vector<int64_t>& index) {
  std::vector<T> entries;
  entries.reserve(index.size());
  for (const int64_t i : index) entries.push_back(list[static_cast<size_t>(i)]);
  return entries;
}

// the given rows of a table: [rows, columns] float32
Tensor scaled(const std::vector<double>& table, const std::vector<int64_t>& rows,
              const std::vector<Scale>& scales, double clip) {
  constexpr int64_t kGrain = 1024;
  const auto columns = static_cast<int64_t>(scales.size()), count = static_cast<int64_t>(rows.size());
  const double limit = clip > 0 ? clip : std::numeric_limits<double>::infinity();
  Tensor out = at::empty({count, columns}, at::TensorOptions(at::kFloat));
  float* to = out.data_ptr<float>();
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    const Scale* scale = scales.data();
    for (int64_t i = begin; i < end; ++i) {
      const double* from = table.data() + rows[static_cast<size_t>(i)] * columns;
      for (int64_t c = 0; c < columns; ++c) {
        const double x = scale[c](from[c]);
        // a comparison with NaN leaves it as it is
        to[i * columns + c] = static_cast<float>(x > limit ? limit : x < -limit ? -limit : x);
      }
    }
  });
  return out;
}

// [R, 1]: elapsed time, [R, C]: observations so far; both within a few units
Tensor elapsed(const Tensor& times, const Rows& rows, const Preparation& preparation) {
  const double* t = times.data_ptr<double>();
  Tensor out = at::empty({times.size(0), 1}, at::TensorOptions(at::kFloat));
  float* to = out.data_ptr<float>();
  const double unit = preparation.median_gap * preparation.time_scale;
  for (size_t b = 0; b + 1 < rows.offsets.size(); ++b) {
    const int64_t first = rows.offsets[b];
    for (int64_t i = first; i < rows.offsets[b + 1]; ++i)
      to[i] = static_cast<float>((t[i] - t[first]) / unit);
  }
  return out;
}

Tensor counts(const Tensor& values, const Rows& rows, const Preparation& preparation) {
  const int64_t channels = values.size(1);
  Tensor out = at::empty(values.sizes(), at::TensorOptions(at::kFloat));
  const float* x = values.data_ptr<float>();
  float* to = out.data_ptr<float>();
  const auto one = static_cast<float>(1 / preparation.count_scale);
  for (size_t b = 0; b + 1 < rows.offsets.size(); ++b) {
    std::vector<float> sums(static_cast<size_t>(channels), 0.0f);
    for (int64_t i = rows.offsets[b]; i < rows.offsets[b + 1]; ++i) {
      for (int64_t c = 0; c < channels; ++c) {
        float& sum = sums[static_cast<size_t>(c)];
        if (!std::isnan(x[i * channels + c])) sum += one;
        to[i * channels + c] = sum;
      }
    }
  }
  return out;
}

Tensor model_channels(const Tensor& values, const Tensor& times, const Rows& rows,
                      const Preparation& preparation) {
  std::vector<Tensor> parts;
  parts.reserve(3);
  if (preparation.config.time_channel) parts.push_back(elapsed(times, rows, preparation));
  if (preparation.config.intensity) parts.push_back(counts(values, rows, preparation));
  parts.push_back(values);
  return at::cat(parts, 1);
}

Tensor prepared_statics(const DataSet& data, const std::vector<int64_t>& samples,
                        const Preparation& preparation) {
  const Tensor known =
      scaled(data.statics, samples, preparation.static_scales, preparation.config.clip);  // [B, F]
  std::vector<Tensor> parts;
  parts.reserve(2);
  parts.push_back(at::nan_to_num(known, 0.0));
  if (!preparation.static_flags.empty())
    parts.push_back(
        known.index_select(1, int64_tensor(preparation.static_flags)).isnan().logical_not().to(at::kFloat));
  return at::cat(parts, 1);
}

// of the last row of each sample: [B]
Tensor end_times(const PreparedData& data, const Tensor& samples) {
  return data.times.index_select(0, data.offsets.index_select(0, samples + 1) - 1);
}

// a model needs two points: a single row is repeated one gap earlier
RaggedSeries pad_single_rows(const Tensor& channels, const Tensor& times, const Rows& rows, double gap) {
  std::vector<int64_t> index, offsets = {0}, added;
  for (size_t b = 0; b + 1 < rows.offsets.size(); ++b) {
    const int64_t first = rows.offsets[b], last = rows.offsets[b + 1];
    if (last - first == 1) {
      added.push_back(static_cast<int64_t>(index.size()));
      index.push_back(first);
    }
    for (int64_t i = first; i < last; ++i) index.push_back(i);
    offsets.push_back(static_cast<int64_t>(index.size()));
  }
  if (added.empty()) return {channels, times, int64_tensor(rows.offsets)};
  const Tensor all = int64_tensor(index), new_times = times.index_select(0, all);
  for (const int64_t i : added) new_times.data_ptr<double>()[i] -= gap;
  return {channels.index_select(0, all), new_times, int64_tensor(offsets)};
}

// the first channel of the column of each channel
std::vector<int64_t> columns_of_channels(const Preparation& preparation) {
  if (preparation.channel_texts.empty()) return {};
  std::vector<int64_t> first(preparation.channels.size());
  for (const ShownColumn& column : shown_columns(preparation.channels, preparation.channel_texts)) {
    for (const size_t c : column.channels) first[c] = static_cast<int64_t>(column.channels.front());
  }
  return first;
}

}  // namespace

TaskKind task_kind(const DataSet& data, const TaskConfig& config) {
  check_horizon(config);
  FW_CHECK(config.hidden > 0 && config.hidden < 1, "[task] hidden must be between 0 and 1, got ",
           config.hidden);
  const TaskKind kind = config.kind == TaskKind::Automatic ? found_kind(data) : config.kind;
  const std::string& name = data.head.name;
  FW_CHECK(kind != TaskKind::Classification || any_known(data.labels), "'", name,
           "' has no labels to classify by");
  FW_CHECK(kind != TaskKind::StepClassification || any_known(data.step_labels), "'", name,
           "' has no labels of its rows to classify by");
  FW_CHECK(kind != TaskKind::Regression || !data.head.targets.empty(), "'", name,
           "' has no targets to predict; name the columns with --target-columns");
  const bool classes = kind == TaskKind::Classification || kind == TaskKind::StepClassification;
  FW_CHECK(!classes || data.classes() > 1, "all series of '", name, "' have the label '",
           data.classes() > 0 ? data.head.classes[0] : "", "'; classification needs two classes");
  return kind;
}

std::string task_note(const DataSet& data, TaskKind kind) {
  const std::string task = message("task ", name_of(kind));
  if (kind != found_kind(data)) return task;
  if (kind == TaskKind::Forecast)
    return message(
        task, ": the data have neither labels (no column '", data.head.source.label,
        "') nor targets; --label-column or --target-columns names them, --task chooses another task");
  const char* reason = kind == TaskKind::Classification ? "the series have labels"
                       : kind == TaskKind::Regression   ? "the series have targets"
                                                        : "the rows have labels, which vary within series";
  return message(task, ": ", reason, "; --task chooses another task");
}

int64_t output_count(TaskKind kind, const Preparation& preparation) {
  if (kind == TaskKind::Regression) return static_cast<int64_t>(preparation.targets.size());
  if (kind == TaskKind::Forecast || kind == TaskKind::Imputation)
    return static_cast<int64_t>(preparation.channels.size());
  const auto classes = static_cast<int64_t>(preparation.classes.size());
  return classes == 2 ? 1 : classes;
}

PreparedData prepare(const DataSet& data, const Preparation& preparation) {
  std::vector<int64_t> all(static_cast<size_t>(data.samples()));
  std::iota(all.begin(), all.end(), int64_t{0});
  return prepare(data, all, preparation);
}

PreparedData prepare(const DataSet& data, const std::vector<int64_t>& samples,
                     const Preparation& preparation) {
  FW_CHECK(data.head.channels == preparation.channels,
           "[prepare] the data have other channels than the preparation");
  FW_CHECK(data.head.statics == preparation.statics && data.head.targets == preparation.targets,
           "[prepare] the data have other static features or targets than the preparation");
  const Rows rows = rows_of(data.offsets, samples);
  PreparedData out;
  out.ids = entries_at(data.ids, samples);
  out.values = scaled(data.values, rows.index, preparation.channel_scales, preparation.config.clip);
  out.times = at::tensor(entries_at(data.times, rows.index), at::kDouble);
  out.offsets = int64_tensor(rows.offsets);
  if (!preparation.statics.empty()) out.statics = prepared_statics(data, samples, preparation);
  if (!data.labels.empty()) out.labels = int64_tensor(entries_at(data.labels, samples));
  if (!preparation.targets.empty()) out.targets = scaled(data.targets, samples, preparation.target_scales, 0);
  if (!data.step_labels.empty()) out.step_labels = int64_tensor(entries_at(data.step_labels, rows.index));
  out.columns = columns_of_channels(preparation);
  return out;
}

Batch make_batch(const PreparedData& data, const Preparation& preparation, const TaskConfig& task,
                 const std::vector<int64_t>& samples, uint64_t seed, Targets targets) {
  const TaskRows input = task_rows(data, task, samples, seed, targets);
  const Rows& rows = input.rows;
  const Tensor which = int64_tensor(samples);
  const Tensor times = model_times(input, preparation.usual_gap);  // [R]
  Batch batch;
  if (input.outputs) {
    batch.input.output_times =
        RaggedTimes{times.index_select(0, input.outputs->index), input.outputs->offsets};
    batch.times = input.times.index_select(0, input.outputs->index);
  } else {
    batch.times = end_times(data, which);
  }
  if (task.kind == TaskKind::Forecast || task.kind == TaskKind::Imputation) {
    batch.targets = input.held_out;
    if (!preparation.guesses.empty()) {
      batch.guess = first_guess(preparation, input, batch.times, input.outputs->offsets);
      if (batch.targets.defined()) batch.targets = batch.targets - batch.guess;
    }
  } else if (task.kind == TaskKind::StepClassification) {
    if (data.step_labels.defined())
      batch.classes = data.step_labels.index_select(0, int64_tensor(rows.index));
  } else if (task.kind == TaskKind::Regression) {
    batch.targets = data.targets.index_select(0, which);
  } else if (data.labels.defined()) {
    batch.classes = data.labels.index_select(0, which);
  }
  batch.input.series = pad_single_rows(model_channels(input.values, times, rows, preparation), times, rows,
                                       preparation.median_gap);
  if (data.statics.defined()) batch.input.static_features = data.statics.index_select(0, which);
  return batch;
}

Batch truth_of(const PreparedData& data, const Preparation& preparation, const TaskConfig& task,
               const std::vector<int64_t>& samples) {
  const Tensor which = int64_tensor(samples);
  Batch batch;
  if (task.kind == TaskKind::Classification && data.labels.defined()) {
    batch.classes = data.labels.index_select(0, which);
    batch.times = end_times(data, which);
  } else if (task.kind == TaskKind::Regression) {
    batch.targets = data.targets.index_select(0, which);
    batch.times = end_times(data, which);
  } else {
    batch = make_batch(data, preparation, task, samples, /*seed=*/1);
    batch.input = {};
  }
  return batch;
}

namespace {

// without synchronising with the GPU
Tensor squares_on_device(const Tensor& outputs, const Tensor& given) {
  const Tensor targets = on_device(given, outputs.device());
  const Tensor known = targets.isnan().logical_not().to(outputs.scalar_type());  // [M, O]
  return ((outputs - at::nan_to_num(targets, 0.0)).square() * known).sum() / known.sum().clamp_min(1);
}

// [M]: -log sigmoid(z) where the class is 1, -log sigmoid(-z) where it is 0
Tensor logistic_losses(const Tensor& out, const Tensor& classes) {
  const Tensor z = out.squeeze(1), y = classes.to(z.scalar_type());
  return at::softplus((1 - 2 * y) * z);
}

// of classes [M'] that are all known
Tensor class_loss(const Tensor& out, const Tensor& classes, const Tensor& each_class) {
  if (out.size(1) > 1) return at::cross_entropy_loss(out, classes, each_class);
  const Tensor each = logistic_losses(out, classes);
  if (!each_class.defined()) return each.mean();
  const Tensor weights = each_class.index_select(0, classes);
  return (each * weights).sum() / weights.sum();
}

// the same without synchronising with the GPU; classes [M], -1: unknown
Tensor class_loss_on_device(const Tensor& out, const Tensor& given, const Tensor& each_class) {
  constexpr double kLeast = 1e-30;  // without a known class the loss is zero
  const Tensor classes = on_device(given, out.device()), known = classes.ge(0), some = classes.clamp_min(0);
  Tensor weights = known.to(out.scalar_type());
  if (each_class.defined()) weights = weights * each_class.index_select(0, some);
  const Tensor sum = out.size(1) > 1
                         ? at::cross_entropy_loss(out, classes, each_class, at::Reduction::Sum, -1)
                         : (logistic_losses(out, some) * weights).sum();
  return sum / weights.sum().clamp_min(kLeast);
}

}  // namespace

Tensor task_loss(const Tensor& outputs, const Batch& batch, const Tensor& class_weights) {
  const at::Device device = outputs.device();
  if (batch.targets.defined() && !device.is_cpu()) return squares_on_device(outputs, batch.targets);
  if (batch.targets.defined()) {
    const Tensor known = batch.targets.isnan().logical_not();  // [M, O]
    if (!known.any().item<bool>()) return outputs.sum() * 0;
    return (outputs - batch.targets).masked_select(known).square().mean();
  }
  FW_CHECK(batch.classes.defined(), "[loss] these series have neither classes nor targets");
  const Tensor each_class =
      class_weights.defined() ? on_device(class_weights.to(outputs.scalar_type()), device) : Tensor();
  if (!device.is_cpu()) return class_loss_on_device(outputs, batch.classes, each_class);
  const Tensor known = batch.classes.ge(0).nonzero().squeeze(1);  // [M']
  if (known.size(0) == 0) return outputs.sum() * 0;
  return class_loss(outputs.index_select(0, known), batch.classes.index_select(0, known), each_class);
}

}  // namespace fastweights
