#include "solve/augmented.h"

#include "tensor/autograd.h"

namespace fastweights {

Tensor Augmented::pack(const Tensor& time, const Tensor& y, const Tensor& grad_y,
                       const std::vector<Tensor>& grads) const {
  std::vector<Tensor> parts = {time.reshape({1}).to(y.options()), y.reshape({-1}), grad_y.reshape({-1})};
  for (const Tensor& grad : grads) parts.push_back(grad.reshape({-1}));
  return at::cat(parts, 0);
}

std::vector<Tensor> Augmented::grads(const Tensor& state) const {
  std::vector<Tensor> result;
  int64_t begin = 1 + 2 * size;
  for (const Tensor& p : parameters) {
    result.push_back(state.slice(0, begin, begin + p.numel()).view(p.sizes()));
    begin += p.numel();
  }
  return result;
}

ErrorNorm Augmented::norm(AdjointNorm kind) const {
  ErrorNorm norm = {{1, size, size}};
  if (kind == AdjointNorm::All) {
    for (const Tensor& p : parameters) norm.parts.push_back(p.numel());
  }
  return norm;
}

Tensor augmented_slope(const Field& f, const Augmented& layout, const Time& t, const Tensor& state,
                       TimeGradient time_gradient) {
  const bool follow_time = time_gradient == TimeGradient::Follow;
  const at::AutoGradMode on(true);
  const Tensor y = layout.y(state).detach().set_requires_grad(true);
  std::vector<Tensor> inputs = {y};
  inputs.insert(inputs.end(), layout.parameters.begin(), layout.parameters.end());
  Time when = t;
  if (follow_time) {
    const Tensor moving = t.tensor().detach().clone().set_requires_grad(true);
    when = Time(moving);
    inputs.push_back(moving);
  }
  const Tensor slope = f(when, y);
  std::vector<Tensor> products = vector_jacobian({slope}, inputs, {-layout.grad_y(state)});
  const at::NoGradGuard no_grad;
  const Tensor time = follow_time ? products.back() : at::zeros({}, y.options());
  const std::vector<Tensor> grads(products.begin() + 1,
                                  products.begin() + 1 + static_cast<int64_t>(layout.parameters.size()));
  return layout.pack(time, slope.detach(), products[0], grads);
}

}  // namespace fastweights
