#ifndef MICROSCALE_AVX512_DECODEROWS_HPP
#define MICROSCALE_AVX512_DECODEROWS_HPP

#include <Microscale_Avx512_DecodeKernel.hpp>
#include <Microscale_Avx512_ScaleRows.hpp>
#include <Microscale_Half.hpp>
#include <stdint.h>
#include <string.h>

// The rows of A as DecodeKernel's products want them. Everything past the last element is zero.
namespace microscale::MICROSCALE_AVX512_NAMESPACE::Decode {

enum class ProductKind { int4, bf16, real };

/// 64 codes of 6 bits in 48 bytes, one a byte.
inline __m512i open_fp6(__m512i bytes) {
  alignas(64) static constexpr uint8_t six_each[64] = {0,  1,  2,  3,  4,  5,  0, 0, 6,  7,  8,  9,  10, 11, 0, 0,
                                                       12, 13, 14, 15, 16, 17, 0, 0, 18, 19, 20, 21, 22, 23, 0, 0,
                                                       24, 25, 26, 27, 28, 29, 0, 0, 30, 31, 32, 33, 34, 35, 0, 0,
                                                       36, 37, 38, 39, 40, 41, 0, 0, 42, 43, 44, 45, 46, 47, 0, 0};
  const __m512i words = _mm512_permutexvar_epi8(_mm512_loadu_si512(six_each), bytes);
  const __m512i codes = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2a241e18120c0600), words);
  return _mm512_and_si512(codes, _mm512_set1_epi8(0x3f));
}

/// Where elements 0 to 31 are in the two vectors of ByteCodes::decode; 32 to 63 are 16 words further.
struct alignas(64) AscendingPairs {
  uint16_t words[32] = {};
};
inline constexpr AscendingPairs ascending_pairs = [] {
  AscendingPairs result;
  for (int k = 0; k < 32; ++k) result.words[k] = static_cast<uint16_t>(k % 2 * 32 + k / 4 * 2 + k % 4 / 2);
  return result;
}();

/// The first `count` of 64 bits, for any count.
inline uint64_t first_bits(int64_t count) {
  return count <= 0 ? 0 : count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}
inline __m512i load_bytes(const uint8_t* bytes, int64_t count) {
  return _mm512_maskz_loadu_epi8(first_bits(count), bytes);
}

/// The exponents of E8M0 bytes, as floats; NaN for FF.
inline __m512 e8m0_exponents(__m512i bytes) {
  const __mmask16 nan = _mm512_cmpeq_epi32_mask(bytes, _mm512_set1_epi32(255));
  const __m512 exponents = _mm512_cvtepi32_ps(_mm512_sub_epi32(bytes, _mm512_set1_epi32(127)));
  return _mm512_mask_mov_ps(exponents, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}

/// Up to 8 rows of a slab of k. A row of halves becomes two: its upper 8 significant bits, and the rest.
class PackedRows {
 public:
  /// Packs elements [k, k + length) of rows [row, row + rows) of A, k a multiple of 128, for kernels of `kernel_rows`
  /// rows, with one scale for each `piece` elements. scale_shift: what is added to a row to get its row in the scale
  /// buffer. False, and nothing is packed to be used, if `kind` is bf16 and a bf16 row leaves its range.
  bool pack(const Operand& a, ProductKind kind, bool fp4_weights, int64_t row, int rows, int64_t scale_shift,
            int kernel_rows, int64_t k, int64_t length, int piece) {
    m_kernel_rows = kernel_rows;
    careful = false;
    const int parts = parts_of(a, kind);
    for (int r = 0; r < kernel_rows; ++r) {
      const int64_t source = row + r / parts;
      int32_t* out = words + r * word_pitch(kernel_rows);
      if (r >= rows * parts)
        clear(out, kind, length);
      else if (kind == ProductKind::int4)
        pack_int4(a, source, k, length, out);
      else if (kind == ProductKind::real)
        pack_real(a, source, k, length, out);
      else if (!pack_bf16(a, source, r % parts, fp4_weights, k, length, out))
        return false;
      if (kind == ProductKind::int4) start_int4(r, length, piece);
      if (r < rows * parts && a.format.block_size > 0)
        pack_scales(a, kind, r, source, scale_shift, k, length, piece);
      else
        fill_scales(r, length, piece);
    }
    return true;
  }

  /// Rows of the kernel that a row of A takes.
  static int parts_of(const Operand& a, ProductKind kind) {
    return a.format == float16_id && kind == ProductKind::bf16 ? 2 : 1;
  }
  /// Elements in a dword.
  static int elements_of(ProductKind kind) { return kind == ProductKind::int4 ? 4 : kind == ProductKind::bf16 ? 2 : 1; }

  alignas(64) int32_t words[8192 + max_rows * 16];
  alignas(64) int32_t starts[2048 + max_rows * 16];
  alignas(64) float scales[2048 + max_rows * 16];
  alignas(64) float exponents[2048 + max_rows * 16];
  bool careful;

 private:
  static int64_t pieces_of(int64_t length, int piece) { return (length + piece - 1) / piece; }

  static void clear(int32_t* out, ProductKind kind, int64_t length) {
    const int64_t count = (length + 127) / 128 * 128 / elements_of(kind);
    for (int64_t i = 0; i < count; i += 16) _mm512_storeu_si512(out + i, _mm512_setzero_si512());
  }

  void fill_scales(int r, int64_t length, int piece) {
    const int64_t first = r * piece_pitch(m_kernel_rows), pieces = pieces_of(length, piece);
    for (int64_t p = 0; p < pieces; p += group_rows) {
      _mm512_storeu_ps(scales + first + p, _mm512_set1_ps(1.0f));
      _mm512_storeu_ps(exponents + first + p, _mm512_setzero_ps());
    }
  }

  /// Scales as values and E8M0 exponents; those of int4 rows are a quarter of them, since both operands are doubled.
  void pack_scales(const Operand& a, ProductKind kind, int r, int64_t row, int64_t scale_shift, int64_t k,
                   int64_t length, int piece) {
    const int64_t first = r * piece_pitch(m_kernel_rows), pieces = pieces_of(length, piece);
    const int block = a.format.block_size;
    uint8_t bytes[2048 + group_rows];
    const int64_t blocks = (length + block - 1) / block;
    ScaleRows(a).read(row + scale_shift, k / block, bytes, blocks);
    for (int64_t p = pieces; block > piece && p-- > 0;) bytes[p] = bytes[p * piece / block];
    const bool e8m0 = a.format.scale == ScaleType::e8m0;
    for (int64_t p = pieces; p < (pieces + group_rows - 1) / group_rows * group_rows; ++p) bytes[p] = e8m0 ? 127 : 0x38;

    const bool doubled = kind == ProductKind::int4;
    const __m512 quarter = _mm512_set1_ps(doubled ? 0.25f : 1.0f), two = _mm512_set1_ps(doubled ? 2.0f : 0.0f);
    for (int64_t p = 0; e8m0 && p < pieces; ++p) {
      if (is_ordinary(bytes[p]) || bytes[p] == 255) continue;
      if (is_zero(r, kind, p, piece))
        bytes[p] = 127;  // the scale of zeros may as well be 1
      else
        careful = true;
    }
    for (int64_t p = 0; p < pieces; p += group_rows) {
      const __m512i x = scale_bytes(bytes + p);
      _mm512_storeu_ps(scales + first + p, _mm512_mul_ps(e8m0 ? e8m0_values(x) : ue4m3_values(x), quarter));
      if (e8m0) _mm512_storeu_ps(exponents + first + p, _mm512_sub_ps(e8m0_exponents(x), two));
    }
  }

  /// Whether the values of a piece that is packed already are zeros, of any sign.
  bool is_zero(int r, ProductKind kind, int64_t p, int piece) const {
    const int count = piece / elements_of(kind);
    const int32_t* piece_words = words + r * word_pitch(m_kernel_rows) + p * count;
    const uint32_t magnitudes = kind == ProductKind::int4 ? 0xffffffffu : 0x7fff7fffu;
    for (int i = 0; i < count; ++i)
      if ((static_cast<uint32_t>(piece_words[i]) & magnitudes) != 0) return false;
    return true;
  }

  static void pack_int4(const Operand& a, int64_t row, int64_t k, int64_t length, int32_t* out) {
    const __m512i table = _mm512_loadu_si512(doubled_table<0>.bytes);
    // even0 odd0 even1 odd1 ..
    const __m512i lower = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i upper = _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
    const uint8_t* codes = static_cast<const uint8_t*>(a.data) + row * a.row_stride + k / 2;
    for (int64_t i = 0; i < length; i += 128, out += 32) {
      const __m512i x = load_bytes(codes + i / 2, (length - i + 1) / 2);
      const __m512i even = _mm512_permutexvar_epi8(x, table);
      const __m512i odd = _mm512_permutexvar_epi8(_mm512_srli_epi16(x, 4), table);
      _mm512_storeu_si512(out, _mm512_permutex2var_epi32(even, lower, odd));
      _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi32(even, upper, odd));
    }
  }

  /// Where the sums of a row's pieces start: B's codes are biased by 12.
  void start_int4(int r, int64_t length, int piece) {
    const int32_t* row = words + r * word_pitch(m_kernel_rows);
    int32_t* start = starts + r * piece_pitch(m_kernel_rows);
    const __m512i twelve = _mm512_set1_epi8(12);
    const int count = piece / 4;
    for (int64_t i = 0; i * 4 < length; i += 16) {
      int32_t sums[16];
      _mm512_storeu_si512(sums, _mm512_dpbusd_epi32(_mm512_setzero_si512(), twelve, _mm512_loadu_si512(row + i)));
      for (int j = 0; j < 16; j += count) {
        int32_t sum = static_cast<int32_t>(Bits::from_float(magic));
        for (int d = 0; d < count; ++d) sum -= sums[j + d];
        *start++ = sum;
      }
    }
  }

  static float element(const Operand& a, int64_t row, int64_t k) {
    const int64_t i = row * a.row_stride + k * a.col_stride;
    if (a.format == float32_id) return static_cast<const float*>(a.data)[i];
    if (a.format == float16_id) return static_cast<float>(static_cast<const half*>(a.data)[i]);
    return static_cast<float>(static_cast<const bf16*>(a.data)[i]);
  }

  static void pack_real(const Operand& a, int64_t row, int64_t k, int64_t length, int32_t* out) {
    clear(out, ProductKind::real, length);
    if (a.format == float32_id && a.col_stride == 1) {
      memcpy(out, static_cast<const float*>(a.data) + row * a.row_stride + k,
             static_cast<size_t>(length) * sizeof(float));
      return;
    }
    for (int64_t i = 0; i < length; ++i) {
      const float x = element(a, row, k + i);
      memcpy(out + i, &x, sizeof x);
    }
  }

  static bool pack_bf16(const Operand& a, int64_t row, int part, bool fp4_weights, int64_t k, int64_t length,
                        int32_t* out) {
    alignas(64) static constexpr uint16_t orders[2][32] = {
        {0,  2,  1,  3,  4,  6,  5,  7,  8,  10, 9,  11, 12, 14, 13, 15,
         16, 18, 17, 19, 20, 22, 21, 23, 24, 26, 25, 27, 28, 30, 29, 31},
        {0,  4,  1,  5,  2,  6,  3,  7,  8,  12, 9,  13, 10, 14, 11, 15,
         16, 20, 17, 21, 18, 22, 19, 23, 24, 28, 25, 29, 26, 30, 27, 31}};
    const __m512i order = _mm512_loadu_si512(orders[fp4_weights ? 1 : 0]);
    const auto store = [&](int64_t i, __m512i values) {
      _mm512_storeu_si512(out + i / 2, _mm512_permutexvar_epi16(order, values));
    };
    const int64_t padded = (length + 127) / 128 * 128;
    if (a.format.block_size > 0) {
      const ElementTable& table = *find_element_table(a.format.element);
      const int bits = bits_per_code(a.format);
      const uint8_t* codes = static_cast<const uint8_t*>(a.data) + row * a.row_stride + packed_bytes(a.format, k);
      const Fp4Codes fp4(table);
      const ByteCodes bytes(table);
      const __m512i ascending = _mm512_loadu_si512(ascending_pairs.words);
      for (int64_t i = 0; i < padded; i += 64) {
        const __m512i x =
            load_bytes(codes + i * bits / 8, i < length ? packed_bytes(a.format, min(length - i, 64)) : 0);
        if (bits == 4) {
          const auto half = [&](__m128i y) {
            const __m512i each = _mm512_cvtepu8_epi32(y);
            return fp4.lookup(_mm512_or_si512(each, _mm512_slli_epi32(each, 12)));
          };
          store(i, half(_mm512_castsi512_si128(x)));
          store(i + 32, half(_mm512_extracti32x4_epi32(x, 1)));
        } else {
          __m512i pair[2];
          bytes.decode(bits == 6 ? open_fp6(x) : x, pair);
          store(i, _mm512_permutex2var_epi16(pair[0], ascending, pair[1]));
          store(i + 32,
                _mm512_permutex2var_epi16(pair[0], _mm512_add_epi16(ascending, _mm512_set1_epi16(16)), pair[1]));
        }
      }
      return true;
    }
    bool fits = true;
    for (int64_t i = 0; i < padded; i += 32) {
      alignas(64) uint16_t gathered[32] = {};
      const uint16_t* source = static_cast<const uint16_t*>(a.data) + row * a.row_stride + (k + i) * a.col_stride;
      const int64_t count = min(length - i, 32);
      if (a.col_stride != 1) {
        for (int64_t j = 0; j < count; ++j) gathered[j] = source[j * a.col_stride];
        source = gathered;
      }
      const __m512i x = _mm512_maskz_loadu_epi16(static_cast<__mmask32>(first_bits(count)), source);
      if (a.format == bfloat16_id) {
        fits = fits && !leaves_range(x);
        store(i, x);
      } else {
        const __m256i low = part_of_half(_mm512_castsi512_si256(x), part);
        const __m256i high = part_of_half(_mm512_extracti64x4_epi64(x, 1), part);
        store(i, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
      }
    }
    return fits;
  }

  /// Whether a finite bf16 value other than 0 lies outside of 2^-100 .. 2^100.
  static bool leaves_range(__m512i x) {
    constexpr int low = (127 - 100) << 7, high = (127 + 100) << 7;
    const __m512i magnitudes = _mm512_and_si512(x, _mm512_set1_epi16(0x7fff));
    const __mmask32 inside =
        _mm512_cmplt_epu16_mask(_mm512_sub_epi16(magnitudes, _mm512_set1_epi16(low)), _mm512_set1_epi16(high - low));
    const __mmask32 number = _mm512_cmplt_epu16_mask(magnitudes, _mm512_set1_epi16(0x7f80));
    const __mmask32 nonzero = _mm512_test_epi16_mask(magnitudes, magnitudes);
    return (nonzero & number & ~inside) != 0;
  }

  /// Halves as bf16: the upper 8 significant bits (towards zero, so that the parts add up in magnitude), or what they
  /// leave, at most 3 bits; nothing of Inf and NaN.
  static __m256i part_of_half(__m256i halves, int part) {
    const __m512 values = _mm512_cvtph_ps(halves);
    const __m512i upper =
        _mm512_and_si512(_mm512_castps_si512(values), _mm512_set1_epi32(static_cast<int>(0xffff0000u)));
    if (part == 0) return _mm512_cvtepi32_epi16(_mm512_srli_epi32(upper, 16));
    const __m512i exponent = _mm512_and_si512(upper, _mm512_set1_epi32(0x7f800000));
    const __mmask16 finite = _mm512_cmpneq_epi32_mask(exponent, _mm512_set1_epi32(0x7f800000));
    const __m512 lower = _mm512_maskz_sub_ps(finite, values, _mm512_castsi512_ps(upper));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(lower), 16));
  }

  static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

  int m_kernel_rows;
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE::Decode

#endif
