#include "tensor/autograd.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include "fastweights/error.h"
#include "kernels/weighted_sum.h"

namespace fastweights {
namespace {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

void connect(const std::shared_ptr<Node>& node, const std::vector<Tensor>& inputs) {
  torch::autograd::edge_list edges;
  edges.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    edges.push_back(input.defined() ? torch::autograd::impl::gradient_edge(input) : torch::autograd::Edge());
  }
  node->set_next_edges(std::move(edges));
}

struct CustomNode : Node {
  std::string label;
  std::vector<SavedVariable> saved;
  Backward backward;

  variable_list apply(variable_list&& grads) override {
    // the engine records here only if the caller asked for a graph of the gradient
    FW_CHECK(!at::GradMode::is_enabled(), "[", label,
             "] gradients of gradients are not available; compute the gradient without create_graph");
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

bool fast_path(const Tensor& like, const Tensor& t) {
  return t.device().is_cpu() && t.is_contiguous() && t.scalar_type() == like.scalar_type() &&
         t.sizes() == like.sizes();
}

template <typename T>
Tensor weighted_sum_fast(const Tensor& base, const std::vector<Tensor>& terms,
                         const std::vector<double>& weights) {
  std::array<const T*, kernels::kMaxTerms> pointers;
  std::array<T, kernels::kMaxTerms> factors;
  int64_t count = 0;
  for (size_t j = 0; j < terms.size(); ++j) {
    if (weights[j] == 0) continue;
    pointers[count] = terms[j].template data_ptr<T>();
    factors[count++] = static_cast<T>(weights[j]);
  }
  Tensor out = at::empty_like(terms[0], at::MemoryFormat::Contiguous);
  kernels::weighted_sum(base.defined() ? base.template data_ptr<T>() : nullptr, pointers.data(),
                        factors.data(), count, out.numel(), out.template data_ptr<T>());
  return out;
}

Tensor weighted_sum_value(const Tensor& base, const std::vector<Tensor>& terms,
                          const std::vector<double>& weights) {
  const Tensor& like = terms[0];
  bool fast = terms.size() <= kernels::kMaxTerms && (!base.defined() || fast_path(like, base));
  for (const Tensor& term : terms) fast = fast && fast_path(like, term);
  if (fast && like.scalar_type() == at::kDouble) return weighted_sum_fast<double>(base, terms, weights);
  if (fast && like.scalar_type() == at::kFloat) return weighted_sum_fast<float>(base, terms, weights);
  Tensor sum = base;
  for (size_t j = 0; j < terms.size(); ++j) {
    if (weights[j] == 0) continue;
    sum = sum.defined() ? at::add(sum, terms[j], weights[j]) : at::mul(terms[j], weights[j]);
  }
  return sum.defined() ? sum : at::zeros_like(like);
}

// no saved tensors and no std::function: this node stands behind every stage of every recorded step
struct WeightedSumNode : Node {
  std::vector<double> weights;

  variable_list apply(variable_list&& grads) override {
    variable_list result(weights.size() + 1);
    const Tensor& grad = grads[0];
    if (!grad.defined()) return result;
    if (task_should_compute_output(0)) result[0] = grad;
    for (size_t j = 0; j < weights.size(); ++j) {
      if (weights[j] == 0 || !task_should_compute_output(j + 1)) continue;
      result[j + 1] = weights[j] == 1 ? grad : weighted_sum({}, {grad}, {weights[j]});
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
  connect(node, inputs);
  for (Tensor& output : outputs) torch::autograd::set_history(output, node);
  return outputs;
}

Tensor weighted_sum(const Tensor& base, const std::vector<Tensor>& terms,
                    const std::vector<double>& weights) {
  const bool record = at::GradMode::is_enabled() && (needs_gradient(terms) || needs_gradient({base}));
  if (!record) return weighted_sum_value(base, terms, weights);
  Tensor out;
  {
    const at::NoGradGuard no_grad;
    out = weighted_sum_value(base, terms, weights);
  }
  std::shared_ptr<WeightedSumNode> node(new WeightedSumNode(), torch::autograd::deleteNode);
  node->weights = weights;
  std::vector<Tensor> inputs;
  inputs.reserve(terms.size() + 1);
  inputs.push_back(base);
  inputs.insert(inputs.end(), terms.begin(), terms.end());
  connect(node, inputs);
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

RecordGradients::RecordGradients(bool on) : before_(at::GradMode::is_enabled()) {
  at::GradMode::set_enabled(on);
}

RecordGradients::~RecordGradients() { at::GradMode::set_enabled(before_); }

bool recording_gradients() { return at::GradMode::is_enabled(); }

}  // namespace fastweights
