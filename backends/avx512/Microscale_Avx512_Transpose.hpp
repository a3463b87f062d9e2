#ifndef MICROSCALE_AVX512_TRANSPOSE_HPP
#define MICROSCALE_AVX512_TRANSPOSE_HPP

#include <Microscale_Avx512_Kernels.hpp>
#include <Microscale_Avx512_Vector.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// Transposes 16 x 16 dwords.
inline void transpose(__m512i (&x)[16]) {
  __m512i y[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {  // y: pairs of rows
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {  // x: lane l of x[i + c] is column 4 l + c of rows i .. i + 3
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i low0 = _mm512_shuffle_i32x4(x[c], x[4 + c], 0x88),
                  low1 = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0x88);
    const __m512i high0 = _mm512_shuffle_i32x4(x[c], x[4 + c], 0xdd),
                  high1 = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0xdd);
    y[c] = _mm512_shuffle_i32x4(low0, low1, 0x88);
    y[8 + c] = _mm512_shuffle_i32x4(low0, low1, 0xdd);
    y[4 + c] = _mm512_shuffle_i32x4(high0, high1, 0x88);
    y[12 + c] = _mm512_shuffle_i32x4(high0, high1, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = y[i];
}

/// The same of floats.
inline void transpose(__m512 (&x)[16]) {
  __m512i y[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) y[i] = _mm512_castps_si512(x[i]);
  transpose(y);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = _mm512_castsi512_ps(y[i]);
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
