#ifndef MICROSCALE_AVX512_FMAPATH_HPP
#define MICROSCALE_AVX512_FMAPATH_HPP

#include <Microscale_Avx512_Expand.hpp>
#include <Microscale_Avx512_RegisterTiles.hpp>
#include <stdint.h>

// Products of panels of floats without their block scales: the reference's operations in its order, for any values, and
// so its bits.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// A stretch of K of one operand. Its panels are `stride` floats apart, and the scales of its panels `scale_stride`.
struct FloatPanels {
  const float* values;  ///< 16 a column of K
  int64_t stride;
  const float* factors;    ///< 16 a block: see expand_scales
  const float* exponents;  ///< 16 a block
  int64_t scale_stride;
  int block;  ///< columns of a block, of which the stretch begins with a whole one; 0: one block, without a scale
};

/// c(r, 16 v + j) += A(r) B(v, j), piece by piece, for Rows rows and Vectors vectors from A's row and B's vector given.
template <int Rows, int Vectors>
inline void multiply_fma_tile(const FloatPanels& a, int row, const FloatPanels& b, int vector, int count, float* c,
                              int64_t c_pitch) {
  const float* rows = a.values + row / group_rows * a.stride + row % group_rows;
  const float* columns = b.values + vector * b.stride;
  const int64_t row_scale = row / group_rows * a.scale_stride + row % group_rows;
  const int64_t column_scale = vector * b.scale_stride;
  int a_block = 0, b_block = 0;
  int a_end = a.block > 0 ? a.block : count, b_end = b.block > 0 ? b.block : count;
  for (int k = 0; k < count;) {
    int end = a_end < b_end ? a_end : b_end;
    if (end > count) end = count;
    __m512 dots[Rows][Vectors];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) dots[r][v] = _mm512_setzero_ps();
    for (; k < end; ++k, rows += group_rows, columns += group_rows) {
      __m512 x[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) x[v] = _mm512_load_ps(columns + v * b.stride);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const __m512 y = _mm512_set1_ps(rows[r]);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) dots[r][v] = _mm512_fmadd_ps(y, x[v], dots[r][v]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const int64_t at = row_scale + a_block * group_rows + r;
      const __m512 a_factor = _mm512_set1_ps(a.block > 0 ? a.factors[at] : 1.0f);
      const __m512 a_exponent = _mm512_set1_ps(a.block > 0 ? a.exponents[at] : 0.0f);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        const int64_t with = column_scale + v * b.scale_stride + b_block * group_rows;
        const __m512 factor = _mm512_mul_ps(a_factor, _mm512_load_ps(b.factors + with));
        const __m512 exponent = _mm512_add_ps(a_exponent, _mm512_load_ps(b.exponents + with));
        float* to = c + r * c_pitch + 16 * v;
        const __m512 piece = _mm512_scalef_ps(_mm512_mul_ps(dots[r][v], factor), exponent);
        _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), piece));
      }
    }
    if (k == a_end) ++a_block, a_end += a.block;
    if (k == b_end) ++b_block, b_end += b.block;
  }
}

/// c += A B^T for `rows` rows and `vectors` * 16 columns over `count` columns of K, going on from the stretch before.
/// b has scales.
inline void multiply_fma(int rows, int vectors, int count, const FloatPanels& a, const FloatPanels& b, float* c,
                         int64_t c_pitch) {
  for_register_tiles(rows, vectors, [&]<int Rows, int Vectors>(int r, int v) {
    multiply_fma_tile<Rows, Vectors>(a, r, b, v, count, c + r * c_pitch + 16 * v, c_pitch);
  });
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
