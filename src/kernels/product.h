#pragma once

#include <cstdint>

/// Products of matrices whose sums have one order: that of an element depends on nothing but the number of
/// its terms, so a row has the same bits alone and among others. Compiled without contraction to fused
/// multiply-adds, which the ends of loops would get and vectors would not, or the other way round.

namespace fastweights::kernels {

/// A is [rows, terms] with strides of its own, B [terms, columns] and C [rows, columns] are row by row.
struct ProductShape {
  int64_t rows, terms, columns;
  int64_t row_stride, term_stride;  // of A
};

/// C = A B for `count` triples of consecutive matrices; the terms of an element are added one by one.
template <typename T>
void product(const ProductShape& shape, int64_t count, const T* a, const T* b, T* c) noexcept;

/// out[n] = W[n] k[n] with w [count, rows, columns], k [count, columns], out [count, rows]; four sums side by
/// side run over the terms of an element, s0 over 0, 4, 8, ... and so on, and end as (s0 + s1) + (s2 + s3),
/// the last columns % 4 terms after them.
template <typename T>
void matvec(int64_t count, int64_t rows, int64_t columns, const T* w, const T* k, T* out) noexcept;

}  // namespace fastweights::kernels
