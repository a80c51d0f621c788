#include "train/checkpoint.h"

#include <stdexcept>

#include "base/error.h"

namespace fastweights {
namespace {

const Tensor& saved(const CheckpointTensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw std::runtime_error("the checkpoint has no '" + name + "'");
  return found->second;
}

}  // namespace

Tensor saved_list(const CheckpointTensors& tensors, const std::string& name, size_t count,
                  at::ScalarType type) {
  const Tensor& list = saved(tensors, name);
  if (list.dim() != 1 || list.size(0) != static_cast<int64_t>(count) || list.scalar_type() != type)
    throw std::runtime_error(message("the checkpoint's ", name, " must be ", count, " of ", type, ", got ",
                                     list.sizes(), " of ", list.scalar_type()));
  return list.contiguous();
}

Tensor saved_like(const CheckpointTensors& tensors, const std::string& name, const Tensor& like) {
  const Tensor& tensor = saved(tensors, name);
  if (tensor.sizes() != like.sizes())
    throw std::runtime_error(
        message("the checkpoint's ", name, " is ", tensor.sizes(), ", the model's ", like.sizes()));
  return tensor.clone();
}

}  // namespace fastweights
