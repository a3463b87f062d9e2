#ifndef MICROSCALE_AVX512_EXPAND_HPP
#define MICROSCALE_AVX512_EXPAND_HPP

#include <Microscale_Avx512_Kernels.hpp>
#include <Microscale_Avx512_Transpose.hpp>
#include <Microscale_Avx512_Vector.hpp>
#include <Microscale_Element.hpp>
#include <Microscale_Half.hpp>
#include <stdint.h>

// Codes and plain numbers become panels: what the bf16 path and the FMA path multiply.
//
// Rows of either operand are taken sixteen at a time, a group. A panel is a sequence of vectors whose lane j belongs to
// row j of the group:
//   float   vector k is element k of the rows
//   bf16    vector p is the elements 2p (lower half of a lane) and 2p + 1 (upper half)
// Codes come as dwords in the same arrangement: vector d is bytes 4d .. 4d + 3 of the rows' codes. Rows that do not exist
// are zero codes with a scale of 1, and so are columns past K up to a multiple of 32.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

inline constexpr int group_rows = 16;

/// The values of an element's codes. All fit the upper half of a float.
struct ElementTable {
  alignas(64) uint8_t low[128];   ///< bits 16..23 of the value of code i
  alignas(64) uint8_t high[128];  ///< bits 24..31
  uint8_t sign;                   ///< the sign bit where codes have 8 bits, else 0 (it is in the table then)
  int min_exponent;               ///< nonzero finite magnitudes are at least 2^min_exponent
  int max_exponent;               ///< and less than 2^(max_exponent + 1)
};

template <class Element>
inline constexpr ElementTable element_table = [] {
  ElementTable table{{}, {}, Element::bits == 8 ? Element::sign_bit : uint8_t{0}, Element::min_exponent, Element::emax};
  for (int code = 0; code < 128; ++code) {  // decode ignores bits above the element's own
    const uint32_t bits = Bits::from_float(Element::decode(static_cast<uint8_t>(code)));
    table.low[code] = static_cast<uint8_t>(bits >> 16);
    table.high[code] = static_cast<uint8_t>(bits >> 24);
  }
  return table;
}();

/// Null for elements that these kernels do not know.
inline const ElementTable* find_element_table(ElementId id) {
  if (id == E2M1::id) return &element_table<E2M1>;
  if (id == E2M3::id) return &element_table<E2M3>;
  if (id == E3M2::id) return &element_table<E3M2>;
  if (id == E4M3::id) return &element_table<E4M3>;
  if (id == E5M2::id) return &element_table<E5M2>;
  return nullptr;
}

/// Decodes dwords of codes of Width bits (4, 6 or 8). A step takes `dwords` vectors of dwords and calls
/// emit(even, odd) with the values of each pair of its `codes` codes, in ascending order.
template <int Width>
class CodeValues;

template <>
class CodeValues<4> {
 public:
  static constexpr int dwords = 1, codes = 8;

  explicit CodeValues(const ElementTable& table) {
    const __m512i values =
        _mm512_or_si512(_mm512_slli_epi32(bytes(table.low), 16), _mm512_slli_epi32(bytes(table.high), 24));
    m_values = _mm512_castsi512_ps(values);
    const __m256i words = _mm512_cvtepi32_epi16(_mm512_srli_epi32(values, 16));
    m_words = _mm512_inserti64x4(_mm512_castsi256_si512(words), words, 1);
  }

  template <class Emit>
  void decode(const uint8_t* unit, Emit&& emit) const {
    const __m512i x = _mm512_loadu_si512(unit);
    emit(value(x), value(_mm512_srli_epi32(x, 4)));
    emit(value(_mm512_srli_epi32(x, 8)), value(_mm512_srli_epi32(x, 12)));
    emit(value(_mm512_srli_epi32(x, 16)), value(_mm512_srli_epi32(x, 20)));
    emit(value(_mm512_srli_epi32(x, 24)), value(_mm512_srli_epi32(x, 28)));
  }

  /// Calls emit(pair) with the same as vectors of bf16.
  template <class Emit>
  void decode_pairs(const uint8_t* unit, Emit&& emit) const {
    const __m512i x = _mm512_loadu_si512(unit);
    emit(pair(x, _mm512_set1_epi64(0x2424202004040000)));
    emit(pair(x, _mm512_set1_epi64(0x2c2c28280c0c0808)));
    emit(pair(x, _mm512_set1_epi64(0x3434303014141010)));
    emit(pair(x, _mm512_set1_epi64(0x3c3c38381c1c1818)));
  }

 private:
  static __m512i bytes(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  __m512 value(__m512i codes_in_low_bits) const { return _mm512_permutexvar_ps(codes_in_low_bits, m_values); }
  /// Looks up the codes that begin at the bits `shifts` of each 64. The table has its 16 words twice, so the fifth bit of an
  /// index, which belongs to the next code, is no matter.
  __m512i pair(__m512i x, __m512i shifts) const {
    return _mm512_permutexvar_epi16(_mm512_multishift_epi64_epi8(shifts, x), m_words);
  }

  __m512 m_values;
  __m512i m_words;
};

template <>
class CodeValues<8> {
 public:
  static constexpr int dwords = 1, codes = 4;

  explicit CodeValues(const ElementTable& table)
      : m_low{_mm512_loadu_si512(table.low), _mm512_loadu_si512(table.low + 64)},
        m_high{_mm512_loadu_si512(table.high), _mm512_loadu_si512(table.high + 64)},
        m_sign(_mm512_set1_epi8(static_cast<char>(table.sign))) {
    // Upper half of lane j: byte j * 4 of the first source, then the same of the second.
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    m_first = _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(0x04040000)), _mm512_set1_epi32(0x40000000));
  }

  template <class Emit>
  void decode(const uint8_t* unit, Emit&& emit) const {
    decode(_mm512_loadu_si512(unit), emit);
  }
  template <class Emit>
  void decode(__m512i x, Emit&& emit) const {
    const __m512i low = _mm512_permutex2var_epi8(m_low[0], x, m_low[1]);
    const __m512i high =
        _mm512_or_si512(_mm512_permutex2var_epi8(m_high[0], x, m_high[1]), _mm512_and_si512(x, m_sign));
    emit(value<0>(low, high), value<1>(low, high));
    emit(value<2>(low, high), value<3>(low, high));
  }

 private:
  template <int Byte>
  __m512 value(__m512i low, __m512i high) const {
    const __m512i where = _mm512_add_epi32(m_first, _mm512_set1_epi32(Byte * 0x01010000));
    return _mm512_castsi512_ps(_mm512_maskz_permutex2var_epi8(0xccccccccccccccccu, low, where, high));
  }

  __m512i m_low[2], m_high[2], m_sign, m_first;
};

template <>
class CodeValues<6> {
 public:
  static constexpr int dwords = 3, codes = 16;

  explicit CodeValues(const ElementTable& table) : m_bytes(table), m_shifts(_mm512_set1_epi64(0x322c26'20'120c06'00)) {}

  template <class Emit>
  void decode(const uint8_t* unit, Emit&& emit) const {
    const __m512i x = _mm512_loadu_si512(unit), y = _mm512_loadu_si512(unit + 64), z = _mm512_loadu_si512(unit + 128);
    // Four codes in the low 24 bits of each lane.
    m_bytes.decode(spread(x), emit);
    m_bytes.decode(spread(_mm512_or_si512(_mm512_srli_epi32(x, 24), _mm512_slli_epi32(y, 8))), emit);
    m_bytes.decode(spread(_mm512_or_si512(_mm512_srli_epi32(y, 16), _mm512_slli_epi32(z, 16))), emit);
    m_bytes.decode(spread(_mm512_srli_epi32(z, 8)), emit);
  }

 private:
  /// Four codes a lane, one a byte; what is above them in a byte is of no matter.
  __m512i spread(__m512i x) const { return _mm512_multishift_epi64_epi8(m_shifts, x); }

  CodeValues<8> m_bytes;
  __m512i m_shifts;
};

/// Sixteen scale bytes as numbers, exactly.
inline __m512i scale_bytes(const uint8_t* bytes) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
}
inline __m512 e8m0_values(__m512i bytes) {
  // The exponent of a float; 0 and 255, and they alone, need a 1 below it.
  const __mmask16 ends =
      _mm512_testn_epi32_mask(_mm512_add_epi32(bytes, _mm512_set1_epi32(1)), _mm512_set1_epi32(0xfe));
  const __m512i exponents = _mm512_slli_epi32(bytes, 23);
  return _mm512_castsi512_ps(_mm512_mask_or_epi32(exponents, ends, exponents, _mm512_set1_epi32(0x00400000)));
}
inline __m512 ue4m3_values(__m512i bytes) {
  const __m512i x = _mm512_and_si512(bytes, _mm512_set1_epi32(0x7f));
  const __m512i normal = _mm512_add_epi32(_mm512_slli_epi32(x, 20), _mm512_set1_epi32(120 << 23));
  const __m512 subnormal = _mm512_mul_ps(_mm512_cvtepi32_ps(x), _mm512_set1_ps(0x1p-9f));
  const __mmask16 small = _mm512_cmplt_epi32_mask(x, _mm512_set1_epi32(8));
  const __mmask16 nan = _mm512_cmpeq_epi32_mask(x, _mm512_set1_epi32(0x7f));
  const __m512 finite = _mm512_mask_mov_ps(_mm512_castsi512_ps(normal), small, subnormal);
  return _mm512_mask_mov_ps(finite, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}

/// Bounds of magnitudes: all that are finite and not zero are in [2^low, 2^(high + 1)). Starts empty.
struct ExponentRange {
  int low = 127;
  int high = -126;

  void include(const ExponentRange& other) {
    if (other.low < low) low = other.low;
    if (other.high > high) high = other.high;
  }
};

/// Takes the scales of a group block by block, and keeps their range.
template <int Width>
class BlockScales {
 public:
  explicit BlockScales(ScaleType type) : m_type(type) {}

  /// The scales of a block as floats. unit: its `count` codes.
  __m512 next(const uint8_t* scales, const CodeValues<Width>& values, const uint8_t* unit, int count) {
    __m512i bytes = scale_bytes(scales);
    if (m_type == ScaleType::ue4m3) return ue4m3_values(bytes);
    const __mmask16 numbers = _mm512_cmpneq_epi32_mask(bytes, _mm512_set1_epi32(255));
    // Zeros may have any scale, and quantizers give them the smallest: for zeros, 1 is as good. Seldom is it worth a look.
    const __m512i from_usual = _mm512_sub_epi32(bytes, _mm512_set1_epi32(127 - usual));
    const __mmask16 unusual = _mm512_mask_cmpgt_epu32_mask(numbers, from_usual, _mm512_set1_epi32(2 * usual));
    if (unusual != 0) [[unlikely]]
      bytes = _mm512_mask_mov_epi32(bytes, unusual & zero_rows(values, unit, count), _mm512_set1_epi32(127));
    m_low = _mm512_mask_min_epi32(m_low, numbers, m_low, bytes);
    m_high = _mm512_mask_max_epi32(m_high, numbers, m_high, bytes);
    return e8m0_values(bytes);
  }

  /// The range of the scales so far; that of zeros and NaN does not count.
  ExponentRange range() const {
    if (m_type == ScaleType::ue4m3) return {-9, 8};
    const int low = _mm512_reduce_min_epi32(m_low), high = _mm512_reduce_max_epi32(m_high);
    return low > high ? ExponentRange{} : ExponentRange{low - 127, high - 127};
  }

 private:
  static constexpr int usual = 30;  ///< scales of 2^-30 to 2^30 leave any other operand all the range that it may need

  static __mmask16 zero_rows(const CodeValues<Width>& values, const uint8_t* unit, int count) {
    __m512i any = _mm512_setzero_si512();
    for (int k = 0; k < count; k += CodeValues<Width>::codes, unit += 64 * CodeValues<Width>::dwords)
      values.decode(unit, [&](__m512 even, __m512 odd) {
        any = _mm512_or_si512(any, _mm512_or_si512(_mm512_castps_si512(even), _mm512_castps_si512(odd)));
      });
    return _mm512_testn_epi32_mask(any, _mm512_set1_epi32(0x7fffffff));
  }

  ScaleType m_type;
  __m512i m_low = _mm512_set1_epi32(255), m_high = _mm512_set1_epi32(-1);
};

/// Two vectors of floats that fit bf16 as a vector of pairs.
inline __m512i bf16_pairs(__m512 even, __m512 odd) {
  return _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(_mm512_castps_si512(even), 16),
                                 _mm512_castps_si512(odd));
}

/// bf16 pairs of the codes of a group times their block scales, exact within bf16's range, and the range that they are in.
/// `count` columns (rounded up to CodeValues::codes) from the beginning of a block, in blocks of `block`; scales: 16 bytes
/// a block.
template <int Width>
ExponentRange expand_bf16(const ElementTable& table, ScaleType type, int block, const uint8_t* unit,
                          const uint8_t* scales, int count, uint32_t* panel) {
  const CodeValues<Width> values(table);
  BlockScales<Width> block_scales(type);
  for (int begin = 0; begin < count; begin += block, scales += group_rows) {
    const int length = count - begin < block ? count - begin : block;
    const __m512 scale = block_scales.next(scales, values, unit, length);
    if constexpr (Width == 4) {
      if (type == ScaleType::e8m0 && _mm512_cmp_ps_mask(scale, scale, _CMP_UNORD_Q) == 0) {
        // Powers of two for values that are numbers or 0: their exponents are added.
        const __m512i bits = _mm512_castps_si512(scale);
        const __m512i exponents =
            _mm512_sub_epi16(_mm512_or_si512(bits, _mm512_srli_epi32(bits, 16)), _mm512_set1_epi16(0x3f80));
        for (int k = 0; k < length; k += CodeValues<4>::codes, unit += 64)
          values.decode_pairs(unit, [&](__m512i pair) {
            const __mmask32 numbers = _mm512_test_epi16_mask(pair, _mm512_set1_epi16(0x7fff));
            _mm512_store_si512(panel, _mm512_mask_add_epi16(pair, numbers, pair, exponents));
            panel += group_rows;
          });
        continue;
      }
    }
    for (int k = 0; k < length; k += CodeValues<Width>::codes, unit += 64 * CodeValues<Width>::dwords)
      values.decode(unit, [&](__m512 even, __m512 odd) {
        _mm512_store_si512(panel, bf16_pairs(_mm512_mul_ps(even, scale), _mm512_mul_ps(odd, scale)));
        panel += group_rows;
      });
  }
  const ExponentRange range = block_scales.range();
  if (range.low > range.high) return range;
  const int carry = type == ScaleType::ue4m3 ? 1 : 0;  // of the product of two mantissas
  return {range.low + table.min_exponent, range.high + table.max_exponent + carry};
}

/// Floats of the codes of a group, and apart from them their block scales, 16 a block, whose range is returned. Arguments
/// as those of expand_bf16.
template <int Width>
ExponentRange expand_floats(const ElementTable& table, ScaleType type, int block, const uint8_t* unit,
                            const uint8_t* scales, int count, float* panel, float* panel_scales) {
  const CodeValues<Width> values(table);
  BlockScales<Width> block_scales(type);
  for (int begin = 0; begin < count; begin += block, scales += group_rows, panel_scales += group_rows) {
    const int length = count - begin < block ? count - begin : block;
    _mm512_store_ps(panel_scales, block_scales.next(scales, values, unit, length));
    for (int k = 0; k < length; k += CodeValues<Width>::codes, unit += 64 * CodeValues<Width>::dwords)
      values.decode(unit, [&](__m512 even, __m512 odd) {
        _mm512_store_ps(panel, even);
        _mm512_store_ps(panel + group_rows, odd);
        panel += 2 * group_rows;
      });
  }
  return block_scales.range();
}

/// A group of rows of a plain matrix: its element (0, 0) and strides in elements. 1 to 16 rows.
template <class T>
struct PlainGroup {
  const T* data;
  int64_t row_stride, col_stride;
  int rows;

  /// Elements [k, k + count) of row i, count <= 64 / sizeof(T), then zeros.
  __m512i load(int i, int k, int count) const {
    const T* row = data + i * row_stride + k * col_stride;
    if (col_stride == 1)
      return _mm512_maskz_loadu_epi8(~uint64_t{0} >> (64 - count * static_cast<int>(sizeof(T))), row);
    alignas(64) T values[64 / sizeof(T)] = {};
    for (int j = 0; j < count; ++j) values[j] = row[j * col_stride];
    return _mm512_load_si512(values);
  }
};

/// bf16 pairs of a group of plain rows, up to column `count` rounded up to 32, and their range.
inline ExponentRange pack_bf16(const PlainGroup<bf16>& group, int count, uint32_t* panel) {
  const __m512i magnitude = _mm512_set1_epi16(0x7fff), infinity = _mm512_set1_epi16(0x7f80), one = _mm512_set1_epi16(1);
  __m512i below_low = _mm512_set1_epi16(-1), high = _mm512_setzero_si512();  // below_low: the smallest nonzero, minus 1
  for (int k = 0; k < count; k += 32, panel += 16 * group_rows) {
    __m512i x[16];
    for (int i = 0; i < 16; ++i) {
      x[i] = i < group.rows ? group.load(i, k, count - k < 32 ? count - k : 32) : _mm512_setzero_si512();
      const __m512i mag = _mm512_and_si512(x[i], magnitude);
      below_low = _mm512_min_epu16(below_low, _mm512_sub_epi16(mag, one));
      high = _mm512_mask_max_epu16(high, _mm512_cmplt_epu16_mask(mag, infinity), high, mag);
    }
    transpose(x);
    for (int i = 0; i < 16; ++i) _mm512_store_si512(panel + i * group_rows, x[i]);
  }
  alignas(64) uint16_t lows[32], highs[32];
  _mm512_store_si512(lows, below_low);
  _mm512_store_si512(highs, high);
  int low = 0xffff, largest = 0;
  for (int i = 0; i < 32; ++i) {
    if (lows[i] < low) low = lows[i];
    if (highs[i] > largest) largest = highs[i];
  }
  if (largest == 0) return {};  // zeros, Inf and NaN
  return {((low + 1) >> 7) - 127, (largest >> 7) - 127};
}

/// Sixteen numbers of a plain type as floats, from the dwords, or the lower half of the words, of a vector.
inline __m512 to_floats(const float*, __m512i x) { return _mm512_castsi512_ps(x); }
inline __m512 to_floats(const half*, __m512i x) { return _mm512_cvtph_ps(_mm512_castsi512_si256(x)); }
inline __m512 to_floats(const bf16*, __m512i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)), 16));
}

/// Floats of a group of plain rows, up to column `count` rounded up to 16.
template <class T>
void pack_floats(const PlainGroup<T>& group, int count, float* panel) {
  for (int k = 0; k < count; k += 16, panel += 16 * group_rows) {
    __m512i x[16];
    for (int i = 0; i < 16; ++i)
      x[i] = i < group.rows
                 ? _mm512_castps_si512(to_floats(group.data, group.load(i, k, count - k < 16 ? count - k : 16)))
                 : _mm512_setzero_si512();
    transpose(x);
    for (int i = 0; i < 16; ++i) _mm512_store_si512(panel + i * group_rows, x[i]);
  }
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
