#include "kernels/signature.h"

#include <algorithm>
#include <cmath>

namespace fastweights::kernels {
namespace {

// out[u c] += left[u] right[c]
template <int kChannels>
inline void add_outer(const double* left, int64_t rows, const double* right, int64_t channels,
                      double* out) noexcept {
  const int64_t columns = kChannels > 0 ? kChannels : channels;
  for (int64_t u = 0; u < rows; ++u) {
    for (int64_t c = 0; c < columns; ++c) out[u * columns + c] += left[u] * right[c];
  }
}

// Horner's scheme of one level of x (x) exp(d):
//   H_1 = x_1 + d/k,  H_j = x_j + H_(j-1) (x) d/(k-j+1),  new x_k = x_k + H_(k-1) (x) d
// leaves H_1 .. H_(k-1) in `horner` at the positions of their levels
template <int kChannels>
void horner_levels(const SignaturePlan& plan, int64_t level, const double* x, const double* d,
                   double* horner) noexcept {
  const int64_t channels = plan.channels;
  for (int64_t c = 0; c < channels; ++c) horner[c] = x[c] + d[c] / static_cast<double>(level);
  std::array<double, 64> scaled_small;
  for (int64_t j = 2; j < level; ++j) {
    const double scale = 1 / static_cast<double>(level - j + 1);
    const double* below = horner + plan.start[j - 1];
    double* here = horner + plan.start[j];
    const double* x_j = x + plan.start[j];
    if (channels <= static_cast<int64_t>(scaled_small.size())) {
      for (int64_t c = 0; c < channels; ++c) scaled_small[c] = d[c] * scale;
      std::copy(x_j, x_j + plan.power[j], here);
      add_outer<kChannels>(below, plan.power[j - 1], scaled_small.data(), channels, here);
      continue;
    }
    for (int64_t u = 0; u < plan.power[j - 1]; ++u) {
      for (int64_t c = 0; c < channels; ++c) {
        here[u * channels + c] = x_j[u * channels + c] + below[u] * d[c] * scale;
      }
    }
  }
}

// x <- x (x) exp(d), from the highest level down so that lower ones are still the old ones (Chen's identity)
template <int kChannels>
void append_segment(const SignaturePlan& plan, const double* d, double* x, double* horner) noexcept {
  for (int64_t level = plan.depth; level >= 2; --level) {
    horner_levels<kChannels>(plan, level, x, d, horner);
    add_outer<kChannels>(horner + plan.start[level - 1], plan.power[level - 1], d, plan.channels,
                         x + plan.start[level]);
  }
  for (int64_t c = 0; c < plan.channels; ++c) x[c] += d[c];
}

// turns the gradient of x (x) exp(d) into that of x, in place, and adds that of d
void append_segment_backward(const SignaturePlan& plan, const double* d, const double* x, double* grad_x,
                             double* grad_d, double* horner, double* grad_horner) noexcept {
  const int64_t channels = plan.channels;
  for (int64_t c = 0; c < channels; ++c) grad_d[c] += grad_x[c];
  for (int64_t level = 2; level <= plan.depth; ++level) {
    horner_levels<0>(plan, level, x, d, horner);
    const double* grad = grad_x + plan.start[level];
    for (int64_t j = level; j >= 2; --j) {
      // H_j = x_j + H_(j-1) (x) d * scale; the level itself has scale 1
      const double scale = 1 / static_cast<double>(level - j + 1);
      const double* below = horner + plan.start[j - 1];
      double* grad_below = grad_horner + plan.start[j - 1];
      for (int64_t u = 0; u < plan.power[j - 1]; ++u) {
        double sum = 0;
        for (int64_t c = 0; c < channels; ++c) {
          sum += grad[u * channels + c] * d[c];
          grad_d[c] += scale * grad[u * channels + c] * below[u];
        }
        grad_below[u] = scale * sum;
      }
      double* grad_x_below = grad_x + plan.start[j - 1];
      for (int64_t u = 0; u < plan.power[j - 1]; ++u) grad_x_below[u] += grad_below[u];
      grad = grad_below;
    }
    for (int64_t c = 0; c < channels; ++c) grad_d[c] += grad[c] / static_cast<double>(level);
  }
}

// log(1 + x) = x Q_1 with Q_m = 1/m - x Q_(m+1) and Q_N = 1/N: Q_m is wanted up to level N - m only.
// Q_m without its constant part lies at its own block, in the same order of levels as x.
double* quotient(const SignaturePlan& plan, double* blocks, int64_t m) noexcept {
  return blocks + (m - 1) * plan.start[plan.depth];
}

void logarithm_quotients(const SignaturePlan& plan, const double* x, double* blocks) noexcept {
  for (int64_t m = plan.depth - 1; m >= 1; --m) {
    double* q = quotient(plan, blocks, m);
    const double* next = quotient(plan, blocks, m + 1);
    for (int64_t level = 1; level <= plan.depth - m; ++level) {
      double* here = q + plan.start[level];
      const double* x_level = x + plan.start[level];
      for (int64_t u = 0; u < plan.power[level]; ++u) here[u] = -x_level[u] / static_cast<double>(m + 1);
      for (int64_t i = 1; i < level; ++i) {
        const double* right = next + plan.start[level - i];
        const int64_t columns = plan.power[level - i];
        for (int64_t u = 0; u < plan.power[i]; ++u) {
          const double left = x[plan.start[i] + u];
          for (int64_t v = 0; v < columns; ++v) here[u * columns + v] -= left * right[v];
        }
      }
    }
  }
}

void logarithm_quotients_backward(const SignaturePlan& plan, const double* x, double* blocks, double* grad_x,
                                  double* grad_blocks) noexcept {
  for (int64_t m = 1; m < plan.depth; ++m) {
    const double* grad = quotient(plan, grad_blocks, m);
    const double* next = quotient(plan, blocks, m + 1);
    double* grad_next = quotient(plan, grad_blocks, m + 1);
    for (int64_t level = 1; level <= plan.depth - m; ++level) {
      const double* g = grad + plan.start[level];
      for (int64_t u = 0; u < plan.power[level]; ++u) {
        grad_x[plan.start[level] + u] -= g[u] / static_cast<double>(m + 1);
      }
      for (int64_t i = 1; i < level; ++i) {
        const int64_t columns = plan.power[level - i];
        const double* right = next + plan.start[level - i];
        double* grad_right = grad_next + plan.start[level - i];
        for (int64_t u = 0; u < plan.power[i]; ++u) {
          const double left = x[plan.start[i] + u];
          double sum = 0;
          for (int64_t v = 0; v < columns; ++v) {
            sum += g[u * columns + v] * right[v];
            grad_right[v] -= g[u * columns + v] * left;
          }
          grad_x[plan.start[i] + u] -= sum;
        }
      }
    }
  }
}

// coefficients at the words: x(w), and for the logarithm the products over all cuts of w
template <typename T>
void read_words(const SignaturePlan& plan, const double* x, const double* q1, T* out) noexcept {
  const int32_t* split = plan.splits;
  for (int64_t w = 0; w < plan.words; ++w) {
    const int64_t length = plan.length[w];
    double sum = x[plan.start[length] + plan.position[w]];
    if (plan.kind == SignatureKind::Logarithm) {
      for (int64_t i = 1; i < length; ++i, split += 2) {
        sum += x[plan.start[i] + split[0]] * q1[plan.start[length - i] + split[1]];
      }
    }
    out[w] = static_cast<T>(sum);
  }
}

template <typename T>
void read_words_backward(const SignaturePlan& plan, const double* x, const double* q1, const T* grad_out,
                         double* grad_x, double* grad_q1) noexcept {
  const int32_t* split = plan.splits;
  for (int64_t w = 0; w < plan.words; ++w) {
    const int64_t length = plan.length[w];
    const double grad = grad_out[w];
    grad_x[plan.start[length] + plan.position[w]] += grad;
    if (plan.kind == SignatureKind::Signature) continue;
    for (int64_t i = 1; i < length; ++i, split += 2) {
      const int64_t left = plan.start[i] + split[0], right = plan.start[length - i] + split[1];
      grad_x[left] += grad * q1[right];
      grad_q1[right] += grad * x[left];
    }
  }
}

template <typename T>
void segment(const SignaturePlan& plan, const T* points, int64_t i, double* d) noexcept {
  const T* from = points + i * plan.channels;
  for (int64_t c = 0; c < plan.channels; ++c) d[c] = static_cast<double>(from[plan.channels + c]) - from[c];
}

template <int kChannels, typename T>
void signature_of(const SignaturePlan& plan, const T* points, int64_t count, double* x, double* d,
                  double* horner) noexcept {
  std::fill(x, x + plan.start[plan.depth + 1], 0.0);
  for (int64_t i = 0; i + 1 < count; ++i) {
    segment(plan, points, i, d);
    append_segment<kChannels>(plan, d, x, horner);
  }
}

int64_t checkpoint_stride(int64_t points) noexcept {
  return std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(points))));
}

}  // namespace

int64_t SignaturePlan::forward_scratch() const {
  // x, the segment, Horner's levels, the quotients
  return start[depth + 1] + channels + start[depth] + depth * start[depth];
}

int64_t SignaturePlan::backward_scratch(int64_t points) const {
  const int64_t stride = checkpoint_stride(points);
  const int64_t states = stride + points / stride + 2;
  return (states + 1) * start[depth + 1] + 2 * channels + 2 * start[depth] + 2 * depth * start[depth];
}

template <typename T>
void signature(const SignaturePlan& plan, const T* points, int64_t count, T* out, double* scratch) noexcept {
  double* x = scratch;
  double* d = x + plan.start[plan.depth + 1];
  double* horner = d + plan.channels;
  double* quotients = horner + plan.start[plan.depth];
  switch (plan.channels) {
    // small widths known at compile time: the innermost loop unrolls
    case 2:
      signature_of<2>(plan, points, count, x, d, horner);
      break;
    case 3:
      signature_of<3>(plan, points, count, x, d, horner);
      break;
    case 4:
      signature_of<4>(plan, points, count, x, d, horner);
      break;
    case 5:
      signature_of<5>(plan, points, count, x, d, horner);
      break;
    case 6:
      signature_of<6>(plan, points, count, x, d, horner);
      break;
    case 7:
      signature_of<7>(plan, points, count, x, d, horner);
      break;
    case 8:
      signature_of<8>(plan, points, count, x, d, horner);
      break;
    default:
      signature_of<0>(plan, points, count, x, d, horner);
      break;
  }
  if (plan.kind == SignatureKind::Logarithm) logarithm_quotients(plan, x, quotients);
  read_words(plan, x, quotients, out);
}

template <typename T>
void signature_backward(const SignaturePlan& plan, const T* points, int64_t count, const T* grad_out,
                        T* grad_points, double* scratch) noexcept {
  const int64_t size = plan.start[plan.depth + 1], block = plan.depth * plan.start[plan.depth];
  const int64_t stride = checkpoint_stride(count), segments = count - 1;
  double* d = scratch;
  double* grad_d = d + plan.channels;
  double* horner = grad_d + plan.channels;
  double* grad_horner = horner + plan.start[plan.depth];
  double* quotients = grad_horner + plan.start[plan.depth];
  double* grad_quotients = quotients + block;
  double* grad_x = grad_quotients + block;
  double* inside = grad_x + size;  // states inside one stretch of `stride` segments, and its end
  double* checkpoints = inside + (stride + 1) * size;  // states where stretches begin

  // forward, keeping the state where each stretch begins
  double* x = inside;
  std::fill(x, x + size, 0.0);
  for (int64_t i = 0; i < segments; ++i) {
    if (i % stride == 0) std::copy(x, x + size, checkpoints + i / stride * size);
    segment(plan, points, i, d);
    append_segment<0>(plan, d, x, horner);
  }

  std::fill(grad_x, grad_x + size, 0.0);
  std::fill(grad_quotients, grad_quotients + block, 0.0);
  if (plan.kind == SignatureKind::Logarithm) logarithm_quotients(plan, x, quotients);
  read_words_backward(plan, x, quotients, grad_out, grad_x, grad_quotients);
  if (plan.kind == SignatureKind::Logarithm) {
    logarithm_quotients_backward(plan, x, quotients, grad_x, grad_quotients);
  }

  for (int64_t begin = (segments - 1) / stride * stride; begin >= 0 && segments > 0; begin -= stride) {
    const int64_t end = std::min(begin + stride, segments);
    const double* checkpoint = checkpoints + begin / stride * size;
    std::copy(checkpoint, checkpoint + size, inside);
    for (int64_t i = begin; i + 1 < end; ++i) {
      double* next = inside + (i - begin + 1) * size;
      std::copy(next - size, next, next);
      segment(plan, points, i, d);
      append_segment<0>(plan, d, next, horner);
    }
    for (int64_t i = end - 1; i >= begin; --i) {
      segment(plan, points, i, d);
      std::fill(grad_d, grad_d + plan.channels, 0.0);
      append_segment_backward(plan, d, inside + (i - begin) * size, grad_x, grad_d, horner, grad_horner);
      T* grad = grad_points + i * plan.channels;
      for (int64_t c = 0; c < plan.channels; ++c) {
        grad[plan.channels + c] += static_cast<T>(grad_d[c]);
        grad[c] -= static_cast<T>(grad_d[c]);
      }
    }
  }
}

template void signature<float>(const SignaturePlan&, const float*, int64_t, float*, double*) noexcept;
template void signature<double>(const SignaturePlan&, const double*, int64_t, double*, double*) noexcept;
template void signature_backward<float>(const SignaturePlan&, const float*, int64_t, const float*, float*,
                                        double*) noexcept;
template void signature_backward<double>(const SignaturePlan&, const double*, int64_t, const double*, double*,
                                         double*) noexcept;

}  // namespace fastweights::kernels
