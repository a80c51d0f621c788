#include "fastweights/tensor.h"

#include <vector>

#include "base/error.h"
#include "kernels/product.h"
#include "tensor/autograd.h"
#include "tensor/parallel.h"

namespace fastweights {
namespace {

using kernels::ProductShape;

bool has_kernel(const Tensor& tensor) {
  return tensor.device().is_cpu() &&
         (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble);
}

// calls f with a zero of the tensor's type
template <typename F>
void with_type(const Tensor& tensor, F&& f) {
  if (tensor.scalar_type() == at::kDouble) {
    f(double());
  } else {
    f(float());
  }
}

// items that are worth a thread, each of this many multiplications
int64_t grain_of(int64_t work) { return (1 << 15) / (work + 1) + 1; }

// A B for one pair of dense matrices, with the result's sizes; `shape` says how A lies in its memory
Tensor product(const ProductShape& shape, const Tensor& a, const Tensor& b, at::IntArrayRef sizes) {
  Tensor c = at::empty(sizes, b.options());
  with_type(c, [&](auto zero) {
    using T = decltype(zero);
    const T *pa = a.data_ptr<T>(), *pb = b.data_ptr<T>();
    T* pc = c.data_ptr<T>();
    parallel_for(shape.rows, grain_of(shape.terms * shape.columns), [&](int64_t begin, int64_t end) {
      ProductShape part = shape;
      part.rows = end - begin;
      kernels::product(part, 1, pa + begin * shape.row_stride, pb, pc + begin * shape.columns);
    });
  });
  return c;
}

// A B for each pair of a batch; `sizes` are those of the result, a matrix of it being [rows, columns]
Tensor batch_of_products(const ProductShape& shape, const Tensor& a, const Tensor& b, at::IntArrayRef sizes) {
  Tensor c = at::empty(sizes, b.options());
  if (c.numel() == 0) return c;
  const int64_t in_a = shape.rows * shape.terms, in_b = shape.terms * shape.columns;
  const int64_t in_c = shape.rows * shape.columns;
  with_type(c, [&](auto zero) {
    using T = decltype(zero);
    const T *pa = a.data_ptr<T>(), *pb = b.data_ptr<T>();
    T* pc = c.data_ptr<T>();
    parallel_for(c.numel() / in_c, grain_of(in_c * shape.terms), [&](int64_t begin, int64_t end) {
      kernels::product(shape, end - begin, pa + begin * in_a, pb + begin * in_b, pc + begin * in_c);
    });
  });
  return c;
}

// the leading dimensions of w, and one more
std::vector<int64_t> leading_and(const Tensor& w, int64_t last) {
  std::vector<int64_t> sizes(w.sizes().begin(), w.sizes().end() - 2);
  sizes.push_back(last);
  return sizes;
}

Tensor matvec_value(const Tensor& w, const Tensor& k) {
  const int64_t rows = w.size(-2), columns = w.size(-1);
  const Tensor dense_w = w.contiguous(), dense_k = k.contiguous();
  Tensor out = at::empty(leading_and(w, rows), w.options());  // [..., M]
  if (out.numel() == 0) return out;
  with_type(out, [&](auto zero) {
    using T = decltype(zero);
    const T *pw = dense_w.data_ptr<T>(), *pk = dense_k.data_ptr<T>();
    T* po = out.data_ptr<T>();
    parallel_for(out.numel() / rows, grain_of(rows * columns), [&](int64_t begin, int64_t end) {
      kernels::matvec(end - begin, rows, columns, pw + begin * rows * columns, pk + begin * columns,
                      po + begin * rows);
    });
  });
  return out;
}

// v^T W is a product with one row
Tensor matvec_transposed_value(const Tensor& w, const Tensor& v) {
  const int64_t rows = w.size(-2), columns = w.size(-1);
  return batch_of_products({1, rows, columns, 0, 1}, v.contiguous(), w.contiguous(), leading_and(w, columns));
}

// v k^T for each pair: v [..., M], k [..., K] -> [..., M, K], products with one term
Tensor outer(const Tensor& v, const Tensor& k, at::IntArrayRef sizes) {
  return batch_of_products({v.size(-1), 1, k.size(-1), 1, 0}, v.contiguous(), k.contiguous(), sizes);
}

void check_pair(const char* name, const Tensor& w, const Tensor& vector, int64_t dimension) {
  FW_CHECK(w.dim() >= 2, "[", name, "] w must be [..., M, K], got ", w.sizes());
  FW_CHECK(vector.sizes() == at::IntArrayRef(leading_and(w, w.size(dimension))), "[", name,
           "] the vectors must be ", at::IntArrayRef(leading_and(w, w.size(dimension))), " for w ", w.sizes(),
           ", got ", vector.sizes());
  FW_CHECK(w.scalar_type() == vector.scalar_type() && w.device() == vector.device(), "[", name, "] w is ",
           w.scalar_type(), " on ", w.device(), " but the vectors are ", vector.scalar_type(), " on ",
           vector.device());
}

void check_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  FW_CHECK(weight.dim() == 2, "[linear] weight must be [O, I], got ", weight.sizes());
  FW_CHECK(x.dim() >= 1 && x.size(-1) == weight.size(1), "[linear] x must be [..., ", weight.size(1),
           "] for weight ", weight.sizes(), ", got ", x.sizes());
  FW_CHECK(x.scalar_type() == weight.scalar_type() && x.device() == weight.device(), "[linear] x is ",
           x.scalar_type(), " on ", x.device(), " but weight is ", weight.scalar_type(), " on ",
           weight.device());
  if (!bias.defined()) return;
  FW_CHECK(bias.dim() == 1 && bias.size(0) == weight.size(0), "[linear] bias must be [", weight.size(0),
           "] for weight ", weight.sizes(), ", got ", bias.sizes());
  FW_CHECK(bias.scalar_type() == weight.scalar_type() && bias.device() == weight.device(),
           "[linear] bias is ", bias.scalar_type(), " on ", bias.device(), " but weight is ",
           weight.scalar_type(), " on ", weight.device());
}

// all rows under each other: [..., width] -> [rows, width]
Tensor rows_of(const Tensor& x) {
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < x.dim(); ++d) rows *= x.size(d);
  return x.reshape({rows, x.size(-1)}).contiguous();
}

Tensor linear_value(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t in = weight.size(1), out = weight.size(0);
  const Tensor rows = rows_of(x);  // [R, I]
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = out;
  Tensor y = product({rows.size(0), in, out, in, 1}, rows, weight.t().contiguous(), sizes);
  return bias.defined() ? y.add_(bias) : y;
}

// gradients of x, weight and bias; `required` says which of them
std::vector<Tensor> linear_gradients(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                     const std::vector<bool>& required) {
  const Tensor g = rows_of(grad);  // [R, O]
  const int64_t count = g.size(0), out = g.size(1), in = weight.size(1);
  std::vector<Tensor> result(3);
  if (required[0]) result[0] = product({count, out, in, out, 1}, g, weight.contiguous(), x.sizes());
  if (required[1]) result[1] = product({out, count, in, 1, out}, g, rows_of(x), weight.sizes());
  // a sum is a product with ones, all of which are the same one
  if (required[2]) result[2] = product({1, count, out, 0, 0}, at::ones({1}, g.options()), g, {out});
  return result;
}

bool wants_gradient(const Tensor& input) { return input.defined() && input.requires_grad(); }

// rows up to which a sum over them is faster as a product with ones on a GPU, whose sums over few rows are
// slow
constexpr int64_t kFewRows = 4096;

// the same on a GPU, by the library's products
std::vector<Tensor> device_gradients(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                     const std::vector<bool>& required) {
  const Tensor g = rows_of(grad);  // [R, O]
  std::vector<Tensor> result(3);
  if (required[0]) result[0] = at::mm(g, weight).view(x.sizes());
  if (required[1]) result[1] = at::mm(g.t(), rows_of(x));
  if (required[2])
    result[2] = g.size(0) > kFewRows ? g.sum(0) : at::mv(g.t(), at::ones({g.size(0)}, g.options()));
  return result;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Products products) {
  check_linear(x, weight, bias);
  const bool elsewhere = !x.device().is_cpu();
  if (!elsewhere && (products == Products::Fast || !has_kernel(x))) return at::linear(x, weight, bias);
  Tensor y;  // [..., O]
  {
    const at::NoGradGuard no_grad;
    y = elsewhere ? at::linear(x, weight, bias) : linear_value(x, weight, bias);
  }
  const std::vector<bool> required = {wants_gradient(x), wants_gradient(weight), wants_gradient(bias)};
  const auto backward = elsewhere ? device_gradients : linear_gradients;
  return differentiable("linear", {y}, {x, weight, bias}, {x, weight},
                        [=](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
                          return backward(grads[0], saved[0], saved[1], required);
                        })[0];
}

Tensor matvec(const Tensor& w, const Tensor& k) {
  check_pair("matvec", w, k, -1);
  if (!has_kernel(w)) return (w * k.unsqueeze(-2)).sum(-1);
  Tensor out;  // [..., M]
  {
    const at::NoGradGuard no_grad;
    out = matvec_value(w, k);
  }
  const bool of_w = wants_gradient(w), of_k = wants_gradient(k);
  return differentiable("matvec", {out}, {w, k}, {w, k},
                        [=](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
                          const Tensor &g = grads[0], &w = saved[0], &k = saved[1];
                          return std::vector<Tensor>{of_w ? outer(g, k, w.sizes()) : Tensor(),
                                                     of_k ? matvec_transposed_value(w, g) : Tensor()};
                        })[0];
}

Tensor matvec_transposed(const Tensor& w, const Tensor& v) {
  check_pair("matvec_transposed", w, v, -2);
  if (!has_kernel(w)) return (w * v.unsqueeze(-1)).sum(-2);
  Tensor out;  // [..., K]
  {
    const at::NoGradGuard no_grad;
    out = matvec_transposed_value(w, v);
  }
  const bool of_w = wants_gradient(w), of_v = wants_gradient(v);
  return differentiable("matvec_transposed", {out}, {w, v}, {w, v},
                        [=](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
                          const Tensor &g = grads[0], &w = saved[0], &v = saved[1];
                          return std::vector<Tensor>{of_w ? outer(v, g, w.sizes()) : Tensor(),
                                                     of_v ? matvec_value(w, g) : Tensor()};
                        })[0];
}

Tensor sigmoid(const Tensor& x, Products products) {
  if (products == Products::Fast || !has_kernel(x)) return at::sigmoid(x);
  Tensor y;
  {
    const at::NoGradGuard no_grad;
    y = at::exp(at::neg(x)).add_(1).reciprocal_();
  }
  // what is saved must not know its own history
  const Tensor kept = y.detach();
  return differentiable("sigmoid", {y}, {x}, {kept},
                        [](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
                          const Tensor slope = at::rsub(saved[0], 1).mul_(saved[0]);
                          return std::vector<Tensor>{at::mul(grads[0], slope)};
                        })[0];
}

Tensor softmax(const Tensor& x, Products products) {
  if (products == Products::Fast || !has_kernel(x)) return at::softmax(x, -1);
  Tensor y;
  {
    const at::NoGradGuard no_grad;
    y = at::softmax(x, -1);
  }
  const Tensor kept = y.detach();
  return differentiable("softmax", {y}, {x}, {kept},
                        [](const std::vector<Tensor>& grads, const std::vector<Tensor>& saved) {
                          // y (g - y . g), each row's sum in an order of its own
                          const Tensor& y = saved[0];
                          const Tensor ones = at::ones({1, y.size(-1)}, y.options());
                          const Tensor along = linear(grads[0] * y, ones, {}, Products::FixedOrder);
                          return std::vector<Tensor>{at::mul(y, grads[0] - along)};
                        })[0];
}

}  // namespace fastweights
