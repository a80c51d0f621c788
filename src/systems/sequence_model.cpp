#include "fastweights/sequence_model.h"

#include "fastweights/error.h"
#include "model/config_checks.h"
#include "model/config_names.h"
#include "systems/system.h"
#include "tensor/autograd.h"

namespace fastweights {

SequenceModel::SequenceModel(FastWeightProgrammer model) : model_(std::move(model)) {}

namespace {

void check_cpu(const ModelConfig& config, const at::Device& device) {
  FW_CHECK(device.is_cpu(), "[model] system ", name_of(config.system),
           " is computed on the CPU; device cuda is for fast weight programmers");
}

}  // namespace

SequenceModel::SequenceModel(const ModelConfig& config, const ModelOptions& options)
    : model_(Compared{config, nullptr}) {
  if (config.system == System::FastWeights) {
    model_ = FastWeightProgrammer(config, options);
    return;
  }
  check_config(config, options.own_rules);
  check_cpu(config, options.device);
  std::get<Compared>(model_).system = make_system(config, options);
}

ModelOutput SequenceModel::forward(const ModelInput& input, const ForwardOptions& options) const {
  if (const FastWeightProgrammer* model = programmer()) return model->forward(input, options);
  const Compared& compared = std::get<Compared>(model_);
  return compared.system->forward(compared.config, input, options);
}

const ModelConfig& SequenceModel::config() const {
  return programmer() ? programmer()->config() : std::get<Compared>(model_).config;
}

bool SequenceModel::has_solver() const { return reads_key(config().system, "solver"); }

void SequenceModel::set_solver(const SolverConfig& solver) {
  if (auto* model = std::get_if<FastWeightProgrammer>(&model_)) return model->set_solver(solver);
  Compared& compared = std::get<Compared>(model_);
  ModelConfig changed = compared.config;
  changed.solver = solver;
  check_config(changed);
  compared.config = changed;
}

const NamedParameters& SequenceModel::parameters() const& {
  return programmer() ? programmer()->parameters() : std::get<Compared>(model_).system->parameters();
}

NamedParameters SequenceModel::parameters() && {
  return static_cast<const SequenceModel&>(*this).parameters();
}

std::vector<Tensor> SequenceModel::parameter_tensors() const {
  std::vector<Tensor> result;
  for (const auto& [name, tensor] : parameters()) result.push_back(tensor);
  return result;
}

int64_t SequenceModel::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : parameters()) count += tensor.numel();
  return count;
}

at::Device SequenceModel::device() const { return programmer() ? programmer()->device() : at::kCPU; }

void SequenceModel::check_device() const {
  if (programmer()) programmer()->check_device();
}

SequenceModel SequenceModel::to(const at::Device& device) const {
  if (programmer()) return programmer()->to(device);
  check_cpu(config(), device);
  SequenceModel copy(config(), {.type = parameters()[0].second.scalar_type()});
  const RecordGradients off(false);
  for (size_t i = 0; i < parameters().size(); ++i) copy.parameters()[i].second.copy_(parameters()[i].second);
  return copy;
}

std::optional<MemoryPlan> SequenceModel::plan(const ModelInput& input) const {
  return programmer() ? programmer()->plan(input) : std::nullopt;
}

}  // namespace fastweights
