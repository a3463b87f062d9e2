#ifndef MICROSCALE_AVX512_DECODEKERNEL_HPP
#define MICROSCALE_AVX512_DECODEKERNEL_HPP

#include <Microscale_Avx512_Expand.hpp>
#include <stdint.h>

// Loops over registers are unrolled, but not in the model, which would take minutes to compile.
#if defined(MICROSCALE_AVX512_MODEL)
#define MICROSCALE_AVX512_UNROLL(N)
#else
#define MICROSCALE_AVX512_UNROLL_(TEXT) _Pragma(#TEXT)
#define MICROSCALE_AVX512_UNROLL(N) MICROSCALE_AVX512_UNROLL_(GCC unroll N)
#endif

// The innermost loops of products with few rows: up to 8 rows of A by 16 rows of B, whose codes come as vectors of one
// dword a row and are decoded in registers, on their way from memory. A piece of k is where neither operand's block
// ends. Its dot product is summed without scales and then scaled and added to the row's sums, piece by piece in
// ascending k, so that no scale can take an operand out of the range in which the multiplications are exact:
//
//  - Int4Product, FP4 by FP4: doubled E2M1 values are integers up to 12; the sums are exact.
//  - Bf16Product, whatever has at most 8 significant bits and lies in 2^-100 .. 2^100 (all codes; bf16 rows that
//    PackedRows looked through; the two halves of a half): products are exact in binary32, and since they and their
//    sums are multiples of 2^-123, no sum is subnormal, which VDPBF16PS would flush.
//  - RealProduct, any float: the fused multiply-adds of the reference in its order.
//
// Scaling is one fused multiply-add where all exponents are ordinary (within +-56: then the product of two scales is a
// normal number, and 2^112 times the largest integer dot product, 4608, does not overflow), and the reference's sequence
// (by the sum of the exponents) otherwise. Int4Product and RealProduct therefore give the reference's bits for all
// inputs. Bf16Product rounds as often as the reference: at most once an element and once a piece.
namespace microscale::MICROSCALE_AVX512_NAMESPACE::Decode {

inline constexpr int max_rows = 8;

// How much of A is packed at a time: dwords of each of `rows` rows, 32 KiB in all, and what pieces that can be (of 16
// elements, 4 in a dword). The pitches of rows are 16 more, which keeps rows out of each other's cache sets.
constexpr int row_words(int rows) { return rows == 1 ? 8192 : rows == 2 ? 4096 : rows <= 4 ? 2048 : 1024; }
constexpr int word_pitch(int rows) { return row_words(rows) + 16; }
constexpr int piece_pitch(int rows) { return row_words(rows) / 4 + 16; }

/// Whether an E8M0 byte stands for 2^-56 .. 2^56.
inline constexpr int first_ordinary = 127 - 56, ordinary_bytes = 113;
inline bool is_ordinary(uint8_t e8m0) { return static_cast<uint8_t>(e8m0 - first_ordinary) < ordinary_bytes; }

// Codes as pairs of bf16. A step takes `vectors` vectors of dwords, whose lanes hold 2 * pairs elements in a row; these
// fall into runs of 2 * half elements, of which pair j of the run holds elements j and j + half.

/// Entries [i, i + 32) of a table, as bf16.
inline __m512i bf16_table(const ElementTable& t, int i) {
  const auto words = [](const uint8_t* bytes) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes)));
  };
  return _mm512_or_si512(words(t.low + i), _mm512_slli_epi16(words(t.high + i), 8));
}

struct Fp4Codes {
  static constexpr int vectors = 1, pairs = 4, half = 4;
  __m512i table;

  explicit Fp4Codes(const ElementTable& t) : table(bf16_table(t, 0)) {}
  /// The table's 32 words are the 16 values twice, so that the fifth bit of an index, of the next code, is no matter.
  __m512i lookup(__m512i words) const { return _mm512_permutexvar_epi16(words, table); }
  void decode(const uint8_t* codes, __m512i* pair) const {
    const __m512i x = _mm512_loadu_si512(codes);
    pair[0] = lookup(x);
    pair[1] = lookup(_mm512_srli_epi16(x, 4));
    pair[2] = lookup(_mm512_srli_epi16(x, 8));
    pair[3] = lookup(_mm512_srli_epi16(x, 12));
  }
};

struct ByteCodes {
  static constexpr int vectors = 1, pairs = 2, half = 2;
  __m512i low[2], high[2];  ///< the bytes of the values
  __m512i sign;

  explicit ByteCodes(const ElementTable& t)
      : low{_mm512_loadu_si512(t.low), _mm512_loadu_si512(t.low + 64)},
        high{_mm512_loadu_si512(t.high), _mm512_loadu_si512(t.high + 64)},
        sign(_mm512_set1_epi8(static_cast<char>(t.sign))) {}
  void decode(__m512i x, __m512i* pair) const {
    constexpr __mmask64 odd = 0xaaaaaaaaaaaaaaaau;
    const __m512i l = _mm512_permutex2var_epi8(low[0], x, low[1]);
    const __m512i h = _mm512_or_si512(_mm512_permutex2var_epi8(high[0], x, high[1]), _mm512_and_si512(x, sign));
    pair[0] = _mm512_mask_blend_epi8(odd, l, _mm512_slli_epi16(h, 8));
    pair[1] = _mm512_mask_blend_epi8(odd, _mm512_srli_epi16(l, 8), h);
  }
  void decode(const uint8_t* codes, __m512i* pair) const { decode(_mm512_loadu_si512(codes), pair); }
};

/// Four codes in three bytes, so 16 in three dwords.
struct Fp6Codes {
  static constexpr int vectors = 3, pairs = 8, half = 2;
  ByteCodes bytes;

  explicit Fp6Codes(const ElementTable& t) : bytes(t) {}
  /// The codes in the lower 24 bits of each dword, one a byte; what is above them in a byte is no matter.
  static __m512i spread(__m512i x) { return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x322c2620120c0600), x); }
  void decode(const uint8_t* codes, __m512i* pair) const {
    const __m512i x = _mm512_loadu_si512(codes), y = _mm512_loadu_si512(codes + 64),
                  z = _mm512_loadu_si512(codes + 128);
    bytes.decode(spread(x), pair);
    bytes.decode(spread(_mm512_or_si512(_mm512_srli_epi32(x, 24), _mm512_slli_epi32(y, 8))), pair + 2);
    bytes.decode(spread(_mm512_or_si512(_mm512_srli_epi32(y, 16), _mm512_slli_epi32(z, 16))), pair + 4);
    bytes.decode(spread(_mm512_srli_epi32(z, 8)), pair + 6);
  }
};

/// 1.5 * 2^23: added to a small integer it makes a float whose last bits are that integer.
inline constexpr float magic = 0x1.8p23f;

/// Doubled E2M1 values, four times over: byte permutations take six bits of an index.
struct alignas(64) DoubledTable {
  int8_t bytes[64] = {};
};
template <int Bias>
inline constexpr DoubledTable doubled_table = [] {
  DoubledTable table;
  for (int i = 0; i < 64; ++i)
    table.bytes[i] = static_cast<int8_t>(static_cast<int>(2.0f * E2M1::decode(static_cast<uint8_t>(i))) + Bias);
  return table;
}();

struct Int4Product {
  using Dot = __m512i;
  struct Values {
    __m512i even, odd;
  };
  // Of a step: vectors of B's codes, elements of a row, and dwords of a row of A (elements 0, 2, 4, 6, then 1, 3, 5, 7).
  static constexpr int vectors = 1, elements = 8, words = 2;
  __m512i table;  ///< biased by 12, since VPDPBUSD takes one operand unsigned

  explicit Int4Product(const ElementTable&) : table(_mm512_loadu_si512(doubled_table<12>.bytes)) {}
  static constexpr bool reorders = true;
  static Dot zero() { return _mm512_setzero_si512(); }
  static Dot sum(Dot x, Dot y) { return _mm512_add_epi32(x, y); }
  /// `start`: the bits of `magic` less 12 times the sum of A's values.
  static Dot start(const int32_t* start) { return _mm512_set1_epi32(*start); }
  Values decode(const uint8_t* codes) const {
    const __m512i x = _mm512_loadu_si512(codes);
    return {_mm512_permutexvar_epi8(x, table), _mm512_permutexvar_epi8(_mm512_srli_epi16(x, 4), table)};
  }
  static Dot add(Dot dot, const Values& v, const int32_t* a) {
    dot = _mm512_dpbusd_epi32(dot, v.even, _mm512_set1_epi32(a[0]));
    return _mm512_dpbusd_epi32(dot, v.odd, _mm512_set1_epi32(a[1]));
  }
  static __m512 value(Dot dot) { return _mm512_sub_ps(_mm512_castsi512_ps(dot), _mm512_set1_ps(magic)); }

  /// Ordinary scales. The first step is exact: the dot product (13 bits) times B's scale (4 bits).
  struct Scaler {
    __m512 scale, offset;
    explicit Scaler(__m512 s) : scale(s), offset(_mm512_mul_ps(s, _mm512_set1_ps(-magic))) {}
    __m512 add(__m512 sum, Dot dot, __m512 a_scale) const {
      return _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_castsi512_ps(dot), scale, offset), a_scale, sum);
    }
  };
};

template <class Codes>
struct Bf16Product {
  using Dot = __m512;
  struct Values {
    __m512i pair[Codes::pairs];
  };
  static constexpr int vectors = Codes::vectors, elements = 2 * Codes::pairs, words = Codes::pairs;
  Codes codes;

  explicit Bf16Product(const ElementTable& t) : codes(t) {}
  static constexpr bool reorders = true;
  static Dot zero() { return _mm512_setzero_ps(); }
  static Dot sum(Dot x, Dot y) { return _mm512_add_ps(x, y); }
  static Dot start(const int32_t*) { return zero(); }
  Values decode(const uint8_t* bytes) const {
    Values v;
    codes.decode(bytes, v.pair);
    return v;
  }
  static Dot add(Dot dot, const Values& v, const int32_t* a) {
    MICROSCALE_AVX512_UNROLL(8)
    for (int j = 0; j < words; ++j) dot = _mm512_dpbf16_ps(dot, as_bf16(v.pair[j]), as_bf16(_mm512_set1_epi32(a[j])));
    return dot;
  }
  static __m512 value(Dot dot) { return dot; }

  struct Scaler {
    __m512 scale;
    explicit Scaler(__m512 s) : scale(s) {}
    __m512 add(__m512 sum, Dot dot, __m512 a_scale) const {
      return _mm512_fmadd_ps(dot, _mm512_mul_ps(scale, a_scale), sum);
    }
  };
};

template <class Codes>
struct RealProduct {
  using Dot = __m512;
  struct Values {
    __m512 element[2 * Codes::pairs];
  };
  static constexpr int vectors = Codes::vectors, elements = 2 * Codes::pairs, words = elements;
  Codes codes;

  explicit RealProduct(const ElementTable& t) : codes(t) {}
  static constexpr bool reorders = false;
  static Dot zero() { return _mm512_setzero_ps(); }
  static Dot sum(Dot x, Dot y) { return _mm512_add_ps(x, y); }
  static Dot start(const int32_t*) { return zero(); }
  Values decode(const uint8_t* bytes) const {
    __m512i pair[Codes::pairs];
    codes.decode(bytes, pair);
    Values v;
    MICROSCALE_AVX512_UNROLL(8)
    for (int j = 0; j < Codes::pairs; ++j) {
      const int lower = j / Codes::half * 2 * Codes::half + j % Codes::half;
      v.element[lower] = _mm512_castsi512_ps(_mm512_slli_epi32(pair[j], 16));
      v.element[lower + Codes::half] =
          _mm512_castsi512_ps(_mm512_and_si512(pair[j], _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
    }
    return v;
  }
  static Dot add(Dot dot, const Values& v, const int32_t* a) {
    MICROSCALE_AVX512_UNROLL(16)
    for (int j = 0; j < words; ++j)
      dot = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_set1_epi32(a[j])), v.element[j], dot);
    return dot;
  }
  static __m512 value(Dot dot) { return dot; }

  /// Rows of floats have no scales, and the reference rounds the scaled value.
  struct Scaler {
    __m512 scale;
    explicit Scaler(__m512 s) : scale(s) {}
    __m512 add(__m512 sum, Dot dot, __m512) const { return _mm512_add_ps(sum, _mm512_mul_ps(dot, scale)); }
  };
};

/// What a kernel multiplies. Rows of A are packed as the product wants them; arrays of rows have pitches known to the
/// kernel (PackedRows).
struct Job {
  const ElementTable* table;  ///< of B's element
  const uint8_t* codes;       ///< 64-byte vectors of B
  int64_t pieces;
  int pieces_per_scale_log2;
  const float* b_scales;     ///< 16 a block of B
  bool careful;              ///< there are scales that are not ordinary; then these two instead of b_scales:
  const float* b_factors;    ///< UE4M3 values, else 1
  const float* b_exponents;  ///< E8M0 exponents, else 0
  bool a_e8m0;
  const int32_t* words;   ///< of A
  const int32_t* starts;  ///< these and those below: one a piece
  const float* a_scales;
  const float* a_exponents;  ///< read where A's scales are E8M0
  float* sums;               ///< of 16 columns
  int64_t sums_pitch;
};

/// Bytes ahead of use that codes are asked for: about a microsecond of one thread's stream.
inline constexpr int prefetch_distance = 4096;

/// Pieces of `Piece` elements, R rows.
template <class Product, int Piece, int R>
void multiply(const Job& job) {
  constexpr int row_step = word_pitch(R), piece_step = piece_pitch(R), steps = Piece / Product::elements;
  // One row alone would wait for one addition after the other.
  constexpr int wanted_chains = Product::reorders ? 4 / R : 1;
  constexpr int chains = wanted_chains > steps ? steps : wanted_chains > 1 ? wanted_chains : 1;
  const Product product(*job.table);
  __m512 sums[R];
  MICROSCALE_AVX512_UNROLL(8)
  for (int r = 0; r < R; ++r) sums[r] = _mm512_loadu_ps(job.sums + r * job.sums_pitch);

  const bool careful = job.careful;
  const uint8_t* codes = job.codes;
  const int32_t* words = job.words;
  for (int64_t p = 0; p < job.pieces; ++p) {
    typename Product::Dot dots[R][chains];
    MICROSCALE_AVX512_UNROLL(8)
    for (int r = 0; r < R; ++r) {
      dots[r][0] = Product::start(job.starts + r * piece_step + p);
      MICROSCALE_AVX512_UNROLL(4)
      for (int c = 1; c < chains; ++c) dots[r][c] = Product::zero();
    }
    MICROSCALE_AVX512_UNROLL(8)
    for (int step = 0; step < steps; ++step) {
      MICROSCALE_AVX512_UNROLL(3)
      for (int i = 0; i < Product::vectors && R <= 2; ++i)
        _mm_prefetch(reinterpret_cast<const char*>(codes) + prefetch_distance + 64 * i, _MM_HINT_T0);
      const typename Product::Values values = product.decode(codes);
      MICROSCALE_AVX512_UNROLL(8)
      for (int r = 0; r < R; ++r)
        dots[r][step % chains] = Product::add(dots[r][step % chains], values, words + r * row_step);
      codes += 64 * Product::vectors;
      words += Product::words;
    }
    MICROSCALE_AVX512_UNROLL(8)
    for (int r = 0; r < R; ++r) {
      if constexpr (chains == 4) dots[r][2] = Product::sum(dots[r][2], dots[r][3]);
      if constexpr (chains >= 2) dots[r][0] = Product::sum(dots[r][0], dots[r][1]);
      if constexpr (chains == 4) dots[r][0] = Product::sum(dots[r][0], dots[r][2]);
    }

    const int64_t scale = (p >> job.pieces_per_scale_log2) * group_rows;
    if (!careful) {
      const typename Product::Scaler scaler(_mm512_load_ps(job.b_scales + scale));
      MICROSCALE_AVX512_UNROLL(8)
      for (int r = 0; r < R; ++r)
        sums[r] = scaler.add(sums[r], dots[r][0], _mm512_set1_ps(job.a_scales[r * piece_step + p]));
    } else {
      const __m512 factor = _mm512_load_ps(job.b_factors + scale), exponent = _mm512_load_ps(job.b_exponents + scale);
      MICROSCALE_AVX512_UNROLL(8)
      for (int r = 0; r < R; ++r) {
        const float a_factor = job.a_e8m0 ? 1.0f : job.a_scales[r * piece_step + p];
        const float a_exponent = job.a_e8m0 ? job.a_exponents[r * piece_step + p] : 0.0f;
        const __m512 scaled =
            _mm512_mul_ps(Product::value(dots[r][0]), _mm512_mul_ps(factor, _mm512_set1_ps(a_factor)));
        sums[r] = _mm512_add_ps(sums[r], _mm512_scalef_ps(scaled, _mm512_add_ps(exponent, _mm512_set1_ps(a_exponent))));
      }
    }
  }
  MICROSCALE_AVX512_UNROLL(8)
  for (int r = 0; r < R; ++r) _mm512_storeu_ps(job.sums + r * job.sums_pitch, sums[r]);
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE::Decode

#endif
