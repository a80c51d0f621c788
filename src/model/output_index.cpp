#include "model/output_index.h"

#include <algorithm>

#include "tensor/device.h"

namespace fastweights {

OutputIndex make_output_index(const std::vector<OutputPosition>& positions, const at::Device& device,
                              at::ScalarType type) {
  std::vector<int64_t> left, right;
  std::vector<double> fraction;
  for (const OutputPosition& position : positions) {
    left.push_back(position.left);
    right.push_back(position.right);
    fraction.push_back(position.fraction);
  }
  OutputIndex index = {on_device(at::tensor(left, at::kLong), device), {}, {}};
  if (std::all_of(fraction.begin(), fraction.end(), [](double x) { return x == 0; })) return index;
  index.right = on_device(at::tensor(right, at::kLong), device);
  index.fraction = on_device(at::tensor(fraction, at::kDouble).to(type), device);
  return index;
}

// index_select has a fixed order on the CPU, index on a GPU
Tensor rows_at(const Tensor& x, const Tensor& index) {
  return x.is_cpu() ? x.index_select(0, index) : x.index({index});
}

Tensor at_outputs(const Tensor& states, const OutputIndex& index) {
  const Tensor start = rows_at(states, index.left);
  if (!index.fraction.defined()) return start;
  std::vector<int64_t> shape(static_cast<size_t>(states.dim()), 1);
  shape[0] = -1;
  return start + index.fraction.view(shape) * (rows_at(states, index.right) - start);
}

}  // namespace fastweights
