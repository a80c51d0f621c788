#include "scan_runs.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

#include "model/engine.h"
#include "tensor/autograd.h"

namespace fastweights::bench {
namespace {

std::vector<Tensor> tensors_of(const NamedParameters& parameters) {
  std::vector<Tensor> result;
  for (const auto& [name, tensor] : parameters) result.push_back(tensor);
  return result;
}

double status_mb(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::stod(line.substr(key.size() + 1)) / 1024;
  }
  throw std::runtime_error("/proc/self/status does not say " + key);
}

}  // namespace

Tensor loss_of(const Tensor& outputs, const Tensor& labels) {
  if (outputs.size(1) > 1) return at::cross_entropy_loss(outputs, labels);
  return at::binary_cross_entropy_with_logits(outputs.squeeze(1), labels.to(outputs.scalar_type()));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

ScanRun::ScanRun(Way way, const ProgrammerConfig& config, ScanBatch batch)
    : way_(way),
      batch_(std::move(batch)),
      model_(config),
      parts_(std::make_shared<const ModelParts>(make_parts(config, {}))),
      parameters_(way == Way::Model ? model_.parameter_tensors() : tensors_of(parts_->parameters)),
      adam_(parameters_) {}

// what a model does, with the recurrence as a composition
Tensor ScanRun::definition_outputs(const PassOptions& options) {
  const auto batch = prepare_steps(parts_, {.series = batch_.series}, Reuse::Once);
  const Masks masks = make_masks(*parts_, options, batch->samples(), batch->samples());
  const Tensor w0 = initial_weights(*parts_, batch->begin, batch->first, {}, masks);
  const EngineRun run = run_engine(parts_, *batch, masks, w0, Backend::Reference);
  backend_ = run.backend;
  plan_ = run.plan;
  return readout(*parts_, batch->query, run.w, batch->sample_index, masks);
}

Tensor ScanRun::outputs(const ForwardOptions& options) {
  if (way_ == Way::Definition) return definition_outputs(PassOptions{options});
  const ModelOutput out = model_.forward({.series = batch_.series}, options);
  if (!out.status) throw std::runtime_error(out.status.message());
  backend_ = out.backend;
  plan_ = out.plan;
  return out.outputs;
}

void ScanRun::step() {
  const at::AutoGradMode on(true);
  const Tensor loss = loss_of(outputs({.mode = Mode::Train}), batch_.labels);
  adam_.step(gradients(loss, parameters_));
}

Tensor ScanRun::forward() {
  const at::NoGradGuard no_grad;
  return outputs({});
}

void keep_freed_memory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
}

void return_freed_memory() {
  constexpr int kLarge = 128 * 1024;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, kLarge);
}

double peak_mb_of(const std::function<void()>& work) {
  // what was freed before belongs to nobody
  malloc_trim(0);
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;
  const bool known = static_cast<bool>(reset);
  const double before = status_mb("VmRSS");
  work();
  return known ? status_mb("VmHWM") - before : std::nan("");
}

}  // namespace fastweights::bench
