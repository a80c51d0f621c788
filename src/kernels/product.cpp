#include "kernels/product.h"

#include <cstring>

namespace fastweights::kernels {
namespace {

// neighbours in a row, as many as the smallest vector register holds
template <typename T>
inline constexpr int64_t kPack = 16 / sizeof(T);

template <typename T>
using Pack __attribute__((vector_size(16))) = T;

template <typename T>
using Four __attribute__((vector_size(4 * sizeof(T)))) = T;

// ROWS x PACKS packs of C stay in registers while the terms go by
template <int ROWS, int PACKS, typename T>
inline void packs_of(const ProductShape& shape, const T* a, const T* b, T* c) noexcept {
  Pack<T> sums[ROWS][PACKS] = {};
  for (int64_t s = 0; s < shape.terms; ++s) {
    Pack<T> row[PACKS];
    std::memcpy(row, b + s * shape.columns, sizeof(row));
    for (int i = 0; i < ROWS; ++i) {
      const T factor = a[i * shape.row_stride + s * shape.term_stride];
      for (int p = 0; p < PACKS; ++p) sums[i][p] += factor * row[p];
    }
  }
  for (int i = 0; i < ROWS; ++i) std::memcpy(c + i * shape.columns, sums[i], sizeof(sums[i]));
}

template <int ROWS, typename T>
inline void column_of(const ProductShape& shape, const T* a, const T* b, T* c) noexcept {
  T sums[ROWS] = {};
  for (int64_t s = 0; s < shape.terms; ++s) {
    const T entry = b[s * shape.columns];
    for (int i = 0; i < ROWS; ++i) sums[i] += a[i * shape.row_stride + s * shape.term_stride] * entry;
  }
  for (int i = 0; i < ROWS; ++i) c[i * shape.columns] = sums[i];
}

template <int ROWS, typename T>
inline void rows_of(const ProductShape& shape, const T* a, const T* b, T* c) noexcept {
  constexpr int kPacks = ROWS == 1 ? 4 : 2;  // with one row alone more of them hide the latency of additions
  int64_t j = 0;
  for (; j + kPacks * kPack<T> <= shape.columns; j += kPacks * kPack<T>)
    packs_of<ROWS, kPacks>(shape, a, b + j, c + j);
  if (ROWS == 1 && j + 2 * kPack<T> <= shape.columns) {
    packs_of<ROWS, 2>(shape, a, b + j, c + j);
    j += 2 * kPack<T>;
  }
  for (; j + kPack<T> <= shape.columns; j += kPack<T>) packs_of<ROWS, 1>(shape, a, b + j, c + j);
  for (; j < shape.columns; ++j) column_of<ROWS>(shape, a, b + j, c + j);
}

// one row of W times k
template <typename T>
inline T dot(int64_t columns, const T* w, const T* k) noexcept {
  Four<T> sums = {};
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    Four<T> left, right;
    std::memcpy(&left, w + j, sizeof(left));
    std::memcpy(&right, k + j, sizeof(right));
    sums += left * right;
  }
  T sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (; j < columns; ++j) sum += w[j] * k[j];
  return sum;
}

// four of them at once: their last additions share the registers
template <typename T>
inline void four_dots(int64_t columns, const T* w, const T* k, T* out) noexcept {
  Four<T> sums[4] = {};
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    Four<T> right;
    std::memcpy(&right, k + j, sizeof(right));
    for (int i = 0; i < 4; ++i) {
      Four<T> left;
      std::memcpy(&left, w + i * columns + j, sizeof(left));
      sums[i] += left * right;
    }
  }
  const Four<T> low01 = __builtin_shufflevector(sums[0], sums[1], 0, 4, 1, 5);
  const Four<T> low23 = __builtin_shufflevector(sums[2], sums[3], 0, 4, 1, 5);
  const Four<T> high01 = __builtin_shufflevector(sums[0], sums[1], 2, 6, 3, 7);
  const Four<T> high23 = __builtin_shufflevector(sums[2], sums[3], 2, 6, 3, 7);
  const Four<T> s0 = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  const Four<T> s1 = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  const Four<T> s2 = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  const Four<T> s3 = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
  Four<T> total = (s0 + s1) + (s2 + s3);
  for (; j < columns; ++j) {
    const Four<T> left = {w[j], w[columns + j], w[2 * columns + j], w[3 * columns + j]};
    total += left * k[j];
  }
  std::memcpy(out, &total, sizeof(total));
}

}  // namespace

template <typename T>
void product(const ProductShape& shape, int64_t count, const T* a, const T* b, T* c) noexcept {
  for (int64_t n = 0; n < count; ++n) {
    int64_t i = 0;
    for (; i + 4 <= shape.rows; i += 4) rows_of<4>(shape, a + i * shape.row_stride, b, c + i * shape.columns);
    for (; i < shape.rows; ++i) rows_of<1>(shape, a + i * shape.row_stride, b, c + i * shape.columns);
    a += shape.rows * shape.terms;
    b += shape.terms * shape.columns;
    c += shape.rows * shape.columns;
  }
}

template <typename T>
void matvec(int64_t count, int64_t rows, int64_t columns, const T* w, const T* k, T* out) noexcept {
  for (int64_t n = 0; n < count; ++n) {
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) four_dots(columns, w + i * columns, k, out + i);
    for (; i < rows; ++i) out[i] = dot(columns, w + i * columns, k);
    w += rows * columns;
    k += columns;
    out += rows;
  }
}

template void product<float>(const ProductShape&, int64_t, const float*, const float*, float*) noexcept;
template void product<double>(const ProductShape&, int64_t, const double*, const double*, double*) noexcept;
template void matvec<float>(int64_t, int64_t, int64_t, const float*, const float*, float*) noexcept;
template void matvec<double>(int64_t, int64_t, int64_t, const double*, const double*, double*) noexcept;

}  // namespace fastweights::kernels
