#ifndef MICROSCALE_AVX512_BF16PATH_HPP
#define MICROSCALE_AVX512_BF16PATH_HPP

#include <Microscale_Avx512_Expand.hpp>
#include <Microscale_Avx512_RegisterTiles.hpp>
#include <stdint.h>

// Products of panels of bf16 pairs by VDPBF16PS, block scales included.
//
// The instruction adds the two products of a pair to a binary32 sum, one after the other, each addition rounded once. It
// takes subnormals for zeros and makes subnormal results zero. Products of two bf16 numbers have 16 bits, so they are
// exact as long as they are normal. With a smallest magnitude of 2^a in A and 2^b in B all products, and with them all
// sums, are multiples of 2^(a - 7 + b - 7), so where that is at least 2^-126 nothing is ever subnormal; and where
// the largest are small enough for 2^31 products no sum overflows (products_fit). Then VDPBF16PS is as good as exact
// products and additions: NaN and Inf come out as the reference says, since an Inf or NaN code keeps that meaning
// under a finite scale, a NaN scale makes all codes NaN, and no finite number becomes Inf.
//
// The error. A chunk of at most `bf16_chunk` = L columns is summed from 0: fewer than L roundings, each of at most 2^-24
// of a sum that the chunk's sum of |a b| bounds. P chunks are added up with P - 1 more. Tensor scales and alpha
// round 3 times. Hence c = L + P + 4 in the bound of docs/numerics.md, in which the last 1 covers products of errors.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

inline constexpr int bf16_chunk = 256;  ///< columns whose products are summed before they go into C

/// Whether VDPBF16PS multiplies faster than fused multiply-adds do on this processor: twice as fast on AMD's, and at half
/// the speed on Intel's (measured on a Xeon of the Sapphire Rapids family: one in two cycles, against two a cycle).
inline bool bf16_is_fast() {
#if defined(MICROSCALE_AVX512_MODEL)
  return true;
#else
  __builtin_cpu_init();
  return !__builtin_cpu_is("intel");
#endif
}

/// Whether a product of operands with these ranges is safe to do with bf16.
inline bool products_fit(const ExponentRange& a, const ExponentRange& b) {
  const auto normal = [](const ExponentRange& r) { return r.low >= -126 && r.high <= 127; };
  return normal(a) && normal(b) && a.low + b.low >= -126 + 14 && a.high + 1 + b.high + 1 + 31 <= 127;
}

/// c(r, 16 v + j) += sum over pairs of a(r) * b(v, j), for Rows rows of A's panel and Vectors panels of B.
template <int Rows, int Vectors>
inline void multiply_bf16_tile(const uint32_t* a, const uint32_t* b, int64_t panel_stride, int pairs, float* c,
                               int64_t c_pitch) {
  __m512 sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_setzero_ps();
#pragma GCC unroll 2
  for (int p = 0; p < pairs; ++p, a += group_rows, b += group_rows) {
    __m512bh columns[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) columns[v] = as_bf16(_mm512_load_si512(b + v * panel_stride));
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const __m512bh row = as_bf16(_mm512_set1_epi32(static_cast<int>(a[r])));
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], row, columns[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* to = c + r * c_pitch + 16 * v;
      _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), sums[r][v]));
    }
}

/// c += A B^T for `rows` rows and `vectors` * 16 columns over 2 * pairs columns of K. a and b: their first panels, which
/// hold the same stretch of K and are a_stride and b_stride words apart.
inline void multiply_bf16(int rows, int vectors, int pairs, const uint32_t* a, int64_t a_stride, const uint32_t* b,
                          int64_t b_stride, float* c, int64_t c_pitch) {
  for (int p = 0; p < pairs; p += bf16_chunk / 2) {
    const int length = pairs - p < bf16_chunk / 2 ? pairs - p : bf16_chunk / 2;
    for_register_tiles(rows, vectors, [&]<int Rows, int Vectors>(int r, int v) {
      multiply_bf16_tile<Rows, Vectors>(a + r / group_rows * a_stride + p * group_rows + r % group_rows,
                                        b + v * b_stride + p * group_rows, b_stride, length, c + r * c_pitch + 16 * v,
                                        c_pitch);
    });
  }
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
