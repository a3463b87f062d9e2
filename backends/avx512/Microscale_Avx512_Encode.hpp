#ifndef MICROSCALE_AVX512_ENCODE_HPP
#define MICROSCALE_AVX512_ENCODE_HPP

#include <Microscale_Avx512_Parallel.hpp>
#include <Microscale_Avx512_Vector.hpp>
#include <Microscale_Block.hpp>
#include <stdint.h>
#include <string.h>

// Scales and codes of 16 blocks at once, so that everything from amax to the scale is done in vectors too. The bytes are
// those of quantize_block (formats/Microscale_Block.hpp) for every input.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

inline __m512i integers(int x) { return _mm512_set1_epi32(x); }
inline __m512i bits_of(__m512 x) { return _mm512_castps_si512(x); }
inline __m512 floats_of(__m512i x) { return _mm512_castsi512_ps(x); }

/// min(|y|, |limit|); the limit if y is NaN.
inline __m512 limited_magnitude(__m512 y, float limit) {
  constexpr int smaller_magnitude = 2, without_sign = 2;
  return _mm512_range_ps(y, _mm512_set1_ps(limit), without_sign << 2 | smaller_magnitude);
}

/// Bits of a where the mask has ones, of b elsewhere.
inline __m512i select_bits(int mask, __m512i a, __m512i b) {
  return _mm512_ternarylogic_epi32(a, b, integers(mask), 0xe4);
}

/// Element::encode of 16 floats, one code a lane. NaN gives the code of the largest value with NaN's sign.
template <class Element>
inline __m512i encode_lanes(__m512 y) {
  const __m512 a = limited_magnitude(y, Element::max);
  if constexpr (Element::id == E2M1::id) {
    // The code grows by one for each 0.5 up to 2, for each 1 up to 4, for each 2 up to 6, so that it is the least of
    // a / 0.5, a / 1 + 2, a / 2 + 4, each rounded to an integer as it is added to 2^23: to nearest even, and the parity
    // of the code is that of its mantissa.
    constexpr float integer = 0x1p23f;
    const __m512 halves = _mm512_fmadd_ps(a, _mm512_set1_ps(2.0f), _mm512_set1_ps(integer));
    const __m512 ones = _mm512_add_ps(a, _mm512_set1_ps(integer + 2.0f));
    const __m512 twos = _mm512_fmadd_ps(a, _mm512_set1_ps(0.5f), _mm512_set1_ps(integer + 4.0f));
    const __m512 code = _mm512_min_ps(_mm512_min_ps(halves, ones), twos);
    return select_bits(7, bits_of(code), _mm512_srli_epi32(bits_of(y), 28));
  } else {
    // 2^e (of the smallest normal number, if a is less) times 2^shift has the step between elements near a as its last
    // place, so that adding it rounds a to elements.
    constexpr int mantissa = Element::mantissa_bits, shift = 23 - mantissa;
    constexpr int least_normal = (127 + 1 - Element::bias) << 23;
    const __m512i power = _mm512_and_si512(_mm512_max_epi32(bits_of(a), integers(least_normal)), integers(0x7f800000));
    const __m512i sum = bits_of(_mm512_fmadd_ps(floats_of(power), _mm512_set1_ps(static_cast<float>(1 << shift)), a));
    const __m512i steps = _mm512_and_si512(sum, integers((4 << mantissa) - 1));
    const __m512i exponent =
        _mm512_sub_epi32(_mm512_srli_epi32(sum, shift), integers((127 + shift + 1 - Element::bias) << mantissa));
    return select_bits(Element::sign_bit - 1, _mm512_add_epi32(exponent, steps),
                       _mm512_srli_epi32(bits_of(y), 32 - Element::bits));
  }
}

/// Of each of 16 vectors, in `vector(i)`, the largest lane (as unsigned integers).
template <class Vector>
inline __m512i largest_lanes(Vector vector) {
  const auto largest = [](__m512i a, __m512i b) { return _mm512_max_epu32(a, b); };
  __m512i four[4];  // lane 4 p + j: of vector 4 i + j, within its 128-bit part p
  for (int i = 0; i < 4; ++i) {
    const __m512i a = vector(4 * i), b = vector(4 * i + 1), c = vector(4 * i + 2), d = vector(4 * i + 3);
    const __m512i ab = largest(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    const __m512i cd = largest(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    four[i] = largest(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  }
  const auto halve = [&](__m512i a, __m512i b) {
    return largest(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
  };
  return halve(halve(four[0], four[1]), halve(four[2], four[3]));
}

/// Four vectors of one code a lane as 64 bytes, the lanes of each vector together.
inline __m512i codes_to_bytes(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i mixed = _mm512_or_si512(
      _mm512_ternarylogic_epi32(a, _mm512_slli_epi32(b, 8), _mm512_slli_epi32(c, 16), 0xfe), _mm512_slli_epi32(d, 24));
  alignas(64) static constexpr uint8_t order[64] = {0, 4, 8,  12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60,
                                                    1, 5, 9,  13, 17, 21, 25, 29, 33, 37, 41, 45, 49, 53, 57, 61,
                                                    2, 6, 10, 14, 18, 22, 26, 30, 34, 38, 42, 46, 50, 54, 58, 62,
                                                    3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 51, 55, 59, 63};
  return _mm512_permutexvar_epi8(_mm512_load_si512(order), mixed);
}

/// Calls f with a Tag of the format of this id, if it is one of formats/.
template <class F>
void with_format(FormatId id, F f) {
  if (id == format_id<NVFP4>) f(Tag<NVFP4>{});
  if (id == format_id<MXFP4>) f(Tag<MXFP4>{});
  if (id == format_id<MXFP8_E4M3>) f(Tag<MXFP8_E4M3>{});
  if (id == format_id<MXFP8_E5M2>) f(Tag<MXFP8_E5M2>{});
  if (id == format_id<MXFP6_E2M3>) f(Tag<MXFP6_E2M3>{});
  if (id == format_id<MXFP6_E3M2>) f(Tag<MXFP6_E3M2>{});
  if (id == format_id<MXFP6_E2M3_Bytes>) f(Tag<MXFP6_E2M3_Bytes>{});
  if (id == format_id<MXFP6_E3M2_Bytes>) f(Tag<MXFP6_E3M2_Bytes>{});
}

/// Quantizes 16 blocks of a call or of an expert.
template <class Format, bool Saturate>
class BlockEncoder {
 public:
  using format = Format;
  using element = typename Format::element;
  static constexpr FormatId id = format_id<Format>;
  static constexpr int blocks = 16;
  static constexpr int size = Format::block_size;
  static constexpr int value_count = blocks * size;
  static constexpr int block_bytes = static_cast<int>(packed_bytes<Format>(size));
  static constexpr int bytes = blocks * block_bytes;

  BlockEncoder(ScaleRule rule, TensorScalePair pair) {
    if constexpr (Format::scale::type == ScaleType::ue4m3) {
      m_valid = is_valid(pair);
      constexpr float inverse_max = 1.0f / element::max;
      m_factor = pair.encode * inverse_max;
      m_decode = pair.decode;
    } else {
      m_round_up = round_up(rule);
    }
  }

  /// 16 blocks of values, one after the other, whose scales are known.
  struct Scaled {
    const float* values;
    uint8_t scales[blocks];
    alignas(64) float multipliers[blocks];
    __mmask16 nan;  ///< blocks whose scale is NaN
  };

  /// To find scales takes many steps of which each waits for the one before: do it for the next 16 blocks before the codes
  /// of these.
  void find_scales(const float* values, Scaled& scaled) const {
    scaled.values = values;
    scaled.nan = find_scales(values, scaled.scales, scaled.multipliers);
  }

  /// Writes `bytes` bytes.
  void encode(const Scaled& scaled, uint8_t* codes) const {
    encode(scaled.values, scaled.multipliers, codes);
    if (scaled.nan == 0) return;
    for (int b = 0; b < blocks; ++b)
      if ((scaled.nan >> b & 1) != 0) memset(codes + b * block_bytes, 0, block_bytes);
  }

 private:
  /// What is added to the bits of amax so that they carry into the exponent where the rule rounds up
  /// (e8m0_from_amax in formats/Microscale_Scale.hpp).
  static int round_up(ScaleRule rule) {
    constexpr int all = 0x007fffff;
    switch (rule) {
      case ScaleRule::floor:
        return 0;
      case ScaleRule::rceil:
        return all - static_cast<int>(Bits::from_float(element::max) & all);
      case ScaleRule::ceil:
        return all;
      case ScaleRule::even:
        return 1 << (23 - element::mantissa_bits - 1);
    }
    return 0;
  }

  static __m512i magnitude(const float* v) {
    const __m512i m = _mm512_and_si512(_mm512_loadu_si512(v), integers(0x7fffffff));
    if constexpr (!Saturate) return m;
    const __mmask16 number = _mm512_cmple_epu32_mask(m, integers(0x7f800000));
    return _mm512_maskz_min_epu32(number, m, integers(0x7f7fffff));
  }

  /// Returns the blocks whose scale is NaN.
  __mmask16 find_scales(const float* v, uint8_t* scales, float* multipliers) const {
    const __m512i amax = largest_lanes([&](int b) {
      __m512i m = magnitude(v + b * size);
      for (int i = 16; i < size; i += 16) m = _mm512_max_epu32(m, magnitude(v + b * size + i));
      return m;
    });
    __mmask16 nan = _mm512_cmpge_epu32_mask(amax, integers(0x7f800000));
    __m512i byte;
    if constexpr (Format::scale::type == ScaleType::ue4m3) {
      if (!m_valid) nan = 0xffff;
      byte = encode_lanes<E4M3>(_mm512_mul_ps(floats_of(amax), _mm512_set1_ps(m_factor)));
      _mm512_store_ps(multipliers, multipliers_of(byte));
    } else {
      const __m512i exponent = _mm512_srli_epi32(_mm512_add_epi32(amax, integers(m_round_up)), 23);
      byte = _mm512_max_epi32(_mm512_sub_epi32(exponent, integers(element::emax)), _mm512_setzero_si512());
      _mm512_store_ps(multipliers, floats_of(_mm512_slli_epi32(_mm512_sub_epi32(integers(254), byte), 23)));
    }
    byte = _mm512_mask_mov_epi32(byte, nan, integers(Format::scale::nan_byte));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(scales), _mm512_cvtepi32_epi8(byte));
    return nan;
  }

  /// What values are multiplied by under UE4M3 bytes, one a lane: 0, or min(1 / (value of the byte * decode), FLT_MAX).
  __m512 multipliers_of(__m512i byte) const {
    const __m512 normal = floats_of(
        _mm512_add_epi32(_mm512_slli_epi32(byte, 23 - E4M3::mantissa_bits), integers((127 - E4M3::bias) << 23)));
    const __m512 subnormal = _mm512_mul_ps(_mm512_cvtepi32_ps(byte), _mm512_set1_ps(Bits::pow2(E4M3::min_exponent)));
    const __mmask16 small = _mm512_cmplt_epi32_mask(byte, integers(1 << E4M3::mantissa_bits));
    const __m512 scale = _mm512_mul_ps(_mm512_mask_mov_ps(normal, small, subnormal), _mm512_set1_ps(m_decode));
    // 1 / scale would exceed FLT_MAX for scale <= 2^-128.
    const __mmask16 beyond = _mm512_cmp_ps_mask(scale, _mm512_set1_ps(0x1p-128f), _CMP_LE_OQ);
    const __m512 result =
        _mm512_mask_mov_ps(_mm512_div_ps(_mm512_set1_ps(1.0f), scale), beyond, _mm512_set1_ps(float_max));
    return _mm512_maskz_mov_ps(_mm512_test_epi32_mask(byte, byte), result);
  }

  static __m512i lanes(const float* v, float multiplier) {
    __m512 x = _mm512_loadu_ps(v);
    if constexpr (!Saturate) return encode_lanes<element>(_mm512_mul_ps(x, _mm512_set1_ps(multiplier)));
    const __m512i m = _mm512_and_si512(bits_of(x), integers(0x7fffffff));
    const __mmask16 infinite = _mm512_cmpeq_epi32_mask(m, integers(0x7f800000));
    x = floats_of(_mm512_mask_sub_epi32(bits_of(x), infinite, bits_of(x), integers(1)));
    const __mmask16 nan = _mm512_cmpgt_epu32_mask(m, integers(0x7f800000));
    return _mm512_mask_mov_epi32(encode_lanes<element>(_mm512_mul_ps(x, _mm512_set1_ps(multiplier))), nan,
                                 integers(element::nan_code));
  }

  static void encode(const float* v, const float* multipliers, uint8_t* codes) {
    const auto vector = [&](int i) { return lanes(v + 16 * i, multipliers[16 * i / size]); };
    constexpr int width = code_bits<Format>;
    if constexpr (width == 4) {
      // Neighbours become nibbles of a 16-bit lane; packing takes 8 of these lanes from one operand and 8 from the other.
      const __m512i weights = _mm512_set1_epi16(0x1001);
      for (int i = 0; i < value_count / 16; i += 8) {
        const __m512i even = codes_to_bytes(vector(i), vector(i + 2), vector(i + 4), vector(i + 6));
        const __m512i odd = codes_to_bytes(vector(i + 1), vector(i + 3), vector(i + 5), vector(i + 7));
        _mm512_storeu_si512(codes + 8 * i, _mm512_packus_epi16(_mm512_maddubs_epi16(even, weights),
                                                               _mm512_maddubs_epi16(odd, weights)));
      }
    } else {
      for (int i = 0; i < value_count / 16; i += 4) {
        const __m512i four = codes_to_bytes(vector(i), vector(i + 1), vector(i + 2), vector(i + 3));
        if constexpr (width == 8)
          _mm512_storeu_si512(codes + 16 * i, four);
        else
          _mm512_mask_storeu_epi8(codes + 12 * i, 0xffffffffffffu, six_bits(four));
      }
    }
  }

  /// 64 codes of 6 bits, one a byte, side by side in 48 bytes.
  static __m512i six_bits(__m512i bytes) {
    const __m512i pairs = _mm512_maddubs_epi16(bytes, _mm512_set1_epi16(0x4001));   // 12 bits of 16
    const __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x10000001));  // 24 bits of 32
    alignas(64) static constexpr uint8_t order[64] = {0,  1,  2,  4,  5,  6,  8,  9,  10, 12, 13, 14, 16, 17, 18, 20,
                                                      21, 22, 24, 25, 26, 28, 29, 30, 32, 33, 34, 36, 37, 38, 40, 41,
                                                      42, 44, 45, 46, 48, 49, 50, 52, 53, 54, 56, 57, 58, 60, 61, 62};
    return _mm512_permutexvar_epi8(_mm512_load_si512(order), fours);
  }

  int m_round_up = 0;   // E8M0
  bool m_valid = true;  // UE4M3
  float m_factor = 0;   // UE4M3: from amax to the value of the byte
  float m_decode = 1;   // UE4M3
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
