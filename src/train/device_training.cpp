#include "train/device_training.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fastweights/error.h"
#include "tensor/autograd.h"
#include "tensor/device.h"

namespace fastweights {
namespace {

// of the memory that is free, for data that stay
constexpr double kDataShare = 0.25;
constexpr double kValidationShare = 0.1;
constexpr double kRecordShare = 0.4;
// batches in a row that a graph cannot do, after which it is given up
constexpr int kRefusals = 16;
// of a limit for steps
constexpr int64_t kLeast = int64_t{16} << 20;
// series that say how large all of them are
constexpr int64_t kSome = 64;

std::vector<int64_t> first_samples(int64_t count) {
  std::vector<int64_t> samples(static_cast<size_t>(count));
  std::iota(samples.begin(), samples.end(), int64_t{0});
  return samples;
}

// what the model sees of a series is the same in every epoch, whatever its neighbours are
bool stays(const FastWeightProgrammer& model, const TaskConfig& task) {
  const ModelConfig& config = model.config();
  return task.kind != TaskKind::Imputation && config.query != QueryTime::LastOfBatch &&
         config.solver.steps != StepRule::SharedGrid;
}

PreparedInput prepared(const FastWeightProgrammer& model, const TrainData& data, const PreparedData& set,
                       int64_t samples) {
  return model.prepare(
      make_batch(set, data.preparation, data.task, first_samples(samples), /*seed=*/1).input);
}

// whether a set takes no more than this share of the memory that is free, judged by its first series
bool fits_device(const FastWeightProgrammer& model, const TrainData& data, const PreparedData& set,
                 double share) {
  const at::NoGradGuard no_grad;
  const int64_t some = std::min(kSome, set.samples());
  const int64_t* o = set.offsets.data_ptr<int64_t>();
  const auto rows = static_cast<double>(std::max<int64_t>(o[some], 1));
  const double each = static_cast<double>(prepared(model, data, set, some).bytes()) / rows;
  return each * static_cast<double>(o[set.samples()]) <=
         share * static_cast<double>(device_memory(model.device()).free);
}

std::optional<PreparedInput> whole_set(const FastWeightProgrammer& model, const TrainData& data) {
  if (!stays(model, data.task) || !fits_device(model, data, data.train, kDataShare)) return {};
  const at::NoGradGuard no_grad;
  try {
    return prepared(model, data, data.train, data.train.samples());
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
  }
  release_device_memory();
  return {};
}

// rows that there must be room for in a batch of so many samples: the longest ones, or where all rows of the
// room cost time (products know nothing of rows that are not there) not many more than there usually are
int64_t rows_to_record(const FastWeightProgrammer& model, const Resident& all, int64_t samples) {
  constexpr double kUsual = 1.3;
  std::vector<int64_t> steps;
  for (const ResidentSample& sample : all.samples) steps.push_back(sample.steps);
  std::sort(steps.rbegin(), steps.rend());
  const int64_t most = std::accumulate(steps.begin(), steps.begin() + samples, int64_t{0});
  if (!model.rows_cost_time()) return most;
  const auto sum = static_cast<double>(std::accumulate(steps.begin(), steps.end(), int64_t{0}));
  const double usual = sum / static_cast<double>(steps.size()) * static_cast<double>(samples);
  return std::min(most, static_cast<int64_t>(kUsual * usual) + 1);
}

}  // namespace

DeviceTraining::DeviceTraining(const FastWeightProgrammer& model, const TrainData& data,
                               const AdamOptions& options)
    : data_(data), adam_(model, options), all_(whole_set(model, data)) {}

DeviceTraining::Ready DeviceTraining::make_ready(const FastWeightProgrammer& model,
                                                 const Place& place) const {
  const at::NoGradGuard no_grad;
  if (all_)
    return {place, all_->select(place.samples),
            truth_of(data_.train, data_.preparation, data_.task, place.samples)};
  Batch batch = make_batch(data_.train, data_.preparation, data_.task, place.samples, place.seed);
  return {place, model.prepare(batch.input), std::move(batch)};
}

DeviceStep DeviceTraining::try_step(const FastWeightProgrammer& model, const TrainConfig& config,
                                    const Tensor& class_weights, const std::optional<Place>& next,
                                    double rate) {
  const Ready& here = *ready_;
  const StepWork work = {
      model, config.clip, config.penalty,
      class_weights.defined() ? on_device(class_weights.to(at::kFloat), model.device()) : class_weights};
  StepGradient gradient;
  if (RecordedStep* recorded = recorded_for(work, here, config.batch_size)) {
    adam_.begin_step(rate);
    gradient = recorded->run(here.input, here.truth, here.place.seed);
  } else {
    gradient = step_gradient(work, here.input, here.truth, {.mode = Mode::Train, .seed = here.place.seed});
    const at::NoGradGuard no_grad;
    // from here on nothing is tried again; a norm that is not finite changes nothing
    adam_.begin_step(rate);
    adam_.apply(gradient.flat, gradient.norm, config.clip);
  }
  const at::NoGradGuard no_grad;
  ready_.reset();
  if (next) prepare_next(model, *next);
  const Tensor known = gradient.numbers.cpu();
  const DeviceStep result = {known[0].item<double>(), known[1].item<double>(), gradient.pieces};
  if (!std::isfinite(result.gradient_norm)) adam_.take_back();
  return result;
}

void DeviceTraining::record(const StepWork& work, const Ready& here) {
  const Resident& batch = here.input.resident();
  const auto samples = static_cast<int64_t>(here.place.samples.size());
  const int64_t there = batch.steps.dt.size(0);
  const int64_t rows =
      work.model.config().layers > 1 ? there : rows_to_record(work.model, all_->resident(), samples);
  // the room does not depend on who comes first, and a later batch will fit
  if (there > rows) return;
  // what is recorded keeps its memory, and steps of other shapes need some, too
  const double needed = static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(there, 1)) *
                        static_cast<double>(work.model.plan(here.input).bytes);
  const auto limit = static_cast<double>(work.model.config().solver.memory_limit);
  const double free = static_cast<double>(device_memory(work.model.device()).free);
  if (needed < kRecordShare * free && (limit == 0 || needed <= limit)) {
    try {
      recorded_ = std::make_unique<RecordedStep>(work, adam_, here.input, here.truth, rows);
    } catch (const std::exception&) {
      // steps go without; if something is really wrong, they will say so
      release_device_memory();
    }
  }
  if (!recorded_) recording_ = Recording::Impossible;
}

RecordedStep* DeviceTraining::recorded_for(const StepWork& work, const Ready& here, int64_t batch_size) {
  // not for the rest of an epoch: whether it comes first must not change what happens to the others
  const bool whole = static_cast<int64_t>(here.place.samples.size()) == batch_size;
  if (!all_ || !whole || recording_ == Recording::Impossible) return nullptr;
  if (!recorded_ && RecordedStep::possible(work.model, here.input, here.truth)) record(work, here);
  if (!recorded_) return nullptr;
  if (recorded_->takes(here.input, here.truth)) {
    refused_ = 0;
    return recorded_.get();
  }
  // batches that are never alike, such as those with several outputs of each series
  if (++refused_ == kRefusals) {
    recorded_.reset();
    recording_ = Recording::Impossible;
  }
  return nullptr;
}

void DeviceTraining::prepare_next(const FastWeightProgrammer& model, const Place& next) {
  try {
    ready_ = make_ready(model, next);
  } catch (const std::exception& error) {
    // it will be made when its turn comes
    if (!is_out_of_memory(error)) throw;
  }
}

DeviceStep DeviceTraining::step(const FastWeightProgrammer& model, const TrainConfig& config,
                                const Tensor& class_weights, const Place& here,
                                const std::optional<Place>& next, double rate) {
  while (true) {
    const FastWeightProgrammer& used = limited_ ? *limited_ : model;
    try {
      if (!ready_ || ready_->place.samples != here.samples || ready_->place.seed != here.seed)
        ready_ = make_ready(used, here);
      return try_step(used, config, class_weights, next, rate);
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
    }
    // half of what it tried, in shorter blocks of time
    recorded_.reset();
    ready_.reset();
    release_device_memory();
    SolverConfig solver = used.config().solver;
    const int64_t free = device_memory(model.device()).free;
    solver.memory_limit = (solver.memory_limit > 0 ? std::min(solver.memory_limit, free) : free) / 2;
    if (solver.memory_limit < kLeast)
      throw std::runtime_error(message("[train] the GPU has too little memory for a batch of ",
                                       here.samples.size(), " series, ", free >> 20,
                                       " MB; take a smaller --batch-size"));
    FastWeightProgrammer limited = model;
    limited.set_solver(solver);
    limited_ = limited;
  }
}

Predictions DeviceTraining::validate(const FastWeightProgrammer& model) {
  const FastWeightProgrammer& used = limited_ ? *limited_ : model;
  if (validation_kept_ == Kept::Unknown) {
    const bool fits = fits_device(used, data_, data_.validation, kValidationShare);
    if (fits) validation_ = prepare_set(used, data_.validation, data_.preparation, data_.task, {});
    validation_kept_ = fits ? Kept::Yes : Kept::No;
  }
  return validation_kept_ == Kept::Yes ? predict(used, validation_)
                                       : predict(used, data_.validation, data_.preparation, data_.task);
}

}  // namespace fastweights
