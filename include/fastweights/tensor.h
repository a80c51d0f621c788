#pragma once

/// All headers except module.h include LibTorch through this file. The order matters: clang 14 in C++20 mode
/// needs ivalue.h first with LibTorch 1.13.
#include <ATen/core/ivalue.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

/// Tensors: devices, batches of series, batch-invariant operations, files.

namespace fastweights {

using at::Tensor;

/// Reference: compositions of LibTorch operations, the definition. Cpu, Cuda: fused kernels. Auto takes the
/// fastest one that supports the input; requesting one that does not is an error with the reason.
enum class Backend { Auto, Reference, Cpu, Cuda };

/// "cpu", "cuda", or "auto", which selects cuda if it is usable. Requesting an unusable device is an error
/// with the reason.
at::Device find_device(const std::string& name);

/// Whether matrix products on a GPU may round their factors to TF32, 11 bits instead of 24, and use tensor
/// cores. Products of the readout, and of the slow net with many channels, are then faster and less accurate;
/// the recurrence is always float32. bench/results/h200.md lists measurements.
enum class Tf32 { No, Yes };

// Batches of series, and times at which they are evaluated.

/// A batch of series, each with its own times and its own length, one after another without padding.
/// Sample b owns the rows offsets[b] .. offsets[b + 1] - 1. NaN marks a missing value.
struct RaggedSeries {
  Tensor values;   // [N, C] float32 or float64
  Tensor times;    // [N] float64, strictly increasing within each sample
  Tensor offsets;  // [B + 1] int64, from 0 to N

  int64_t samples() const { return offsets.size(0) - 1; }
  int64_t channels() const { return values.size(1); }
};

/// Times for each sample, in the same layout.
struct RaggedTimes {
  Tensor times;    // [N] float64
  Tensor offsets;  // [B + 1] int64
};

/// One series per entry: times[b] is [L_b], values[b] is [L_b, C]. Differentiable with respect to the values.
RaggedSeries ragged(const std::vector<Tensor>& times, const std::vector<Tensor>& values);

/// A batch in which all series share their times: times [L], values [B, L, C] or [L, C].
RaggedSeries shared_times(const Tensor& times, const Tensor& values);

/// Checks shapes, types, offsets and times. The error message starts with `who` in brackets and names sample,
/// index and value.
void check_series(const RaggedSeries& series, const char* who, int64_t smallest_length = 1);

/// Checks that no value is infinite, and returns whether any is missing.
bool has_missing(const RaggedSeries& series, const char* who);

/// A time of evaluation: one for all samples, or one for each.
class Time {
 public:
  Time(double value) : value_(value) {}  // NOLINT: a plain number is a time
  /// [] for all samples or [B] for each, float64; differentiable if the tensor is.
  explicit Time(Tensor tensor);

  bool shared() const { return !tensor_.defined() || tensor_.dim() == 0; }
  /// The time as a number; only for a shared one.
  double value() const;
  /// [] or [B], float64
  Tensor tensor() const;
  /// Shape and type such that it broadcasts against y: [] or [B, 1, ...]
  Tensor like(const Tensor& y) const;
  /// Whether the time is a tensor, not a plain number: one per sample, or differentiable.
  bool has_tensor() const { return tensor_.defined(); }

 private:
  double value_ = 0;
  Tensor tensor_;
};

Time operator+(const Time& a, const Time& b);
Time operator-(const Time& a, const Time& b);
Time operator*(double factor, const Time& t);

/// The next representable time above or below; gradients pass through unchanged.
Time just_after(const Time& t);
Time just_before(const Time& t);

// Batch-invariant versions of LibTorch operations whose bits for a row otherwise depend on the rest of the
// batch.
//
// On the CPU, for float32 and float64, a row's value and gradient then have the same bits alone and in any
// batch, with any number of threads. On other devices LibTorch's operations are used. at::exp, tanh, relu
// and layer_norm are batch-invariant already; at::sigmoid, silu, softplus, elu and gelu are not, because the
// last elements of a vectorised loop take another code path, nor is the gradient of at::softmax in
// LibTorch 2. Second derivatives are rejected with Products::FixedOrder.

/// LibTorch's BLAS, or our own sums in an order that depends only on the size of the summed dimension.
enum class Products { Fast, FixedOrder };

/// x [..., I], weight [O, I], bias [O] or undefined -> [..., O]. In a fixed order the gradients of weight and
/// bias are sums over the rows of x, one after another.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Products products);

/// W k for each matrix: w [..., M, K], k [..., K] -> [..., M], always in a fixed order.
Tensor matvec(const Tensor& w, const Tensor& k);

/// W^T v for each matrix: w [..., M, K], v [..., M] -> [..., K], always in a fixed order.
Tensor matvec_transposed(const Tensor& w, const Tensor& v);

/// 1 / (1 + exp(-x)), element by element.
Tensor sigmoid(const Tensor& x, Products products);

/// Over the last dimension.
Tensor softmax(const Tensor& x, Products products);

// Tensors on disk in the safetensors format: F64, F32, F16, BF16, I64, I32, U8 and BOOL, with a map of
// strings as metadata. A malformed file is a std::runtime_error that names the file and the error.

/// An open file. Opening it reads and checks names, shapes and metadata; tensors are read on request.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  const std::string& path() const;
  /// Sorted.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  std::vector<int64_t> shape(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const;
  /// Reads one tensor; an unknown name is an error.
  Tensor read(const std::string& name) const;

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

struct NamedTensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads a whole file.
NamedTensors load_safetensors(const std::string& path);

/// Writes a whole file atomically: first under a temporary name in the same folder.
void save_safetensors(const std::string& path, const NamedTensors& contents);

}  // namespace fastweights
