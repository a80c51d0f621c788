#include "fastweights/control.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/lyndon.h"
#include "control/cuda/on_device.h"
#include "control/straight.h"
#include "kernels/signature.h"
#include "tensor/autograd.h"
#include "tensor/large.h"
#include "tensor/parallel.h"
#include "tensor/runtime.h"

namespace fastweights {
namespace {

using kernels::SignatureKind;
using kernels::SignaturePlan;

// a gigabyte for a single window
constexpr double kLargestSize = 1 << 27;

void check_depth(const char* who, int64_t channels, int64_t depth) {
  check_instruction_set();
  FW_CHECK(channels >= 1, "[", who, "] there must be at least one channel, got ", channels);
  FW_CHECK(depth >= 1 && depth <= kernels::kMaxDepth, "[", who, "] depth must be 1 to ", kernels::kMaxDepth,
           ", got ", depth);
  const double size = std::pow(static_cast<double>(channels), static_cast<double>(depth));
  FW_CHECK(size <= kLargestSize, "[", who, "] ", channels, " channels at depth ", depth, " mean tensors of ",
           size, " values per window; take a smaller depth");
}

// the words to read, with the tables of a plan
struct WordTable {
  SignaturePlan plan;
  std::vector<int32_t> length, position, splits;

  WordTable(SignatureKind kind, int64_t channels, int64_t depth, const std::vector<Word>& words) {
    plan.kind = kind;
    plan.channels = channels;
    plan.depth = depth;
    plan.power[0] = 1;
    plan.start[0] = plan.start[1] = 0;
    for (int64_t level = 1; level <= depth; ++level) {
      plan.power[level] = plan.power[level - 1] * channels;
      plan.start[level + 1] = plan.start[level] + plan.power[level];
    }
    plan.words = static_cast<int64_t>(words.size());
    for (const Word& word : words) {
      int64_t index = 0;
      for (int64_t letter : word) index = index * channels + letter;
      const auto letters = static_cast<int64_t>(word.size());
      length.push_back(static_cast<int32_t>(letters));
      position.push_back(static_cast<int32_t>(index));
      for (int64_t cut = 1; cut < letters; ++cut) {
        splits.push_back(static_cast<int32_t>(index / plan.power[letters - cut]));
        splits.push_back(static_cast<int32_t>(index % plan.power[letters - cut]));
      }
    }
    plan.length = length.data();
    plan.position = position.data();
    plan.splits = splits.data();
  }
};

std::vector<Word> basis_words(int64_t channels, const LogSignatureOptions& options) {
  return options.basis == LogSignatureBasis::Expanded ? all_words(channels, options.depth)
                                                      : lyndon_words(channels, options.depth);
}

// paths side by side as long as their scratch stays in the cache, one at a time beyond
int64_t lanes_for(int64_t scratch_doubles) {
  constexpr int64_t kCacheDoubles = 1 << 17;
  return scratch_doubles * kernels::kSignatureLanes <= kCacheDoubles ? kernels::kSignatureLanes : 1;
}

template <typename T>
void forward_windows(const WordTable& table, const Tensor& points, const Tensor& first, const Tensor& count,
                     Tensor& out) {
  const int64_t channels = table.plan.channels, words = table.plan.words, windows = out.size(0);
  const int64_t *f = first.data_ptr<int64_t>(), *n = count.data_ptr<int64_t>();
  const T* data = points.data_ptr<T>();
  T* result = out.data_ptr<T>();
  const int64_t lanes = lanes_for(table.plan.forward_scratch());
  parallel_for((windows + lanes - 1) / lanes, 4, [&](int64_t begin, int64_t end) {
    std::vector<double> scratch(lanes * table.plan.forward_scratch());
    std::array<kernels::SignatureTask<T>, kernels::kSignatureLanes> tasks;
    for (int64_t from = begin * lanes; from < std::min(end * lanes, windows); from += lanes) {
      const int64_t together = std::min(lanes, windows - from);
      for (int64_t l = 0; l < together; ++l) {
        const int64_t w = from + l;
        tasks[l] = {data + f[w] * channels, n[w], result + w * words};
      }
      kernels::signature(table.plan, tasks.data(), together, scratch.data());
    }
  });
}

// windows may share a point, so threads get whole samples: no two of those overlap
template <typename T>
void backward_windows(const WordTable& table, const Tensor& points, const Tensor& first, const Tensor& count,
                      const Tensor& sample_offsets, const Tensor& grad_out, Tensor& grad_points) {
  const int64_t channels = table.plan.channels, words = table.plan.words;
  const int64_t *f = first.data_ptr<int64_t>(), *n = count.data_ptr<int64_t>();
  const int64_t* o = sample_offsets.data_ptr<int64_t>();
  const T *data = points.data_ptr<T>(), *grad = grad_out.data_ptr<T>();
  T* result = grad_points.data_ptr<T>();
  parallel_for(sample_offsets.size(0) - 1, 1, [&](int64_t begin, int64_t end) {
    const int64_t longest = o[begin] < o[end] ? *std::max_element(n + o[begin], n + o[end]) : 1;
    const int64_t scratch_size = table.plan.backward_scratch(longest), lanes = lanes_for(scratch_size);
    std::vector<double> scratch(lanes * scratch_size);
    std::array<kernels::SignatureBackwardTask<T>, kernels::kSignatureLanes> tasks;
    for (int64_t from = o[begin]; from < o[end]; from += lanes) {
      const int64_t together = std::min(lanes, o[end] - from);
      for (int64_t l = 0; l < together; ++l) {
        const int64_t w = from + l;
        tasks[l] = {data + f[w] * channels, n[w], grad + w * words, result + f[w] * channels};
      }
      kernels::signature_backward(table.plan, tasks.data(), together, scratch.data());
    }
  });
}

// coefficients at the words for windows of `count` points from row `first`; sample b owns windows
// offsets[b] .. offsets[b + 1] - 1
Tensor read_windows(std::shared_ptr<const WordTable> table, const Tensor& points, const Tensor& first,
                    const Tensor& count, const Tensor& offsets) {
  if (!points.device().is_cpu()) return device_logsignature(table->plan, points, first, count);
  const Tensor data = points.detach().contiguous();
  Tensor out = empty_large({first.size(0), table->plan.words}, data.options());
  const bool single = data.scalar_type() == at::kFloat;
  (single ? forward_windows<float> : forward_windows<double>)(*table, data, first, count, out);
  const auto backward = [=](const std::vector<Tensor>& grads,
                            const std::vector<Tensor>&) -> std::vector<Tensor> {
    const Tensor grad_out = grads[0].contiguous();
    Tensor grad = at::zeros_like(data);
    (single ? backward_windows<float> : backward_windows<double>)(*table, data, first, count, offsets,
                                                                  grad_out, grad);
    return {grad};
  };
  return differentiable("logsignature", {out}, {points}, {points}, backward)[0];
}

// solves the triangular system words = M brackets, or its transpose for the gradient, row by row of [W, D]
enum class System { Plain, Transposed };

template <typename T>
void bracket_solve(const std::vector<std::vector<BracketTerm>>& rows, System system, Tensor& values) {
  const bool transposed = system == System::Transposed;
  const auto size = static_cast<int64_t>(rows.size());
  parallel_for(values.size(0), 64, [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) {
      T* x = values.data_ptr<T>() + w * size;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t row = transposed ? size - 1 - i : i;
        for (const BracketTerm& term : rows[row]) {
          const auto coefficient = static_cast<T>(term.coefficient);
          if (transposed) {
            x[term.column] -= coefficient * x[row];
          } else {
            x[row] -= coefficient * x[term.column];
          }
        }
      }
    }
  });
}

Tensor to_brackets(const Tensor& words, const std::vector<Word>& lyndon) {
  const auto rows = std::make_shared<const std::vector<std::vector<BracketTerm>>>(bracket_rows(lyndon));
  const auto solve = [rows](const Tensor& values, System system) {
    Tensor result = values.detach().contiguous().clone();
    const bool single = result.scalar_type() == at::kFloat;
    (single ? bracket_solve<float> : bracket_solve<double>)(*rows, system, result);
    return result;
  };
  const auto backward = [solve](const std::vector<Tensor>& grads,
                                const std::vector<Tensor>&) -> std::vector<Tensor> {
    return {solve(grads[0], System::Transposed)};
  };
  return differentiable("logsignature", {solve(words, System::Plain)}, {words}, {}, backward)[0];
}

Tensor read_basis(const Tensor& points, const Tensor& first, const Tensor& count, const Tensor& offsets,
                  const LogSignatureOptions& options) {
  const std::vector<Word> words = basis_words(points.size(1), options);
  const auto table =
      std::make_shared<const WordTable>(SignatureKind::Logarithm, points.size(1), options.depth, words);
  const Tensor values = read_windows(table, points, first, count, offsets);
  return options.basis == LogSignatureBasis::Brackets ? to_brackets(values, words) : values;
}

Tensor filled_points(const RaggedSeries& series) {
  // not checked on a GPU
  if (!series.values.device().is_cpu()) return series.values;
  return has_missing(series, "logsignature") ? fill_missing(series).values : series.values;
}

// rows of windows, on points with their times
struct WindowRows {
  Tensor points, times;
  std::vector<int64_t> first, count, offsets = {0};
};

WindowRows point_windows(const RaggedSeries& series, const PointWindows& windows) {
  FW_CHECK(windows.increments >= 1, "[logsignature_windows] a window needs at least one increment, got ",
           windows.increments);
  WindowRows rows;
  rows.points = filled_points(series);
  rows.times = series.times.contiguous();
  const int64_t* o = series.offsets.data_ptr<int64_t>();
  const auto most = static_cast<size_t>(series.times.size(0) / windows.increments + series.samples());
  rows.first.reserve(most);
  rows.count.reserve(most);
  for (int64_t b = 0; b < series.samples(); ++b) {
    const int64_t length = o[b + 1] - o[b];
    for (int64_t i = 0; i + 1 < length; i += rows.count.back() - 1) {
      // increments that are left; a comparison without a sum that could overflow
      const int64_t left = length - 1 - i;
      if (left < windows.increments && windows.tail == WindowTail::Drop) break;
      rows.first.push_back(o[b] + i);
      rows.count.push_back(std::min(left, windows.increments) + 1);
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.first.size()));
  }
  return rows;
}

// where windows begin: t0, t0 + duration, ...
std::vector<double> window_borders(const double* times, int64_t length, double duration) {
  const double span = times[length - 1] - times[0];
  // a remainder that is rounding alone is no window
  const auto pieces = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(span / duration - 1e-9)));
  std::vector<double> borders;
  for (int64_t i = 0; i < pieces; ++i) borders.push_back(times[0] + static_cast<double>(i) * duration);
  return borders;
}

WindowRows duration_windows(const RaggedSeries& series, const DurationWindows& windows) {
  FW_CHECK(windows.duration > 0 && std::isfinite(windows.duration),
           "[logsignature_windows] the duration of a window must be positive, got ", windows.duration);
  WindowRows rows;
  const Tensor contiguous = series.times.contiguous();
  const double* t = contiguous.data_ptr<double>();
  const int64_t* o = series.offsets.data_ptr<int64_t>();
  std::vector<double> merged;  // observation times and borders of all samples
  std::vector<int64_t> merged_offsets = {0};
  for (int64_t b = 0; b < series.samples(); ++b) {
    const int64_t length = o[b + 1] - o[b];
    const double gap = (t[o[b + 1] - 1] - t[o[b]]) / windows.duration;
    FW_CHECK(gap <= 1e8, "[logsignature_windows] sample ", b, " would have ", gap, " windows of duration ",
             windows.duration);
    const std::vector<double> borders = window_borders(t + o[b], length, windows.duration);
    // a border that differs from an observation by rounding alone is that observation
    const double span = t[o[b + 1] - 1] - t[o[b]], rounding = 1e-9 * std::min(windows.duration, span);
    const auto same = [&](double border, int64_t i) {
      return i < length && std::abs(border - t[o[b] + i]) <= rounding;
    };
    std::vector<int64_t> border_rows;
    int64_t i = 0;
    for (double border : borders) {
      while (i < length && t[o[b] + i] < border && !same(border, i)) merged.push_back(t[o[b] + i++]);
      border_rows.push_back(static_cast<int64_t>(merged.size()));
      if (!same(border, i)) merged.push_back(border);
    }
    // the last window ends with the series
    while (i < length) merged.push_back(t[o[b] + i++]);
    border_rows.push_back(static_cast<int64_t>(merged.size()) - 1);
    merged_offsets.push_back(static_cast<int64_t>(merged.size()));
    for (size_t w = 0; w + 1 < border_rows.size(); ++w) {
      rows.first.push_back(border_rows[w]);
      rows.count.push_back(border_rows[w + 1] - border_rows[w] + 1);
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.first.size()));
  }
  rows.times = at::tensor(merged, at::kDouble);
  const RaggedTimes points = {rows.times, at::tensor(merged_offsets, at::kLong)};
  rows.points = straight_path(series).sample(points).value;
  return rows;
}

WindowedLogSignature windowed(const RaggedSeries& series, const Windows& windows,
                              const LogSignatureOptions& options) {
  const WindowRows rows = std::holds_alternative<PointWindows>(windows)
                              ? point_windows(series, std::get<PointWindows>(windows))
                              : duration_windows(series, std::get<DurationWindows>(windows));
  const Tensor first = at::tensor(rows.first, at::kLong), count = at::tensor(rows.count, at::kLong);
  const Tensor offsets = at::tensor(rows.offsets, at::kLong);
  return {.values = read_basis(rows.points, first, count, offsets, options),
          .begin = rows.times.index_select(0, first),
          .end = rows.times.index_select(0, first + count - 1),
          .offsets = offsets};
}

}  // namespace

int64_t logsignature_size(int64_t channels, const LogSignatureOptions& options) {
  check_depth("logsignature_size", channels, options.depth);
  if (options.basis != LogSignatureBasis::Expanded) return lyndon_count(channels, options.depth);
  int64_t size = 0, power = 1;
  for (int64_t level = 1; level <= options.depth; ++level) size += power *= channels;
  return size;
}

std::vector<std::string> logsignature_basis(int64_t channels, const LogSignatureOptions& options) {
  check_depth("logsignature_basis", channels, options.depth);
  std::vector<std::string> names;
  for (const Word& word : basis_words(channels, options)) {
    if (options.basis == LogSignatureBasis::Brackets) {
      names.push_back(lyndon_bracket(word));
      continue;
    }
    std::string name;
    for (int64_t letter : word) name += (name.empty() ? "" : ",") + std::to_string(letter);
    names.push_back(name);
  }
  return names;
}

Tensor logsignature(const RaggedSeries& series, const LogSignatureOptions& options) {
  check_series(series, "logsignature", 2);
  check_depth("logsignature", series.channels(), options.depth);
  const Tensor first = series.offsets.slice(0, 0, -1).contiguous();
  const Tensor count = (series.offsets.slice(0, 1) - first).contiguous();
  return read_basis(filled_points(series), first, count, at::arange(series.samples() + 1, at::kLong),
                    options);
}

Tensor signature(const RaggedSeries& series, int64_t depth) {
  check_series(series, "signature", 2);
  check_depth("signature", series.channels(), depth);
  const auto table = std::make_shared<const WordTable>(SignatureKind::Signature, series.channels(), depth,
                                                       all_words(series.channels(), depth));
  const Tensor first = series.offsets.slice(0, 0, -1).contiguous();
  const Tensor count = (series.offsets.slice(0, 1) - first).contiguous();
  return read_windows(table, filled_points(series), first, count,
                      at::arange(series.samples() + 1, at::kLong));
}

WindowedLogSignature logsignature_windows(const RaggedSeries& series, const Windows& windows,
                                          const LogSignatureOptions& options) {
  check_series(series, "logsignature_windows", 2);
  check_depth("logsignature_windows", series.channels(), options.depth);
  return windowed(series, windows, options);
}

WindowedLogSignature device_logsignature_windows(const RaggedSeries& series, const Windows& windows,
                                                 const LogSignatureOptions& options) {
  check_depth("logsignature_windows", series.channels(), options.depth);
  FW_CHECK(options.basis != LogSignatureBasis::Brackets,
           "[logsignature_windows] brackets are computed on the CPU alone");
  return windowed(series, windows, options);
}

}  // namespace fastweights
