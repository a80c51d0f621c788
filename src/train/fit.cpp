#include "train/fit.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "fastweights/network.h"
#include "train/task_rows.h"

namespace fastweights {
namespace {

// small sets, and those of mostly missing values, overfit without it
double default_dropout(const PreparedData& train) {
  constexpr int64_t kMany = 1000;
  // a sum of flags would convert them to int64 first
  const auto missing = at::count_nonzero(train.values.isnan()).item<int64_t>();
  if (2 * missing > train.values.numel()) return 0.3;
  return train.samples() < kMany ? 0.2 : 0.1;
}

// series with a known class or target; of other tasks all
std::vector<int64_t> known_series(const PreparedData& data, TaskKind kind) {
  Tensor known = at::ones({data.samples()}, at::kBool);
  if (kind == TaskKind::Classification && data.labels.defined()) known = data.labels.ge(0);
  if (kind == TaskKind::Regression) known = data.targets.isfinite().any(1);
  const Tensor index = known.nonzero().squeeze(1);
  return {index.data_ptr<int64_t>(), index.data_ptr<int64_t>() + index.size(0)};
}

// the seed of what imputation holds out, as in predictions
constexpr uint64_t kHeldOut = 1;

std::optional<FitData::Part> fit_part(const PreparedData& set, const TrainData& data) {
  const std::vector<int64_t> samples = known_series(set, data.task.kind);
  if (samples.empty()) return {};
  Batch batch = make_batch(set, data.preparation, data.task, samples, kHeldOut);
  return FitData::Part{std::move(batch.input), batch.classes, batch.targets};
}

class NoOptimiser final : public Optimiser {
 public:
  void begin_step(double) override {}
  void apply(const StepGradient&, double) override {}
  std::map<std::string, Tensor> state() const override { return {}; }
  void set_state(const std::map<std::string, Tensor>&) override {}
};

}  // namespace

bool is_fitted(const ModelConfig& config) { return static_cast<bool>(config.architecture.type().fit); }

bool serves(Tasks tasks, TaskKind kind) {
  if (tasks == Tasks::All) return true;
  const bool series = kind == TaskKind::Classification || kind == TaskKind::Regression;
  const bool channels = kind == TaskKind::Forecast || kind == TaskKind::Imputation;
  return tasks == Tasks::Series ? series : channels;
}

std::vector<std::string> models_for(TaskKind kind) {
  std::vector<std::string> names;
  for (const ArchitectureType* type : all_architectures()) {
    if (!serves(type->tasks, kind)) continue;
    for (const NamedModel& model : type->models) names.push_back(model.name);
  }
  return names;
}

DataShape shape_of(const PreparedData& train, const Preparation& p, TaskKind kind) {
  const auto rows = static_cast<double>(train.times.size(0));
  DataShape shape = {.channels = p.model_channels(),
                     .static_features = p.model_statics(),
                     .outputs = output_count(kind, p),
                     .known_channels = p.model_channels() - static_cast<int64_t>(p.channels.size()),
                     .median_gap = p.median_gap,
                     .length = rows / static_cast<double>(std::max<int64_t>(train.samples(), 1)),
                     .dropout = default_dropout(train),
                     .per_row = kind != TaskKind::Classification && kind != TaskKind::Regression};
  const int64_t* offsets = train.offsets.data_ptr<int64_t>();
  for (const int64_t b : known_series(train, kind)) {
    // batches repeat a single row
    const int64_t length = std::max<int64_t>(offsets[b + 1] - offsets[b], 2);
    shape.shortest = shape.series == 0 ? length : std::min(shape.shortest, length);
    shape.longest = std::max(shape.longest, length);
    shape.rows += length;
    ++shape.series;
  }
  return shape;
}

void use_plain_data(const ModelConfig& config, Preparation& preparation) {
  if (!is_fitted(config)) return;
  preparation.usual_gap = 0;
  preparation.guesses.clear();
}

std::string fit_model(const Model& model, const TrainData& data, int64_t seed) {
  const at::NoGradGuard no_grad;
  const std::optional<FitData::Part> train = fit_part(data.train, data);
  FW_CHECK(train, "[train] no class or target is known in the training part");
  return model.config().architecture.type().fit(
      model.config(), *model.network(),
      {*train, fit_part(data.validation, data), static_cast<uint64_t>(seed)});
}

double loss_of(const Predictions& predictions) {
  Batch truth;
  truth.classes = predictions.classes;
  truth.targets = predictions.targets;
  return task_loss(predictions.outputs, truth, {}).item<double>();
}

std::shared_ptr<Optimiser> no_optimiser() { return std::make_shared<NoOptimiser>(); }

}  // namespace fastweights
