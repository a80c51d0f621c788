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

Tensor at_outputs(const Tensor& states, const OutputIndex& index) {
  // gradients of rows that are used more than once are added in a fixed order by index_select on the CPU, and
  // by index on a GPU
  const auto rows = [&](const Tensor& which) {
    return states.is_cpu() ? states.index_select(0, which) : states.index({which});
  };
  const Tensor start = rows(index.left);
  if (!index.fraction.defined()) return start;
  std::vector<int64_t> shape(static_cast<size_t>(states.dim()), 1);
  shape[0] = -1;
  return start + index.fraction.view(shape) * (rows(index.right) - start);
}

}  // namespace fastweights
