#include "architectures/model_file.h"

#include "architectures/parameter_names.h"
#include "base/error.h"

namespace fastweights {
namespace {

constexpr const char* kFormat = "fastweights model 1";

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw std::runtime_error("[load_model] " + path + ": " + what);
}

// a model may have no parameters
at::ScalarType parameter_type(const NamedTensors& file) {
  return file.tensors.empty() ? at::kFloat : file.tensors.begin()->second.scalar_type();
}

Model model_of(const std::string& path, const NamedTensors& file, const std::vector<Rule>& custom_rules) {
  const auto format = file.metadata.find("format");
  if (format == file.metadata.end() || format->second != kFormat) {
    refuse(path, std::string("this is not a model file; the metadata must have format '") + kFormat + "'");
  }
  const auto config = file.metadata.find("config");
  if (config == file.metadata.end()) refuse(path, "there is no configuration in the metadata");
  const at::ScalarType type = parameter_type(file);
  try {
    return Model(config_from_json(config->second), {.type = type, .custom_rules = custom_rules});
  } catch (const std::exception& error) {
    refuse(path, error.what());
  }
}

}  // namespace

NamedTensors model_file(const Model& model) {
  NamedTensors file;
  for (const auto& [name, tensor] : model.parameters()) file.tensors[name] = tensor.detach();
  file.metadata = {{"format", kFormat}, {"config", to_json(model.config())}};
  return file;
}

void save_model(const std::string& path, const Model& model) { save_safetensors(path, model_file(model)); }

Model load_model(const std::string& path, const std::vector<Rule>& custom_rules) {
  const NamedTensors file = with_present_names(load_safetensors(path));
  const Model model = model_of(path, file, custom_rules);
  if (file.tensors.empty() && !model.parameters().empty()) refuse(path, "the file contains no tensors");
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : model.parameters()) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end()) refuse(path, "parameter " + name + " is missing");
    if (found->second.sizes() != tensor.sizes() || found->second.scalar_type() != tensor.scalar_type()) {
      refuse(path, message("parameter ", name, " must be ", tensor.scalar_type(), " ", tensor.sizes(),
                           ", it is ", found->second.scalar_type(), " ", found->second.sizes()));
    }
    tensor.copy_(found->second);
  }
  if (file.tensors.size() != model.parameters().size()) {
    for (const auto& [name, tensor] : file.tensors) {
      bool known = false;
      for (const auto& [ours, parameter] : model.parameters()) known = known || ours == name;
      if (!known) refuse(path, "unexpected tensor " + name);
    }
  }
  return model;
}

}  // namespace fastweights
