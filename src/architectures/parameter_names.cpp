#include "architectures/parameter_names.h"

namespace fastweights {

NamedTensors with_present_names(NamedTensors file) {
  const std::string before = ".programme.", present = ".program.";
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, tensor] : file.tensors) {
    const size_t at = name.find(before);
    tensors[at == std::string::npos ? name : std::string(name).replace(at, before.size(), present)] = tensor;
  }
  file.tensors = std::move(tensors);
  return file;
}

}  // namespace fastweights
