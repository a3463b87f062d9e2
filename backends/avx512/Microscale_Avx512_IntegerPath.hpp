#ifndef MICROSCALE_AVX512_INTEGERPATH_HPP
#define MICROSCALE_AVX512_INTEGERPATH_HPP

#include <Microscale_Avx512_Panels.hpp>
#include <Microscale_Avx512_Vector.hpp>
#include <stdint.h>
#include <string.h>

// Products of FP4 by FP4 by VPDPBUSD, with the bits of the reference.
//
// Twice an E2M1 value is an integer from -12 to 12. Those of B get 12 added, because the instruction wants one operand
// without a sign; the sum over a piece of k then has 12 * sum(A) too much, which its start value makes good. The start
// value is more than that: it is made of the bits of the float 1.5 * 2^23, to which an integer below 2^22 can be added
// as if the whole were an integer. So, without a conversion, the sum of a piece is the float `magic + dot`, and
//
//   t   = fma(magic + dot, scale of B, -magic * scale of B) = dot * scale of B        exactly
//   acc = fma(t, scale of A / 4, acc)                                                  rounded once, as the reference
//
// A step of 32 columns of K is 8 VPDPBUSD and 2 fused multiply-adds for each vector of 16 results. Pieces are 16 columns
// where either operand has blocks of 16, and 32 otherwise.
//
// Panels, as in Microscale_Avx512_Expand.hpp, of dwords: lane j of a vector has four codes of row j. A vector of codes
// becomes two: columns 0, 2, 4, 6 of its eight and columns 1, 3, 5, 7, the same in both operands.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// A slab of K of one group of 16 rows.
struct IntegerPanel {
  static constexpr int columns = max_stretch;
  static constexpr int most_pieces = columns / 16;
  alignas(64) uint8_t quads[columns * group_rows];
  alignas(64) float scales[most_pieces * group_rows];  ///< of B; a quarter of those of A
  union {
    alignas(64) int32_t starts[most_pieces * group_rows];  ///< of A: bits of `magic` less 12 * sum of a piece
    alignas(64) float offsets[most_pieces * group_rows];   ///< of B: -magic * scale
  };
};

inline constexpr float integer_magic = 0x1.8p23f;

/// Whether the float arithmetic above is exact: no scaled dot product is subnormal, and none overflows (they are below
/// 1153 * 2^(58 + 58)).
inline bool is_exact_in_integers(const ExponentRange& scales) { return scales.low >= -60 && scales.high <= 58; }

/// Expands codes of one group. `block` and `type` are the operand's; Piece: 16 or 32, a divisor of block. Returns the
/// range of the scales.
template <bool OfB, int Piece>
ExponentRange expand_integers(ScaleType type, int block, const uint8_t* codes, const uint8_t* scales, int count,
                              IntegerPanel& panel) {
  const __m512i nibble = _mm512_set1_epi8(0x0f), twelves = _mm512_set1_epi8(12);
  // Doubled E2M1 values, 16 bytes for each 128-bit part.
  const __m512i doubled = _mm512_broadcast_i32x4(_mm_set_epi8(-12, -8, -6, -4, -3, -2, -1, 0, 12, 8, 6, 4, 3, 2, 1, 0));
  const __m512i table = OfB ? _mm512_add_epi8(doubled, twelves) : doubled;
  const __m512i magic = _mm512_castps_si512(_mm512_set1_ps(integer_magic));
  const CodeValues<4> values(element_table<E2M1>);
  BlockScales<4> block_scales(type);
  uint8_t* quads = panel.quads;
  int p = 0;  // where the piece's scales are in the panel
  for (int begin = 0; begin < count; begin += block, scales += group_rows) {
    const int length = count - begin < block ? count - begin : block;
    const __m512 scale = block_scales.next(scales, values, codes, length);
    for (int done = 0; done < length; done += Piece, p += group_rows) {
      __m512i sum = _mm512_setzero_si512();
#pragma GCC unroll 4
      for (int i = 0; i < Piece / 8; ++i, codes += 64, quads += 128) {
        const __m512i x = _mm512_loadu_si512(codes);
        const __m512i even = _mm512_shuffle_epi8(table, _mm512_and_si512(x, nibble));
        const __m512i odd = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(x, 4), nibble));
        _mm512_store_si512(quads, even);
        _mm512_store_si512(quads + 64, odd);
        if constexpr (!OfB) {
          sum = _mm512_dpbusd_epi32(sum, twelves, even);
          sum = _mm512_dpbusd_epi32(sum, twelves, odd);
        }
      }
      if constexpr (OfB) {
        _mm512_store_ps(panel.scales + p, scale);
        _mm512_store_ps(panel.offsets + p, _mm512_mul_ps(scale, _mm512_set1_ps(-integer_magic)));
      } else {
        _mm512_store_ps(panel.scales + p, _mm512_mul_ps(scale, _mm512_set1_ps(0.25f)));
        _mm512_store_si512(panel.starts + p, _mm512_sub_epi32(magic, sum));
      }
    }
  }
  return block_scales.range();
}

/// c(r, 16 v + j) += for Rows rows from `row` of A's group on and Vectors groups of B, over `pieces` pieces of Quads
/// vectors.
template <int Quads, int Rows, int Vectors>
inline void multiply_integer_tile(const IntegerPanel& a, int row, const IntegerPanel* b, int pieces, float* c,
                                  int64_t c_pitch) {
  __m512 sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_loadu_ps(c + r * c_pitch + 16 * v);
  const uint8_t* a_quads = a.quads + 4 * row;
  const int32_t* starts = a.starts + row;
  const float* a_scales = a.scales + row;
  int64_t offset = 0;  // of the piece's first quads in a panel
  for (int p = 0; p < pieces; ++p, starts += group_rows, a_scales += group_rows) {
    __m512i dots[Rows][Vectors];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) dots[r][v] = _mm512_set1_epi32(starts[r]);
#pragma GCC unroll 8
    for (int q = 0; q < Quads; ++q, offset += 64, a_quads += 64) {
      __m512i columns[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) columns[v] = _mm512_load_si512(b[v].quads + offset);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        int32_t quad;
        memcpy(&quad, a_quads + 4 * r, sizeof quad);
        const __m512i x = _mm512_set1_epi32(quad);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) dots[r][v] = _mm512_dpbusd_epi32(dots[r][v], columns[v], x);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const __m512 scale = _mm512_load_ps(b[v].scales + p * group_rows);
      const __m512 magic = _mm512_load_ps(b[v].offsets + p * group_rows);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const __m512 t = _mm512_fmadd_ps(_mm512_castsi512_ps(dots[r][v]), scale, magic);
        sums[r][v] = _mm512_fmadd_ps(t, _mm512_set1_ps(a_scales[r]), sums[r][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) _mm512_storeu_ps(c + r * c_pitch + 16 * v, sums[r][v]);
}

/// c += A B^T for `rows` rows and `vectors` * 16 columns over the pieces of a slab. a: panels of all rows; b: of the vectors.
/// Register tiles are 4 x 3: 12 dot products, 12 sums and 3 vectors of B in 32 registers.
template <int Quads, int Vectors>
void multiply_integers(int rows, int pieces, const IntegerPanel* a, const IntegerPanel* b, float* c, int64_t c_pitch) {
  int r = 0;
  const auto at = [&](int row) -> const IntegerPanel& { return a[row / group_rows]; };
  for (; r + 4 <= rows; r += 4)
    multiply_integer_tile<Quads, 4, Vectors>(at(r), r % group_rows, b, pieces, c + r * c_pitch, c_pitch);
  if (r + 2 <= rows) {
    multiply_integer_tile<Quads, 2, Vectors>(at(r), r % group_rows, b, pieces, c + r * c_pitch, c_pitch);
    r += 2;
  }
  if (r < rows) multiply_integer_tile<Quads, 1, Vectors>(at(r), r % group_rows, b, pieces, c + r * c_pitch, c_pitch);
}
template <int Quads>
void multiply_integers(int rows, int vectors, int pieces, const IntegerPanel* a, const IntegerPanel* b, float* c,
                       int64_t c_pitch) {
  if (vectors == 3)
    multiply_integers<Quads, 3>(rows, pieces, a, b, c, c_pitch);
  else if (vectors == 2)
    multiply_integers<Quads, 2>(rows, pieces, a, b, c, c_pitch);
  else
    multiply_integers<Quads, 1>(rows, pieces, a, b, c, c_pitch);
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
