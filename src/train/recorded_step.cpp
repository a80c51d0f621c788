#include "train/recorded_step.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace fastweights {

RecordedStep::RecordedStep(const StepWork& work, const PreparedBatch& first, const Batch& truth, int64_t rows)
    : work_(work), batch_(first.contents().with_capacity(rows)), graph_(work.network->device()) {
  const at::Device device = work.network->device();
  truth_.classes = on_device(truth.classes, device);
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

std::string RecordedStep::refusal(const Network& network, const PreparedBatch& input, const Batch& truth) {
  if (!truth.classes.defined()) return "the task has no classes";
  if (truth.classes.lt(0).any().item<bool>()) return "not all classes are known";
  return network.can_record(input) ? "" : "this model cannot record a pass on such a batch";
}

bool RecordedStep::takes(const PreparedBatch& input, const Batch& truth) const {
  if (!refusal(*work_.network, input, truth).empty() || truth.classes.sizes() != truth_.classes.sizes())
    return false;
  if (!batch_->can_assign(input.contents())) return false;
  // reads of layers below take every row for a used one
  return !work_.network->needs_exact_rows() || input.contents().can_assign(*batch_);
}

const ComputedStep& RecordedStep::run(const PreparedBatch& input, const Batch& truth, uint64_t seed) {
  const at::NoGradGuard no_grad;
  batch_->assign(input.contents());
  copy_to_device(truth.classes, truth_.classes);
  copy_to_device(at::full({1}, static_cast<int64_t>(seed), at::kLong), seed_);
  graph_.replay();
  return result_;
}

namespace {

// of the memory that is free, for a recorded step, which keeps its own
constexpr double kRecordShare = 0.4;
// batches in a row that cannot be recorded, or that a graph cannot take, after which it is given up
constexpr int kRefusals = 16;

int64_t total(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// rows of a recorded batch of `samples` samples: enough for the longest ones, or, where padding costs time
// (products compute unused rows, too), somewhat more than the mean
int64_t rows_to_record(const Network& network, std::vector<int64_t> steps, int64_t samples) {
  constexpr double kMargin = 1.3;
  std::sort(steps.rbegin(), steps.rend());
  const int64_t most = std::accumulate(steps.begin(), steps.begin() + samples, int64_t{0});
  if (!network.padding_is_costly()) return most;
  const double mean =
      static_cast<double>(total(steps)) / static_cast<double>(steps.size()) * static_cast<double>(samples);
  return std::min(most, static_cast<int64_t>(kMargin * mean) + 1);
}

}  // namespace

ReplayedSteps::ReplayedSteps(const StepWork& work, const PreparedBatch& all, int64_t batch_size)
    : work_(work), plain_(work), all_(all), batch_size_(batch_size) {}

std::string ReplayedSteps::record(const ReadyBatch& batch) {
  const Network& network = *work_.network;
  const int64_t batch_rows = total(batch.input.contents().step_counts());
  const int64_t rows = network.needs_exact_rows()
                           ? batch_rows
                           : rows_to_record(network, all_.contents().step_counts(), batch_size_);
  // the capacity does not depend on which batch comes first, and a later one will fit
  if (batch_rows > rows) return "";
  // what is recorded keeps its memory, and steps of other shapes need some, too
  const std::optional<MemoryPlan> plan = network.plan(batch.input);
  const double needed = static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(batch_rows, 1)) *
                        static_cast<double>(plan ? plan->bytes : 0);
  const double free = static_cast<double>(device_memory(network.device()).free);
  const bool too_large = work_.memory_limit > 0 && needed > static_cast<double>(work_.memory_limit);
  if (too_large || needed >= kRecordShare * free)
    return message("it would keep ", static_cast<int64_t>(needed) >> 20, " MB of ",
                   static_cast<int64_t>(free) >> 20, " MB that are free");
  try {
    recorded_ = std::make_unique<RecordedStep>(work_, batch.input, batch.truth, rows);
  } catch (const std::exception& error) {
    release_device_memory();
    // without the stack that LibTorch appends
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

ReplayedSteps::Attempt ReplayedSteps::attempt(const ReadyBatch& batch) {
  // not for the rest of an epoch: whether it comes first must not change what happens to the others
  const bool whole = static_cast<int64_t>(batch.samples.size()) == batch_size_;
  if (!whole || given_up_) return {};
  std::string reason;
  if (!recorded_) {
    reason = RecordedStep::refusal(*work_.network, batch.input, batch.truth);
    // a later batch may do
    if (!reason.empty() && ++refused_ < kRefusals) return {};
    if (reason.empty()) {
      refused_ = 0;
      reason = record(batch);
      if (reason.empty()) return {recorded_ != nullptr, ""};
    }
  } else if (recorded_->takes(batch.input, batch.truth)) {
    refused_ = 0;
    return {true, ""};
  } else if (++refused_ < kRefusals) {
    return {};
  } else {
    // such as batches with several outputs of each series
    reason = message(kRefusals, " batches in a row had another shape");
  }
  recorded_.reset();
  given_up_ = true;
  return {false, "training steps are not replayed as a CUDA graph: " + reason};
}

ComputedStep ReplayedSteps::run(const ReadyBatch& batch, double learning_rate) {
  const Attempt graph = attempt(batch);
  if (graph.ready) {
    work_.optimiser->begin_step(learning_rate);
    return recorded_->run(batch.input, batch.truth, batch.seed);
  }
  ComputedStep result = plain_.run(batch, learning_rate);
  result.note = graph.note;
  return result;
}

}  // namespace fastweights
