#include "fastweights/model.h"

#include "fastweights/error.h"
#include "model/config_checks.h"
#include "model/config_names.h"
#include "model/programmer.h"
#include "systems/system.h"
#include "tensor/autograd.h"

namespace fastweights {

struct Model::Parts {
  ModelConfig config;
  std::optional<FastWeightProgrammer> programmer = {};  // or ...
  std::shared_ptr<const ComparedSystem> system = {};
};

namespace {

void check_cpu(const ModelConfig& config, const at::Device& device) {
  FW_CHECK(device.is_cpu(), "[model] system ", name_of(config.system),
           " is computed on the CPU; device cuda is for fast weight programmers");
}

}  // namespace

Model::Model(const ModelConfig& config, const ModelOptions& options)
    : parts_(std::make_shared<Parts>(Parts{config})) {
  if (config.system == System::FastWeights) {
    parts_->programmer = FastWeightProgrammer(config, options);
    return;
  }
  check_config(config, options.own_rules);
  check_cpu(config, options.device);
  parts_->system = make_system(config, options);
}

const FastWeightProgrammer* Model::programmer() const {
  return parts_->programmer ? &*parts_->programmer : nullptr;
}

ModelOutput Model::forward(const ModelInput& input, const ForwardOptions& options) const {
  if (const FastWeightProgrammer* model = programmer()) return model->forward(input, options);
  return parts_->system->forward(parts_->config, input, options);
}

const ModelConfig& Model::config() const { return parts_->config; }

bool Model::has_solver() const { return reads_key(config().system, "solver"); }

void Model::set_solver(const SolverConfig& solver) {
  // a copy: other models that share the parameters keep their solver
  Parts changed = *parts_;
  changed.config.solver = solver;
  if (changed.programmer) {
    changed.programmer->set_solver(solver);
  } else {
    check_config(changed.config);
  }
  parts_ = std::make_shared<Parts>(std::move(changed));
}

const NamedParameters& Model::parameters() const& {
  return programmer() ? programmer()->parameters() : parts_->system->parameters();
}

NamedParameters Model::parameters() && { return static_cast<const Model&>(*this).parameters(); }

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

at::Device Model::device() const { return programmer() ? programmer()->device() : at::kCPU; }

void Model::check_device() const {
  if (programmer()) programmer()->check_device();
}

Model Model::to(const at::Device& device) const {
  if (programmer()) {
    Model copy = *this;
    copy.parts_ = std::make_shared<Parts>(Parts{config(), programmer()->to(device)});
    return copy;
  }
  check_cpu(config(), device);
  Model copy(config(), {.type = parameters()[0].second.scalar_type()});
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters().size(); ++i) copy.parameters()[i].second.copy_(parameters()[i].second);
  return copy;
}

std::optional<MemoryPlan> Model::plan(const ModelInput& input) const {
  return programmer() ? programmer()->plan(input) : std::nullopt;
}

}  // namespace fastweights
