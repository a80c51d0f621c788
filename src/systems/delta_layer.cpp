#include "systems/delta_layer.h"

#include "fastweights/product.h"
#include "fastweights/scan.h"

namespace fastweights {

Tensor delta_reads(const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& q,
                   const Tensor& offsets) {
  const int64_t samples = offsets.size(0) - 1;
  // one Euler step of length one for each row, and W is wanted after every one of them
  const Tensor counts = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
  const Tensor steps = at::arange(1, k.size(0) + 1) - offsets.slice(0, 0, -1).repeat_interleave(counts);
  const ScanOutput scanned =
      scan({.k = k.unsqueeze(1),
            .v = v.unsqueeze(1),
            .beta = beta.unsqueeze(1),
            .dt = at::ones({k.size(0)}, k.options().requires_grad(false)),
            .w0 = at::zeros({samples, k.size(1), v.size(2), k.size(2)}, k.options().requires_grad(false)),
            .offsets = offsets,
            .output_steps = steps,
            .output_offsets = offsets},
           {.rule = delta_pre(), .method = euler()});
  return matvec(scanned.w, q);
}

Tensor DeltaLayer::operator()(const Tensor& x, const Tensor& offsets) const {
  const Tensor numbers = linear(slow, layer_norm(norm, x)).view({x.size(0), heads, -1});
  const int64_t d = (numbers.size(2) - 1) / 3;
  const std::vector<Tensor> parts = numbers.split_with_sizes({d, d, d, 1}, -1);
  const Tensor y = delta_reads(at::softmax(parts[1], -1), parts[2].contiguous(),
                               at::sigmoid(parts[3]).squeeze(-1), at::softmax(parts[0], -1), offsets);
  return x + linear(out, y.reshape({x.size(0), heads * d}));
}

}  // namespace fastweights
