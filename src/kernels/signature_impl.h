#pragma once

#include <cstdint>

#include "kernels/signature.h"

/// The code of signature(), compiled once for each instruction set inside a namespace of its own: FW_ISA
/// names it. Nothing here may be an inline function of the standard library that the linker could share
/// between those files.

namespace fastweights::kernels::FW_ISA {

// one value of each of several paths; the compiler splits it into the registers it has
using SignaturePack = double __attribute__((vector_size(kSignatureLanes * sizeof(double))));

// scratch from its first position that is aligned for a vector
template <typename V>
V* aligned(double* scratch) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(scratch);
  return reinterpret_cast<V*>((address + alignof(V) - 1) / alignof(V) * alignof(V));
}

inline int64_t larger(int64_t a, int64_t b) noexcept { return a > b ? a : b; }
inline int64_t smaller(int64_t a, int64_t b) noexcept { return a < b ? a : b; }

template <typename V>
double& lane(V& value, int64_t l) noexcept {
  return reinterpret_cast<double*>(&value)[l];
}

template <typename V>
void clear(V* values, int64_t count) noexcept {
  for (int64_t i = 0; i < count; ++i) values[i] = V{};
}

template <typename V>
void copy(const V* from, int64_t count, V* to) noexcept {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

// Horner's scheme of one level of x (x) exp(d):
//   H_1 = x_1 + d/k,  H_j = x_j + H_(j-1) (x) d/(k-j+1),  new x_k = x_k + H_(k-1) (x) d
// leaves H_1 .. H_(k-1) in `horner` at the positions of their levels
template <typename V>
void horner_levels(const SignaturePlan& plan, int64_t level, const V* x, const V* d, V* horner) noexcept {
  const int64_t channels = plan.channels;
  for (int64_t c = 0; c < channels; ++c) horner[c] = x[c] + d[c] * (1.0 / static_cast<double>(level));
  for (int64_t j = 2; j < level; ++j) {
    const double scale = 1.0 / static_cast<double>(level - j + 1);
    const V* below = horner + plan.start[j - 1];
    const V* x_j = x + plan.start[j];
    V* here = horner + plan.start[j];
    for (int64_t u = 0; u < plan.power[j - 1]; ++u) {
      const V left = below[u] * scale;
      for (int64_t c = 0; c < channels; ++c) here[u * channels + c] = x_j[u * channels + c] + left * d[c];
    }
  }
}

// x <- x (x) exp(d), from the highest level down so that lower ones are still the old ones (Chen's identity)
template <typename V>
void append_segment(const SignaturePlan& plan, const V* d, V* x, V* horner) noexcept {
  const int64_t channels = plan.channels;
  for (int64_t level = plan.depth; level >= 2; --level) {
    horner_levels(plan, level, x, d, horner);
    const V* below = horner + plan.start[level - 1];
    V* here = x + plan.start[level];
    for (int64_t u = 0; u < plan.power[level - 1]; ++u) {
      const V left = below[u];
      for (int64_t c = 0; c < channels; ++c) here[u * channels + c] += left * d[c];
    }
  }
  for (int64_t c = 0; c < channels; ++c) x[c] += d[c];
}

// turns the gradient of x (x) exp(d) into that of x, in place, and adds that of d
template <typename V>
void append_segment_backward(const SignaturePlan& plan, const V* d, const V* x, V* grad_x, V* grad_d,
                             V* horner, V* grad_horner) noexcept {
  const int64_t channels = plan.channels;
  for (int64_t c = 0; c < channels; ++c) grad_d[c] += grad_x[c];
  for (int64_t level = 2; level <= plan.depth; ++level) {
    horner_levels(plan, level, x, d, horner);
    const V* grad = grad_x + plan.start[level];
    for (int64_t j = level; j >= 2; --j) {
      // H_j = x_j + H_(j-1) (x) d * scale; the level itself has scale 1
      const double scale = 1.0 / static_cast<double>(level - j + 1);
      const V* below = horner + plan.start[j - 1];
      V* grad_below = grad_horner + plan.start[j - 1];
      V* grad_x_below = grad_x + plan.start[j - 1];
      for (int64_t u = 0; u < plan.power[j - 1]; ++u) {
        V sum{};
        const V left = below[u] * scale;
        for (int64_t c = 0; c < channels; ++c) {
          sum += grad[u * channels + c] * d[c];
          grad_d[c] += grad[u * channels + c] * left;
        }
        grad_below[u] = sum * scale;
        grad_x_below[u] += grad_below[u];
      }
      grad = grad_below;
    }
    for (int64_t c = 0; c < channels; ++c) grad_d[c] += grad[c] * (1.0 / static_cast<double>(level));
  }
}

// log(1 + x) = x Q_1 with Q_m = 1/m - x Q_(m+1) and Q_N = 1/N: Q_m is needed up to level N - m only.
// Q_m without its constant part lies at its own block, in the same order of levels as x.
template <typename V>
V* quotient(const SignaturePlan& plan, V* blocks, int64_t m) noexcept {
  return blocks + (m - 1) * plan.start[plan.depth];
}

template <typename V>
void logarithm_quotients(const SignaturePlan& plan, const V* x, V* blocks) noexcept {
  for (int64_t m = plan.depth - 1; m >= 1; --m) {
    V* q = quotient(plan, blocks, m);
    const V* next = quotient(plan, blocks, m + 1);
    const double scale = -1.0 / static_cast<double>(m + 1);
    for (int64_t level = 1; level <= plan.depth - m; ++level) {
      V* here = q + plan.start[level];
      const V* x_level = x + plan.start[level];
      for (int64_t u = 0; u < plan.power[level]; ++u) here[u] = x_level[u] * scale;
      for (int64_t i = 1; i < level; ++i) {
        const V* right = next + plan.start[level - i];
        const int64_t columns = plan.power[level - i];
        for (int64_t u = 0; u < plan.power[i]; ++u) {
          const V left = x[plan.start[i] + u];
          for (int64_t v = 0; v < columns; ++v) here[u * columns + v] -= left * right[v];
        }
      }
    }
  }
}

template <typename V>
void logarithm_quotients_backward(const SignaturePlan& plan, const V* x, V* blocks, V* grad_x,
                                  V* grad_blocks) noexcept {
  for (int64_t m = 1; m < plan.depth; ++m) {
    const V* grad = quotient(plan, grad_blocks, m);
    const V* next = quotient(plan, blocks, m + 1);
    V* grad_next = quotient(plan, grad_blocks, m + 1);
    const double scale = -1.0 / static_cast<double>(m + 1);
    for (int64_t level = 1; level <= plan.depth - m; ++level) {
      const V* g = grad + plan.start[level];
      for (int64_t u = 0; u < plan.power[level]; ++u) grad_x[plan.start[level] + u] += g[u] * scale;
      for (int64_t i = 1; i < level; ++i) {
        const int64_t columns = plan.power[level - i];
        const V* right = next + plan.start[level - i];
        V* grad_right = grad_next + plan.start[level - i];
        for (int64_t u = 0; u < plan.power[i]; ++u) {
          const V left = x[plan.start[i] + u];
          V sum{};
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
template <typename V, typename T>
void read_words(const SignaturePlan& plan, const V* x, const V* q1, const SignatureTask<T>* tasks,
                int64_t count) noexcept {
  const int32_t* split = plan.splits;
  for (int64_t w = 0; w < plan.words; ++w) {
    const int64_t length = plan.length[w];
    V sum = x[plan.start[length] + plan.position[w]];
    if (plan.kind == SignatureKind::Logarithm) {
      for (int64_t i = 1; i < length; ++i, split += 2) {
        sum += x[plan.start[i] + split[0]] * q1[plan.start[length - i] + split[1]];
      }
    }
    for (int64_t l = 0; l < count; ++l) tasks[l].out[w] = static_cast<T>(lane(sum, l));
  }
}

template <typename V, typename T>
void read_words_backward(const SignaturePlan& plan, const V* x, const V* q1,
                         const SignatureBackwardTask<T>* tasks, int64_t count, V* grad_x,
                         V* grad_q1) noexcept {
  const int32_t* split = plan.splits;
  for (int64_t w = 0; w < plan.words; ++w) {
    const int64_t length = plan.length[w];
    V grad{};
    for (int64_t l = 0; l < count; ++l) lane(grad, l) = tasks[l].grad_out[w];
    grad_x[plan.start[length] + plan.position[w]] += grad;
    if (plan.kind == SignatureKind::Signature) continue;
    for (int64_t i = 1; i < length; ++i, split += 2) {
      const int64_t left = plan.start[i] + split[0], right = plan.start[length - i] + split[1];
      grad_x[left] += grad * q1[right];
      grad_q1[right] += grad * x[left];
    }
  }
}

// increment i of each path; a path that is shorter stands still, which its signature does not notice
template <typename V, typename Task>
void segment(const SignaturePlan& plan, const Task* tasks, int64_t count, int64_t i, V* d) noexcept {
  for (int64_t l = 0; l < count; ++l) {
    const bool inside = i + 1 < tasks[l].count;
    const auto* from = tasks[l].points + i * plan.channels;
    for (int64_t c = 0; c < plan.channels; ++c) {
      lane(d[c], l) =
          inside ? static_cast<double>(from[plan.channels + c]) - static_cast<double>(from[c]) : 0.0;
    }
  }
}

template <typename Task>
int64_t longest(const Task* tasks, int64_t count) noexcept {
  int64_t points = 0;
  for (int64_t l = 0; l < count; ++l) points = larger(points, tasks[l].count);
  return points;
}

template <typename V, typename T>
void forward_lanes(const SignaturePlan& plan, const SignatureTask<T>* tasks, int64_t count,
                   double* scratch) noexcept {
  V* x = aligned<V>(scratch);
  V* d = x + plan.start[plan.depth + 1];
  V* horner = d + plan.channels;
  V* quotients = horner + plan.start[plan.depth];
  clear(x, plan.start[plan.depth + 1]);
  clear(d, plan.channels);
  const int64_t points = longest(tasks, count);
  for (int64_t i = 0; i + 1 < points; ++i) {
    segment(plan, tasks, count, i, d);
    append_segment(plan, d, x, horner);
  }
  if (plan.kind == SignatureKind::Logarithm) logarithm_quotients(plan, x, quotients);
  read_words(plan, x, quotients, tasks, count);
}

template <typename V, typename T>
void backward_lanes(const SignaturePlan& plan, const SignatureBackwardTask<T>* tasks, int64_t count,
                    double* scratch) noexcept {
  const int64_t size = plan.start[plan.depth + 1], block = plan.depth * plan.start[plan.depth];
  const int64_t points = longest(tasks, count), stretch = plan.stretch(points), segments = points - 1;
  V* d = aligned<V>(scratch);
  V* grad_d = d + plan.channels;
  V* horner = grad_d + plan.channels;
  V* grad_horner = horner + plan.start[plan.depth];
  V* quotients = grad_horner + plan.start[plan.depth];
  V* grad_quotients = quotients + block;
  V* grad_x = grad_quotients + block;
  V* inside = grad_x + size;                       // states inside one stretch
  V* checkpoints = inside + (stretch + 1) * size;  // states where stretches begin

  V* x = inside;
  clear(x, size);
  clear(d, plan.channels);
  for (int64_t i = 0; i < segments; ++i) {
    if (i % stretch == 0) copy(x, size, checkpoints + i / stretch * size);
    segment(plan, tasks, count, i, d);
    append_segment(plan, d, x, horner);
  }

  clear(grad_x, size);
  clear(grad_quotients, block);
  const bool logarithm = plan.kind == SignatureKind::Logarithm;
  if (logarithm) logarithm_quotients(plan, x, quotients);
  read_words_backward(plan, x, quotients, tasks, count, grad_x, grad_quotients);
  if (logarithm) logarithm_quotients_backward(plan, x, quotients, grad_x, grad_quotients);

  for (int64_t begin = (segments - 1) / stretch * stretch; begin >= 0 && segments > 0; begin -= stretch) {
    const int64_t end = smaller(begin + stretch, segments);
    copy(checkpoints + begin / stretch * size, size, inside);
    for (int64_t i = begin; i + 1 < end; ++i) {
      V* next = inside + (i - begin + 1) * size;
      copy(next - size, size, next);
      segment(plan, tasks, count, i, d);
      append_segment(plan, d, next, horner);
    }
    for (int64_t i = end - 1; i >= begin; --i) {
      segment(plan, tasks, count, i, d);
      clear(grad_d, plan.channels);
      append_segment_backward(plan, d, inside + (i - begin) * size, grad_x, grad_d, horner, grad_horner);
      for (int64_t l = 0; l < count; ++l) {
        if (i + 1 >= tasks[l].count) continue;
        T* grad = tasks[l].grad_points + i * plan.channels;
        for (int64_t c = 0; c < plan.channels; ++c) {
          grad[plan.channels + c] += static_cast<T>(lane(grad_d[c], l));
          grad[c] -= static_cast<T>(lane(grad_d[c], l));
        }
      }
    }
  }
}

template <typename T>
void signature(const SignaturePlan& plan, const SignatureTask<T>* tasks, int64_t count,
               double* scratch) noexcept {
  if (count == 1) return forward_lanes<double>(plan, tasks, 1, scratch);
  for (int64_t i = 0; i < count; i += kSignatureLanes) {
    forward_lanes<SignaturePack>(plan, tasks + i, smaller(kSignatureLanes, count - i), scratch);
  }
}

template <typename T>
void signature_backward(const SignaturePlan& plan, const SignatureBackwardTask<T>* tasks, int64_t count,
                        double* scratch) noexcept {
  if (count == 1) return backward_lanes<double>(plan, tasks, 1, scratch);
  for (int64_t i = 0; i < count; i += kSignatureLanes) {
    backward_lanes<SignaturePack>(plan, tasks + i, smaller(kSignatureLanes, count - i), scratch);
  }
}

template void signature<float>(const SignaturePlan&, const SignatureTask<float>*, int64_t, double*) noexcept;
template void signature<double>(const SignaturePlan&, const SignatureTask<double>*, int64_t,
                                double*) noexcept;
template void signature_backward<float>(const SignaturePlan&, const SignatureBackwardTask<float>*, int64_t,
                                        double*) noexcept;
template void signature_backward<double>(const SignaturePlan&, const SignatureBackwardTask<double>*, int64_t,
                                         double*) noexcept;

}  // namespace fastweights::kernels::FW_ISA
