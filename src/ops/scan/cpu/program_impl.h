#pragma once

#include "ops/scan/cpu/step_impl.h"

/// p, s and beta of some steps for all lanes of a group: read as they are, or made of features; and the way
/// back of their gradients (README.md, section 5).

namespace fastweights::kernels::FW_ISA {

// accumulators that fit into the registers
inline constexpr int kTileRows = 4, kTileColumns = kVectorBytes == 64 ? 4 : 2;

// a matrix of packs, element (i, j) at i row + j column
template <typename T>
struct Strided {
  Pack<T>* at;
  int64_t row, column;
};

// whether a product is added to the destination, or replaces it
enum class Add { No, Yes };

template <typename T, int I, int J, Add How>
inline void product_tile(Strided<T> x, Strided<T> y, Strided<T> out, int64_t count) noexcept {
  Pack<T> sum[I][J];
#pragma GCC unroll 4
  for (int i = 0; i < I; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j)
      sum[i][j] = How == Add::Yes ? out.at[i * out.row + j * out.column] : Pack<T>{};
  }
  for (int64_t k = 0; k < count; ++k) {
    Pack<T> right[J];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) right[j] = y.at[j * y.row + k * y.column];
#pragma GCC unroll 4
    for (int i = 0; i < I; ++i) {
      const Pack<T> left = x.at[i * x.row + k * x.column];
#pragma GCC unroll 4
      for (int j = 0; j < J; ++j) sum[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < I; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) out.at[i * out.row + j * out.column] = sum[i][j];
  }
}

// out = x y^T, or out += x y^T: out [rows, columns], x [rows, count], y [columns, count]
template <typename T, Add How>
inline void make_product(Strided<T> x, Strided<T> y, Strided<T> out, int64_t rows, int64_t columns,
                         int64_t count) noexcept {
  for (int64_t i = 0; i < rows; i += kTileRows) {
    const bool whole = i + kTileRows <= rows;
    for (int64_t j = 0; j < columns; j += kTileColumns) {
      const Strided<T> xi = {x.at + i * x.row, x.row, x.column}, yj = {y.at + j * y.row, y.row, y.column};
      const Strided<T> oij = {out.at + i * out.row + j * out.column, out.row, out.column};
      if (whole && j + kTileColumns <= columns) {
        product_tile<T, kTileRows, kTileColumns, How>(xi, yj, oij, count);
        continue;
      }
      const int64_t down = whole ? kTileRows : 1, across = j + kTileColumns <= columns ? kTileColumns : 1;
      for (int64_t l = i; l < rows && l < i + kTileRows; l += down) {
        for (int64_t k = j; k < columns && k < j + kTileColumns; k += across) {
          const Strided<T> xl = {x.at + l * x.row, x.row, x.column}, yk = {y.at + k * y.row, y.row, y.column};
          const Strided<T> olk = {out.at + l * out.row + k * out.column, out.row, out.column};
          if (down > 1) {
            product_tile<T, kTileRows, 1, How>(xl, yk, olk, count);
          } else if (across > 1) {
            product_tile<T, 1, kTileColumns, How>(xl, yk, olk, count);
          } else {
            product_tile<T, 1, 1, How>(xl, yk, olk, count);
          }
        }
      }
    }
  }
}

// one part of the program, with all that belongs to it
template <typename T>
struct PartArrays {
  const ScanPart* part;
  int64_t entries;  // per row: D, or 1
  T* given;         // [R, rows, H, entries]
  T* weight;        // [H, entries, features]
  const T* mask;    // [B, H, entries]
};

// packs of a part while a group works
template <typename T>
struct PartPacks {
  Pack<T>* weight;  // [entries][features]
  Pack<T>* mask;    // [entries], or null
};

template <typename T>
inline PartArrays<T> part_arrays(const ScanPlan& plan, const ScanArrays<T>& arrays, int which) noexcept {
  if (which == 0) return {&plan.p, plan.width, arrays.p, arrays.p_weight, arrays.p_mask};
  if (which == 1) return {&plan.s, plan.width, arrays.s, arrays.s_weight, arrays.s_mask};
  return {&plan.beta, 1, arrays.beta, arrays.beta_weight, nullptr};
}

// each lane gets its own head's weights and its own sample's mask
template <typename T>
inline void load_weights(const ScanPlan& plan, const PartArrays<T>& part, const ScanGroup& group,
                         PartPacks<T> packs) noexcept {
  const int64_t size = part.entries * part.part->count;
  for (int64_t i = 0; i < size; ++i) {
    packs.weight[i] = Pack<T>{};
    for (int64_t l = 0; l < group.count; ++l)
      element<T>(packs.weight, i, l) = part.weight[group.lanes[l].head * size + i];
  }
  if (!part.mask) return;
  for (int64_t i = 0; i < part.entries; ++i) {
    packs.mask[i] = Pack<T>{};
    for (int64_t l = 0; l < group.count; ++l) {
      const ScanLane& lane = group.lanes[l];
      element<T>(packs.mask, i, l) = part.mask[(lane.sample * plan.heads + lane.head) * part.entries + i];
    }
  }
}

// entries of steps first .. first + count of rows [R, rows, entries] that lane l reads from `base`, to packs
// [count][rows * entries]; a finished lane gets zeros
template <typename T>
inline void load_rows(const ScanGroup& group, const T* base, int64_t row, int64_t first, int64_t count,
                      Pack<T>* out) noexcept {
  const ScanLane& one = group.lanes[0];
  bool alone = group.count > 0 && group.lanes[group.count - 1].sample == one.sample;
  alone = alone && first + count <= one.steps;
  if (alone) {
    // lanes beyond the group's compute values that are never read
    const T* from = base + (one.first + first) * row;
    for (int64_t i = 0; i < count * row; ++i) out[i] = all<T>(from[i]);
    return;
  }
  for (int64_t i = 0; i < count * row; ++i) out[i] = Pack<T>{};
  for (int64_t l = 0; l < group.count;) {
    const ScanLane& lane = group.lanes[l];
    typename Lanes<T>::Bits own = {};
    for (const int64_t sample = lane.sample; l < group.count && group.lanes[l].sample == sample; ++l)
      own[l] = -1;
    const int64_t valid = lane.steps - first < count ? lane.steps - first : count;
    const T* from = base + (lane.first + first) * row;
    for (int64_t i = 0; i < valid * row; ++i) out[i] = own ? all<T>(from[i]) : out[i];
  }
}

// the same where each lane has its own entries: [R, rows, H, entries]
template <typename T>
inline void load_given(const ScanPlan& plan, const PartArrays<T>& part, const ScanGroup& group, int64_t n,
                       Pack<T>* out) noexcept {
  const int64_t rows = part.part->rows, entries = part.entries;
  for (int64_t i = 0; i < rows * entries; ++i) out[i] = Pack<T>{};
  for (int64_t l = 0; l < group.count; ++l) {
    const ScanLane& lane = group.lanes[l];
    if (n >= lane.steps) continue;
    for (int64_t c = 0; c < rows; ++c) {
      const T* from = part.given + (((lane.first + n) * rows + c) * plan.heads + lane.head) * entries;
      for (int64_t i = 0; i < entries; ++i) element<T>(out, c * entries + i, l) = from[i];
    }
  }
}

template <typename T>
inline void store_given(const ScanPlan& plan, const PartArrays<T>& part, const ScanGroup& group, int64_t n,
                        Pack<T>* grad) noexcept {
  if (!part.given) return;
  const int64_t rows = part.part->rows, entries = part.entries;
  for (int64_t l = 0; l < group.count; ++l) {
    const ScanLane& lane = group.lanes[l];
    if (n >= lane.steps) continue;
    for (int64_t c = 0; c < rows; ++c) {
      T* to = part.given + (((lane.first + n) * rows + c) * plan.heads + lane.head) * entries;
      for (int64_t i = 0; i < entries; ++i) to[i] = element<T>(grad, c * entries + i, l);
    }
  }
}

// rows of z that a part is made of, as a matrix: one of each step, or all
template <typename T>
inline Strided<T> part_features(const ScanPlan& plan, const ScanPart& part, Pack<T>* z) noexcept {
  const int64_t row = part.rows == plan.z_rows ? plan.features : plan.z_rows * plan.features;
  return {z + part.begin, row, 1};
}

template <typename T>
inline void apply_form(ScanForm form, const Pack<T>* mask, Pack<T>* x, int64_t entries) noexcept {
  if (form == ScanForm::Softmax) vector_softmax<T>(x, entries);
  for (int64_t i = 0; i < entries; ++i) {
    if (form == ScanForm::Tanh) x[i] = vector_tanh<T>(x[i]);
    if (form == ScanForm::Sigmoid) x[i] = vector_sigmoid<T>(x[i]);
    if (mask) x[i] *= mask[i];
  }
}

// grad of form(x) mask becomes grad of x; `made` is what apply_form left
template <typename T>
inline void form_backward(ScanForm form, const Pack<T>* mask, const Pack<T>* made, Pack<T>* grad,
                          int64_t entries) noexcept {
  if (form == ScanForm::Softmax) {
    const Pack<T> along = dot<T>(made, grad, entries);
    for (int64_t i = 0; i < entries; ++i) grad[i] = made[i] * (grad[i] - along);
    return;
  }
  for (int64_t i = 0; i < entries; ++i) {
    Pack<T> x = made[i];
    if (mask) {
      // where the mask is zero so is the gradient, whatever x was
      const Pack<T> nothing = Pack<T>{};
      x = mask[i] == nothing ? nothing : x / mask[i];
      grad[i] *= mask[i];
    }
    if (form == ScanForm::Tanh) grad[i] *= T{1} - x * x;
    if (form == ScanForm::Sigmoid) grad[i] *= x * (T{1} - x);
  }
}

// packs [steps][rows][entries] of a part from features z [steps][z_rows][F]
template <typename T>
inline void make_part(const ScanPlan& plan, const PartArrays<T>& part, PartPacks<T> packs, Pack<T>* z,
                      int64_t steps, Pack<T>* out) noexcept {
  const int64_t rows = steps * part.part->rows, entries = part.entries;
  make_product<T, Add::No>(part_features<T>(plan, *part.part, z), {packs.weight, part.part->count, 1},
                           {out, entries, 1}, rows, entries, part.part->count);
  for (int64_t r = 0; r < rows; ++r)
    apply_form<T>(part.part->form, part.mask ? packs.mask : nullptr, out + r * entries, entries);
}

// from gradients of what was made to those of features and weights, to which is added
template <typename T>
inline void part_backward(const ScanPlan& plan, const PartArrays<T>& part, PartPacks<T> packs, Pack<T>* z,
                          int64_t steps, Pack<T>* made, Pack<T>* grad, Pack<T>* grad_z,
                          Pack<T>* grad_weight) noexcept {
  const int64_t rows = steps * part.part->rows, entries = part.entries, features = part.part->count;
  for (int64_t r = 0; r < rows; ++r)
    form_backward<T>(part.part->form, part.mask ? packs.mask : nullptr, made + r * entries,
                     grad + r * entries, entries);
  make_product<T, Add::Yes>({grad, entries, 1}, {packs.weight, 1, features},
                            part_features<T>(plan, *part.part, grad_z), rows, features, entries);
  const Strided<T> across = part_features<T>(plan, *part.part, z);
  make_product<T, Add::Yes>({grad, 1, entries}, {across.at, 1, across.row}, {grad_weight, features, 1},
                            entries, features, rows);
}

}  // namespace fastweights::kernels::FW_ISA
