#include "tensor/autograd.h"

#include <ATen/EmptyTensor.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <array>

#include "fastweights/error.h"
#include "kernels/weighted_sum.h"

namespace fastweights {
namespace {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// where the gradient of a tensor goes; nowhere if it needs none
torch::autograd::Edge edge_of(const Tensor& tensor) {
  return tensor.defined() ? torch::autograd::impl::gradient_edge(tensor) : torch::autograd::Edge();
}

struct CustomNode : Node {
  std::string label;
  std::vector<SavedVariable> saved;
  Backward backward;

  variable_list apply(variable_list&& grads) override {
    // the engine records here only if the caller asked for a graph of the gradient
    FW_CHECK(!at::GradMode::is_enabled(), "[", label,
             "] gradients of gradients are not available; compute the gradient without create_graph");
    FW_CHECK(backward, "[", label, "] a second backward pass needs retain_graph in the first one");
    const bool nothing =
        std::none_of(grads.begin(), grads.end(), [](const Tensor& grad) { return grad.defined(); });
    if (nothing) return variable_list(num_outputs());
    std::vector<Tensor> tensors;
    tensors.reserve(saved.size());
    for (const SavedVariable& variable : saved) tensors.push_back(variable.unpack());
    return backward(grads, tensors);
  }
  void release_variables() override {
    saved.clear();
    backward = nullptr;
  }
  std::string name() const override { return "fastweights::" + label; }
};

// plain memory that the kernels can walk over
bool plain(const Tensor& t, at::ScalarType type, at::IntArrayRef sizes) {
  return t.scalar_type() == type && t.device().is_cpu() && t.is_contiguous() && t.sizes() == sizes;
}

template <typename T>
Tensor weighted_sum_plain(const Tensor& base, const Tensor* terms, const double* weights, size_t count) {
  std::array<const T*, kernels::kMaxTerms> pointers;
  std::array<T, kernels::kMaxTerms> factors;
  int64_t used = 0;
  for (size_t j = 0; j < count; ++j) {
    if (weights[j] == 0) continue;
    pointers[used] = terms[j].template data_ptr<T>();
    factors[used++] = static_cast<T>(weights[j]);
  }
  // past the dispatcher, which costs more than the sum of a small state
  Tensor out = at::detail::empty_cpu(terms[0].sizes(), terms[0].scalar_type());
  kernels::weighted_sum(base.defined() ? base.template data_ptr<T>() : nullptr, pointers.data(),
                        factors.data(), used, out.numel(), out.template data_ptr<T>());
  return out;
}

Tensor weighted_sum_value(const Tensor& base, const Tensor* terms, const double* weights, size_t count) {
  const at::ScalarType type = terms[0].scalar_type();
  const at::IntArrayRef sizes = terms[0].sizes();
  bool fast = (type == at::kDouble || type == at::kFloat) && count <= kernels::kMaxTerms;
  fast = fast && (!base.defined() || plain(base, type, sizes));
  for (size_t j = 0; j < count && fast; ++j) fast = plain(terms[j], type, sizes);
  if (fast) {
    return type == at::kDouble ? weighted_sum_plain<double>(base, terms, weights, count)
                               : weighted_sum_plain<float>(base, terms, weights, count);
  }
  Tensor sum = base.defined() ? base.clone() : base;
  for (size_t j = 0; j < count; ++j) {
    if (weights[j] == 0) continue;
    sum = sum.defined() ? at::add(sum, terms[j], weights[j]) : at::mul(terms[j], weights[j]);
  }
  return sum.defined() ? sum : at::zeros_like(terms[0]);
}

// no saved tensors and no std::function: this node stands behind every stage of every recorded step
struct WeightedSumNode : Node {
  std::vector<double> weights;

  variable_list apply(variable_list&& grads) override {
    variable_list result(weights.size() + 1);
    const Tensor& grad = grads[0];
    if (!grad.defined()) return result;
    if (task_should_compute_output(0)) result[0] = grad;
    const bool again = at::GradMode::is_enabled() && grad.requires_grad();
    for (size_t j = 0; j < weights.size(); ++j) {
      if (weights[j] == 0 || !task_should_compute_output(j + 1)) continue;
      result[j + 1] = weights[j] == 1 ? grad
                      : again         ? at::mul(grad, weights[j])
                                      : weighted_sum_value({}, &grad, &weights[j], 1);
    }
    return result;
  }
  std::string name() const override { return "fastweights::weighted_sum"; }
};

}  // namespace

bool needs_gradient(const std::vector<Tensor>& inputs) {
  if (!at::GradMode::is_enabled()) return false;
  for (const Tensor& input : inputs) {
    if (input.defined() && input.requires_grad()) return true;
  }
  return false;
}

std::vector<Tensor> differentiable(const char* name, std::vector<Tensor> outputs,
                                   const std::vector<Tensor>& inputs, const std::vector<Tensor>& saved,
                                   Backward backward) {
  if (!needs_gradient(inputs)) return outputs;
  std::shared_ptr<CustomNode> node(new CustomNode(), torch::autograd::deleteNode);
  node->label = name;
  for (const Tensor& tensor : saved) node->saved.emplace_back(tensor, /*is_output=*/false);
  node->backward = std::move(backward);
  torch::autograd::edge_list edges;
  for (const Tensor& input : inputs) edges.push_back(edge_of(input));
  node->set_next_edges(std::move(edges));
  for (Tensor& output : outputs) torch::autograd::set_history(output, node);
  return outputs;
}

Tensor weighted_sum(const Tensor& base, const std::vector<Tensor>& terms,
                    const std::vector<double>& weights) {
  bool record = base.defined() && base.requires_grad();
  for (const Tensor& term : terms) record = record || term.requires_grad();
  record = record && at::GradMode::is_enabled();
  if (!record) return weighted_sum_value(base, terms.data(), weights.data(), terms.size());
  Tensor out;
  {
    const at::NoGradGuard no_grad;
    out = weighted_sum_value(base, terms.data(), weights.data(), terms.size());
  }
  std::shared_ptr<WeightedSumNode> node(new WeightedSumNode(), torch::autograd::deleteNode);
  node->weights = weights;
  torch::autograd::edge_list edges;
  edges.reserve(terms.size() + 1);
  edges.push_back(edge_of(base));
  for (const Tensor& term : terms) edges.push_back(edge_of(term));
  node->set_next_edges(std::move(edges));
  torch::autograd::set_history(out, node);
  return out;
}

std::vector<Tensor> vector_jacobian(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                                    const std::vector<Tensor>& grad_outputs) {
  variable_list used_outputs, used_grads, used_inputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad() || !grad_outputs[i].defined()) continue;
    used_outputs.push_back(outputs[i]);
    used_grads.push_back(grad_outputs[i]);
  }
  for (const Tensor& input : inputs) {
    if (input.requires_grad()) used_inputs.push_back(input);
  }
  variable_list grads;
  if (!used_outputs.empty() && !used_inputs.empty()) {
    grads = torch::autograd::grad(used_outputs, used_inputs, used_grads, /*retain_graph=*/false,
                                  /*create_graph=*/false, /*allow_unused=*/true);
  } else {
    grads.resize(used_inputs.size());
  }
  std::vector<Tensor> result;
  size_t next = 0;
  for (const Tensor& input : inputs) {
    Tensor grad = input.requires_grad() ? grads[next++] : Tensor();
    result.push_back(grad.defined() ? grad : at::zeros_like(input));
  }
  return result;
}

}  // namespace fastweights
