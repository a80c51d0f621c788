#include "train/recorded_step.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace fastweights {

BatchRows total_rows(const PreparedBatch& batch) {
  BatchRows sum;
  for (const BatchRows& rows : batch.contents().sample_rows()) {
    sum.steps += rows.steps;
    sum.states += rows.states;
    sum.outputs += rows.outputs;
  }
  return sum;
}

namespace {

// with capacity for `rows` outputs, all unknown
Tensor with_capacity(const Tensor& truth, double unknown, int64_t rows, const at::Device& device) {
  if (!truth.defined()) return {};
  std::vector<int64_t> shape = truth.sizes().vec();
  shape[0] = rows;
  return at::full(shape, unknown, truth.options().device(device));
}

void assign(const Tensor& from, const Tensor& to, double unknown) {
  if (!from.defined()) return;
  const int64_t rows = from.size(0), rest = to.size(0) - rows;
  copy_to_device(from, to.narrow(0, 0, rows));
  if (rest > 0) to.narrow(0, rows, rest).fill_(unknown);
}

bool fits(const Tensor& from, const Tensor& to) {
  return from.defined() == to.defined() && (!from.defined() || from.size(0) <= to.size(0));
}

constexpr double kNoClass = -1, kNoTarget = std::numeric_limits<double>::quiet_NaN();

}  // namespace

RecordedStep::RecordedStep(const StepWork& work, const PreparedBatch& first, const Batch& truth,
                           const BatchRows& rows)
    : work_(work), batch_(first.contents().with_capacity(rows)), graph_(work.network->device()) {
  const at::Device device = work.network->device();
  truth_.classes = with_capacity(truth.classes, kNoClass, rows.outputs, device);
  truth_.targets = with_capacity(truth.targets, kNoTarget, rows.outputs, device);
  assign(truth.classes, truth_.classes, kNoClass);
  assign(truth.targets, truth_.targets, kNoTarget);
  seed_ = at::zeros({1}, at::TensorOptions(at::kLong).device(device));
  const PreparedBatch input(batch_);
  // the seed is all in the device's scalar
  PassOptions options;
  options.mode = Mode::Train;
  options.device_seed = seed_;
  const auto gradient = [&] { result_ = compute_gradient(work_, input, truth_, options); };
  graph_.record(gradient, [&] {
    gradient();
    const at::NoGradGuard no_grad;
    work_.optimiser->apply(result_.gradient, work_.clip);
  });
  result_.replayed = true;
}

bool RecordedStep::takes(const PreparedBatch& input, const Batch& truth) const {
  return work_.network->can_record(input) && batch_->can_assign(input.contents()) &&
         fits(truth.classes, truth_.classes) && fits(truth.targets, truth_.targets);
}

const ComputedStep& RecordedStep::run(const PreparedBatch& input, const Batch& truth, uint64_t seed) {
  const at::NoGradGuard no_grad;
  batch_->assign(input.contents());
  fastweights::assign(truth.classes, truth_.classes, kNoClass);
  fastweights::assign(truth.targets, truth_.targets, kNoTarget);
  copy_to_device(at::full({1}, static_cast<int64_t>(seed), at::kLong), seed_);
  graph_.replay();
  return result_;
}

namespace {

// of the memory that is free, for a recorded step, which keeps its own
constexpr double kRecordShare = 0.4;
// batches in a row that cannot be recorded, or that a graph cannot take, after which it is given up
constexpr int kRefusals = 16;

enum class Padding { Free, Costly };

// capacity for batches of `samples` samples: enough for the longest ones, or, where padding costs time
// (products compute unused rows, too), somewhat more than the mean
int64_t capacity(std::vector<int64_t> rows, int64_t samples, Padding padding) {
  constexpr double kMargin = 1.3;
  std::sort(rows.rbegin(), rows.rend());
  const int64_t most = std::accumulate(rows.begin(), rows.begin() + samples, int64_t{0});
  if (padding == Padding::Free) return most;
  const double sum = std::accumulate(rows.begin(), rows.end(), 0.0);
  const double mean = sum / static_cast<double>(rows.size()) * static_cast<double>(samples);
  return std::min(most, static_cast<int64_t>(kMargin * mean) + 1);
}

BatchRows rows_to_record(const Network& network, const std::vector<BatchRows>& each, int64_t samples) {
  std::vector<int64_t> steps, states, outputs;
  for (const BatchRows& rows : each) {
    steps.push_back(rows.steps);
    states.push_back(rows.states);
    outputs.push_back(rows.outputs);
  }
  return {.steps = capacity(steps, samples, network.padding_is_costly() ? Padding::Costly : Padding::Free),
          .states = capacity(states, samples, Padding::Costly),
          .outputs = capacity(outputs, samples, Padding::Costly)};
}

}  // namespace

ReplayedSteps::ReplayedSteps(const StepWork& work, const PreparedBatch& all)
    : work_(work), plain_(work), all_(all) {}

std::string ReplayedSteps::record(Slot& slot, const ReadyBatch& batch) {
  const Network& network = *work_.network;
  const BatchRows rows = rows_to_record(network, all_.contents().sample_rows(), batch.input.samples()),
                  used = total_rows(batch.input);
  // the capacity does not depend on which batch comes first, and a later one will fit
  if (used.steps > rows.steps || used.states > rows.states || used.outputs > rows.outputs) return "";
  // what is recorded keeps its memory, and steps of other shapes need some, too
  const std::optional<MemoryPlan> plan = network.plan(batch.input);
  const double needed = static_cast<double>(rows.steps) /
                        static_cast<double>(std::max<int64_t>(used.steps, 1)) *
                        static_cast<double>(plan ? plan->bytes : 0);
  const double free = static_cast<double>(device_memory(network.device()).free);
  const bool too_large = work_.memory_limit > 0 && needed > static_cast<double>(work_.memory_limit);
  if (too_large || needed >= kRecordShare * free)
    return message("it would keep ", static_cast<int64_t>(needed) >> 20, " MB of ",
                   static_cast<int64_t>(free) >> 20, " MB that are free");
  try {
    slot.recorded = std::make_unique<RecordedStep>(work_, batch.input, batch.truth, rows);
  } catch (const std::exception& error) {
    release_device_memory();
    // without the stack that LibTorch appends
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

ReplayedSteps::Attempt ReplayedSteps::attempt(const ReadyBatch& batch) {
  Slot& slot = slots_[batch.input.samples()];
  if (slot.given_up) return {};
  std::string reason;
  if (!slot.recorded) {
    if (work_.network->can_record(batch.input)) {
      reason = record(slot, batch);
      if (reason.empty()) return {slot.recorded.get(), ""};
    } else if (++slot.refused < kRefusals) {
      // a later batch may do
      return {};
    } else {
      reason = "this model cannot record a pass on such batches";
    }
  } else if (slot.recorded->takes(batch.input, batch.truth)) {
    slot.refused = 0;
    return {slot.recorded.get(), ""};
  } else if (++slot.refused < kRefusals) {
    return {};
  } else {
    reason = message(kRefusals, " batches in a row had another shape");
  }
  slot.recorded.reset();
  slot.given_up = true;
  // what is true of batches of one size is mostly true of those of the other
  if (std::exchange(noted_, true)) return {};
  return {nullptr, message("training steps on ", batch.input.samples(),
                           " series are not replayed as a CUDA graph: ", reason)};
}

ComputedStep ReplayedSteps::run(const ReadyBatch& batch, double learning_rate) {
  const Attempt attempted = attempt(batch);
  if (attempted.graph) {
    work_.optimiser->begin_step(learning_rate);
    return attempted.graph->run(batch.input, batch.truth, batch.seed);
  }
  ComputedStep result = plain_.run(batch, learning_rate);
  result.note = attempted.note;
  return result;
}

}  // namespace fastweights
