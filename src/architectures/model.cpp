#include "fastweights/model.h"

#include "architectures/baseline.h"
#include "base/error.h"
#include "model/programmer_config.h"
#include "tensor/device.h"

namespace fastweights {

struct Model::Parts {
  ModelConfig config;
  std::shared_ptr<const Network> network;
};

namespace {

// a model is where its parameters are
void check_device_option(const ModelConfig& config, const at::Device& device) {
  if (device.is_cpu()) return;
  FW_CHECK(device.is_cuda(), "[model] a model is on the CPU or on a CUDA device, not on ", device);
  FW_CHECK(config.architecture.type().devices == Devices::CpuAndCuda, "[model] architecture ",
           config.architecture.name(), " runs on the CPU only");
  FW_CHECK(!device.has_index() || device.index() == 0, "[model] only the first CUDA device can be used, not ",
           device);
  const std::string refusal = device_refusal();
  if (!refusal.empty()) throw std::runtime_error("[model] device cuda cannot be used: " + refusal);
}

}  // namespace

std::shared_ptr<const Network> make_network(const ModelConfig& config, const ModelOptions& options) {
  check_config(config, options.custom_rules);
  check_device_option(config, options.device);
  return config.architecture.type().make(config, options);
}

namespace {

// automatic choices become those that are used, so that files name them
ModelConfig with_choices(ModelConfig config, const std::vector<Rule>& custom_rules) {
  SolverConfig* solver = solver_of(config);
  if (!solver) return config;
  if (config.architecture.get_if<FastWeights>() || config.architecture.get_if<TensorMap>()) {
    *solver = chosen_solver(config, custom_rules);
    return config;
  }
  solver->method = method_of(*solver);
  auto* between = std::get_if<ObservationSteps>(&solver->steps);
  if (between && between->parts == 0) between->parts = 1;
  return config;
}

}  // namespace

Model::Model(const ModelConfig& config, const ModelOptions& options) {
  check_config(config, options.custom_rules);
  const ModelConfig chosen = with_choices(config, options.custom_rules);
  parts_ = std::make_shared<Parts>(Parts{chosen, make_network(chosen, options)});
}

const std::shared_ptr<const Network>& Model::network() const { return parts_->network; }

PreparedBatch Model::prepare(const ModelInput& input, Reuse reuse) const {
  return network()->prepare(input, reuse);
}

ModelOutput Model::forward(const PreparedBatch& batch, const ForwardOptions& options) const {
  ModelOutput output = network()->forward(batch, PassOptions{options});
  if (output.status && device().is_cpu()) output.status = finite_status(output);
  return output;
}

ModelOutput Model::forward(const ModelInput& input, const ForwardOptions& options) const {
  ModelOutput output = forward(prepare(input, Reuse::Once), options);
  if (output.status && !device().is_cpu()) output.status = finite_status(output);
  return output;
}

const ModelConfig& Model::config() const { return parts_->config; }

bool Model::has_solver() const { return solver_of(config()) != nullptr; }

void Model::set_solver(const SolverConfig& solver) {
  FW_CHECK(has_solver(), "[model] architecture ", config().architecture.name(), " has no solver");
  // a copy: other models that share the parameters keep their solver
  ModelConfig changed_config = config();
  *solver_of(changed_config) = solver;
  changed_config = with_choices(changed_config, {});
  Parts changed = {changed_config, network()->with_solver(*solver_of(changed_config))};
  parts_ = std::make_shared<Parts>(std::move(changed));
}

const NamedParameters& Model::parameters() const& { return network()->parameters(); }

NamedParameters Model::parameters() && { return network()->parameters(); }

std::vector<Tensor> Model::parameter_tensors() const {
  std::vector<Tensor> result;
  for (const auto& [name, tensor] : parameters()) result.push_back(tensor);
  return result;
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : parameters()) count += tensor.numel();
  return count;
}

at::Device Model::device() const { return network()->device(); }

void Model::check_device() const { network()->check_device(); }

Model Model::to(const at::Device& device) const {
  Model copy = *this;
  copy.parts_ = std::make_shared<Parts>(Parts{config(), network()->to(device)});
  return copy;
}

std::optional<MemoryPlan> Model::plan(const ModelInput& input) const {
  return network()->plan(network()->prepare(input, Reuse::Once));
}

}  // namespace fastweights
