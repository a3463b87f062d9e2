#ifndef MICROSCALE_AVX512_FMAPATH_HPP
#define MICROSCALE_AVX512_FMAPATH_HPP

#include <Microscale_Avx512_Expand.hpp>
#include <Microscale_Avx512_RegisterTiles.hpp>
#include <stdint.h>

// Products of panels of floats, block scales apart: the reference's operations in its order, for any values, and so its
// bits. (It scales by scalbn. A multiplication by a power of two that a float can hold rounds just as that does.)
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// A stretch of K of one operand. Its panels are `stride` floats apart, and the scales of its panels `scale_stride`.
struct FloatPanels {
  const float* values;  ///< 16 a column of K
  int64_t stride;
  int block = 0;  ///< columns of a block, with a whole one at the beginning; 0: one block, without a scale
  const float* scales = nullptr;  ///< 16 a block
  int64_t scale_stride = 0;
  ScaleType type = ScaleType::none;
  ExponentRange scale_range{};  ///< of all its panels
};

/// What is done to the dot product of a piece.
enum class PieceScaling {
  one,       ///< * scale of B
  product,   ///< * (scale of A * scale of B), which is exact
  mixed,     ///< * the UE4M3 scale, then * the E8M0 scale
  exponents  ///< * 2^(exponent of A + exponent of B), where no float can hold that
};

inline PieceScaling piece_scaling(const FloatPanels& a, const FloatPanels& b) {
  if (a.block == 0) return PieceScaling::one;
  if (a.type != b.type) return PieceScaling::mixed;
  const int low = a.scale_range.low + b.scale_range.low, high = a.scale_range.high + b.scale_range.high;
  return low >= -126 && high <= 127 ? PieceScaling::product : PieceScaling::exponents;
}

template <PieceScaling Scaling>
inline __m512 scaled(__m512 dot, __m512 a_scale, __m512 b_scale, bool a_first) {
  if constexpr (Scaling == PieceScaling::one)
    return _mm512_mul_ps(dot, b_scale);
  else if constexpr (Scaling == PieceScaling::product)
    return _mm512_mul_ps(dot, _mm512_mul_ps(a_scale, b_scale));
  else if constexpr (Scaling == PieceScaling::mixed)
    return a_first ? _mm512_mul_ps(_mm512_mul_ps(dot, a_scale), b_scale)
                   : _mm512_mul_ps(_mm512_mul_ps(dot, b_scale), a_scale);
  else
    return _mm512_scalef_ps(dot, _mm512_add_ps(_mm512_getexp_ps(a_scale), _mm512_getexp_ps(b_scale)));
}

/// c(r, 16 v + j) += A(r) B(v, j), piece by piece, for Rows rows and Vectors vectors from A's row and B's vector given.
template <PieceScaling Scaling, int Rows, int Vectors>
inline void multiply_fma_tile(const FloatPanels& a, int row, const FloatPanels& b, int vector, int count, float* c,
                              int64_t c_pitch) {
  constexpr bool both = Scaling != PieceScaling::one;
  // Copies, since the compiler must suppose that a store to C changes the originals.
  const int64_t b_stride = b.stride, b_scale_stride = b.scale_stride;
  const int a_block = both ? a.block : count, b_block = b.block;
  const bool a_first = a.type == ScaleType::ue4m3;
  const float* rows = a.values + row / group_rows * a.stride + row % group_rows;
  const float* columns = b.values + vector * b_stride;
  const float* row_scales = both ? a.scales + row / group_rows * a.scale_stride + row % group_rows : nullptr;
  const float* column_scales = b.scales + vector * b_scale_stride;
  int a_end = a_block, b_end = b_block;
  for (int k = 0; k < count;) {
    int end = a_end < b_end ? a_end : b_end;
    if (end > count) end = count;
    __m512 dots[Rows][Vectors], b_scales[Vectors];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) dots[r][v] = _mm512_setzero_ps();
    for (; k < end; ++k, rows += group_rows, columns += group_rows) {
      __m512 x[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) x[v] = _mm512_load_ps(columns + v * b_stride);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const __m512 y = _mm512_set1_ps(rows[r]);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) dots[r][v] = _mm512_fmadd_ps(y, x[v], dots[r][v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) b_scales[v] = _mm512_load_ps(column_scales + v * b_scale_stride);
    float* to = c;
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r, to += c_pitch) {
      const __m512 a_scale = _mm512_set1_ps(both ? row_scales[r] : 1.0f);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v)
        _mm512_storeu_ps(to + 16 * v, _mm512_add_ps(_mm512_loadu_ps(to + 16 * v),
                                                    scaled<Scaling>(dots[r][v], a_scale, b_scales[v], a_first)));
    }
    if (both && k == a_end) a_end += a_block, row_scales += group_rows;
    if (k == b_end) b_end += b_block, column_scales += group_rows;
  }
}

template <PieceScaling Scaling>
inline void multiply_fma(int rows, int vectors, int count, const FloatPanels& a, const FloatPanels& b, float* c,
                         int64_t c_pitch) {
  for_register_tiles(rows, vectors, [&]<int Rows, int Vectors>(int r, int v) {
    multiply_fma_tile<Scaling, Rows, Vectors>(a, r, b, v, count, c + r * c_pitch + 16 * v, c_pitch);
  });
}

/// c += A B^T for `rows` rows and `vectors` * 16 columns over `count` columns of K, going on from the stretch before.
/// b has scales.
inline void multiply_fma(int rows, int vectors, int count, const FloatPanels& a, const FloatPanels& b, float* c,
                         int64_t c_pitch) {
  switch (piece_scaling(a, b)) {
    case PieceScaling::one:
      return multiply_fma<PieceScaling::one>(rows, vectors, count, a, b, c, c_pitch);
    case PieceScaling::product:
      return multiply_fma<PieceScaling::product>(rows, vectors, count, a, b, c, c_pitch);
    case PieceScaling::mixed:
      return multiply_fma<PieceScaling::mixed>(rows, vectors, count, a, b, c, c_pitch);
    case PieceScaling::exponents:
      return multiply_fma<PieceScaling::exponents>(rows, vectors, count, a, b, c, c_pitch);
  }
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
