#include "tensor/stage_sums.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "tensor/autograd.h"

namespace fastweights {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

// a mark for the sum before it: visited in this pass
const Tensor& greeting() {
  static const Tensor kGreeting = at::zeros({}, at::kDouble);
  return kGreeting;
}

}  // namespace

/// What the sums of one step share in the backward pass.
struct StageGradients {
  std::vector<std::vector<double>> weights;  // of sum m, for the slopes it knows
  std::vector<Tensor> arrived;               // gradient of sum m, undefined before it arrives
  std::shared_ptr<Node> latest;              // the node of the last sum, while the step is recorded
};

namespace {

// gradients in: 0 of the sum itself, 1 the greeting of the next sum
// gradients out: 0 of the newest slope, 1 of base for the first sum or the greeting for the one before
struct StageSumNode : Node {
  std::shared_ptr<StageGradients> shared;
  size_t index = 0;  // this sum knows slopes 0 .. index
  bool first = false;

  variable_list apply(variable_list&& grads) override {
    std::vector<Tensor>& arrived = shared->arrived;
    arrived.resize(shared->weights.size());
    // the first of this pass: what is stored is left over from an earlier one
    if (!grads[1].defined()) arrived.assign(arrived.size(), Tensor());
    arrived[index] = grads[0];

    variable_list result(2);
    if (task_should_compute_output(0)) result[0] = total(arrived, index, index);
    if (!first) {
      result[1] = greeting();
    } else {
      if (task_should_compute_output(1)) result[1] = total(arrived, index, kBase);
      arrived.clear();
    }
    return result;
  }

  std::string name() const override { return "fastweights::stage_sum"; }

 private:
  static constexpr size_t kBase = static_cast<size_t>(-1);

  // sum over the gradients from `from` on, weighted as `slope` is in them; base has weight 1 everywhere
  Tensor total(const std::vector<Tensor>& arrived, size_t from, size_t slope) const {
    std::vector<Tensor> terms;
    std::vector<double> factors;
    for (size_t m = from; m < arrived.size(); ++m) {
      const double weight = slope == kBase ? 1 : shared->weights[m][slope];
      if (!arrived[m].defined() || weight == 0) continue;
      terms.push_back(arrived[m]);
      factors.push_back(weight);
    }
    if (terms.empty()) return {};
    if (terms.size() == 1 && factors[0] == 1) return terms[0];
    return weighted_sum({}, terms, factors);
  }
};

}  // namespace

StageSums::~StageSums() {
  // later sums are not coming: nodes keep each other alive through edges alone from here on
  if (shared_) shared_->latest = nullptr;
}

Tensor StageSums::next(const std::vector<Tensor>& slopes, std::vector<double> weights) {
  const bool recorded_before = shared_ && shared_->latest;
  const bool record =
      at::GradMode::is_enabled() && (recorded_before || base_.requires_grad() || needs_gradient(slopes));
  Tensor out;
  {
    const at::NoGradGuard no_grad;
    out = weighted_sum(base_, slopes, weights);
  }
  if (!shared_) shared_ = std::make_shared<StageGradients>();
  shared_->weights.push_back(std::move(weights));
  if (!record) return out;

  std::shared_ptr<StageSumNode> node(new StageSumNode(), torch::autograd::deleteNode);
  node->shared = shared_;
  node->index = slopes.size() - 1;
  node->first = !recorded_before;
  node->set_next_edges(
      {torch::autograd::impl::gradient_edge(slopes.back()),
       recorded_before ? Edge(shared_->latest, 1) : torch::autograd::impl::gradient_edge(base_)});
  torch::autograd::set_history(out, node);
  node->add_input_metadata(greeting());
  shared_->latest = node;
  return out;
}

}  // namespace fastweights
