#ifndef MICROSCALE_AVX512_MODEL_CONVERT_HPP
#define MICROSCALE_AVX512_MODEL_CONVERT_HPP

#include <Microscale_Avx512_Model_Float.hpp>

// From one type of lane to another.
namespace microscale::avx512_model {

// W = PREFIX_NAME(V) of lanes FROM to lanes TO, as many as the narrower vector has; EXPRESSION of x.
#define MICROSCALE_MODEL_CONVERT(PREFIX, NAME, W, TO, V, FROM, EXPRESSION)                          \
  inline W PREFIX##_##NAME(V a) {                                                                   \
    return convert<FROM, TO, W>(a, [](FROM x) { return EXPRESSION; });                              \
  }                                                                                                 \
  inline W PREFIX##_mask_##NAME(                                                                    \
      W other,                                                                                      \
      typename MaskOf<(Lanes<V, FROM>::count < Lanes<W, TO>::count ? Lanes<V, FROM>::count          \
                                                                   : Lanes<W, TO>::count)>::type k, \
      V a) {                                                                                        \
    const Lanes<W, TO> result(PREFIX##_##NAME(a)), kept(other);                                     \
    Lanes<W, TO> chosen;                                                                            \
    for (int i = 0; i < chosen.count; ++i)                                                          \
      chosen[i] = i >= Lanes<V, FROM>::count ? TO{} : (bit(k, i) ? result[i] : kept[i]);            \
    return chosen;                                                                                  \
  }                                                                                                 \
  inline W PREFIX##_maskz_##NAME(                                                                   \
      typename MaskOf<(Lanes<V, FROM>::count < Lanes<W, TO>::count ? Lanes<V, FROM>::count          \
                                                                   : Lanes<W, TO>::count)>::type k, \
      V a) {                                                                                        \
    return PREFIX##_mask_##NAME(zero<W>(), k, a);                                                   \
  }

// Wider integers.
#define MICROSCALE_MODEL_WIDEN(NAME, FROM, TO, RATIO) \
  MICROSCALE_MODEL_CONVERT(_mm512, NAME, __m512i, TO, MICROSCALE_MODEL_PART_##RATIO, FROM, x)
#define MICROSCALE_MODEL_PART_2 __m256i
#define MICROSCALE_MODEL_PART_4 __m128i
#define MICROSCALE_MODEL_PART_8 __m128i
MICROSCALE_MODEL_WIDEN(cvtepu8_epi16, uint8_t, uint16_t, 2)
MICROSCALE_MODEL_WIDEN(cvtepi8_epi16, int8_t, int16_t, 2)
MICROSCALE_MODEL_WIDEN(cvtepu8_epi32, uint8_t, uint32_t, 4)
MICROSCALE_MODEL_WIDEN(cvtepi8_epi32, int8_t, int32_t, 4)
MICROSCALE_MODEL_WIDEN(cvtepu8_epi64, uint8_t, uint64_t, 8)
MICROSCALE_MODEL_WIDEN(cvtepu16_epi32, uint16_t, uint32_t, 2)
MICROSCALE_MODEL_WIDEN(cvtepi16_epi32, int16_t, int32_t, 2)
MICROSCALE_MODEL_WIDEN(cvtepu16_epi64, uint16_t, uint64_t, 4)
MICROSCALE_MODEL_WIDEN(cvtepu32_epi64, uint32_t, uint64_t, 2)
MICROSCALE_MODEL_WIDEN(cvtepi32_epi64, int32_t, int64_t, 2)
#undef MICROSCALE_MODEL_WIDEN
#undef MICROSCALE_MODEL_PART_2
#undef MICROSCALE_MODEL_PART_4
#undef MICROSCALE_MODEL_PART_8
MICROSCALE_MODEL_CONVERT(_mm256, cvtepu8_epi16, __m256i, uint16_t, __m128i, uint8_t, x)
MICROSCALE_MODEL_CONVERT(_mm256, cvtepi8_epi16, __m256i, int16_t, __m128i, int8_t, x)
MICROSCALE_MODEL_CONVERT(_mm256, cvtepu8_epi32, __m256i, uint32_t, __m128i, uint8_t, x)
MICROSCALE_MODEL_CONVERT(_mm256, cvtepu16_epi32, __m256i, uint32_t, __m128i, uint16_t, x)
MICROSCALE_MODEL_CONVERT(_mm, cvtepu8_epi16, __m128i, uint16_t, __m128i, uint8_t, x)
MICROSCALE_MODEL_CONVERT(_mm, cvtepu8_epi32, __m128i, uint32_t, __m128i, uint8_t, x)

// Narrower integers: the low bits, or saturated. Also straight to memory under a mask.
#define MICROSCALE_MODEL_NARROW(PREFIX, NAME, W, TO, V, FROM, EXPRESSION) \
  MICROSCALE_MODEL_CONVERT(PREFIX, NAME, W, TO, V, FROM, EXPRESSION)
#define MICROSCALE_MODEL_NARROW_STORE(PREFIX, NAME, STORE, W, TO, V, FROM) \
  inline void PREFIX##_mask_##STORE(void* to, Mask<V, FROM> k, V a) {      \
    masked_store<TO>(to, static_cast<Mask<W, TO>>(k), PREFIX##_##NAME(a)); \
  }
MICROSCALE_MODEL_NARROW(_mm512, cvtepi32_epi8, __m128i, uint8_t, __m512i, uint32_t, x)
MICROSCALE_MODEL_NARROW(_mm512, cvtepi32_epi16, __m256i, uint16_t, __m512i, uint32_t, x)
MICROSCALE_MODEL_NARROW(_mm512, cvtepi16_epi8, __m256i, uint8_t, __m512i, uint16_t, x)
MICROSCALE_MODEL_NARROW(_mm512, cvtepi64_epi32, __m256i, uint32_t, __m512i, uint64_t, x)
MICROSCALE_MODEL_NARROW(_mm512, cvtepi64_epi16, __m128i, uint16_t, __m512i, uint64_t, x)
MICROSCALE_MODEL_NARROW(_mm512, cvtepi64_epi8, __m128i, uint8_t, __m512i, uint64_t, x)
MICROSCALE_MODEL_NARROW(_mm512, cvtsepi32_epi8, __m128i, int8_t, __m512i, int32_t, saturate<int8_t>(x))
MICROSCALE_MODEL_NARROW(_mm512, cvtsepi32_epi16, __m256i, int16_t, __m512i, int32_t, saturate<int16_t>(x))
MICROSCALE_MODEL_NARROW(_mm512, cvtsepi16_epi8, __m256i, int8_t, __m512i, int16_t, saturate<int8_t>(x))
MICROSCALE_MODEL_NARROW(_mm512, cvtusepi32_epi8, __m128i, uint8_t, __m512i, uint32_t, saturate<uint8_t>(x))
MICROSCALE_MODEL_NARROW(_mm512, cvtusepi32_epi16, __m256i, uint16_t, __m512i, uint32_t, saturate<uint16_t>(x))
MICROSCALE_MODEL_NARROW(_mm512, cvtusepi16_epi8, __m256i, uint8_t, __m512i, uint16_t, saturate<uint8_t>(x))
MICROSCALE_MODEL_NARROW(_mm256, cvtepi16_epi8, __m128i, uint8_t, __m256i, uint16_t, x)
MICROSCALE_MODEL_NARROW(_mm256, cvtepi32_epi8, __m128i, uint8_t, __m256i, uint32_t, x)
MICROSCALE_MODEL_NARROW(_mm256, cvtepi32_epi16, __m128i, uint16_t, __m256i, uint32_t, x)
MICROSCALE_MODEL_NARROW_STORE(_mm512, cvtepi32_epi8, cvtepi32_storeu_epi8, __m128i, uint8_t, __m512i, uint32_t)
MICROSCALE_MODEL_NARROW_STORE(_mm512, cvtepi32_epi16, cvtepi32_storeu_epi16, __m256i, uint16_t, __m512i, uint32_t)
MICROSCALE_MODEL_NARROW_STORE(_mm512, cvtepi16_epi8, cvtepi16_storeu_epi8, __m256i, uint8_t, __m512i, uint16_t)
#undef MICROSCALE_MODEL_NARROW
#undef MICROSCALE_MODEL_NARROW_STORE

// Integers and floats. What an integer cannot hold becomes the integer of the top bit (signed) or of all bits.
inline int32_t to_int(float x) { return x >= -0x1p31f && x < 0x1p31f ? static_cast<int32_t>(x) : INT32_MIN; }
inline uint32_t to_uint(float x) { return x > -1.0f && x < 0x1p32f ? static_cast<uint32_t>(x) : UINT32_MAX; }
#define MICROSCALE_MODEL_NUMBERS(PREFIX, I, F)                                                 \
  MICROSCALE_MODEL_CONVERT(PREFIX, cvtepi32_ps, F, float, I, int32_t, static_cast<float>(x))   \
  MICROSCALE_MODEL_CONVERT(PREFIX, cvtps_epi32, I, int32_t, F, float, to_int(nearbyintf(x)))   \
  MICROSCALE_MODEL_CONVERT(PREFIX, cvttps_epi32, I, int32_t, F, float, to_int(x))              \
  MICROSCALE_MODEL_CONVERT(PREFIX, cvtepu32_ps, F, float, I, uint32_t, static_cast<float>(x))  \
  MICROSCALE_MODEL_CONVERT(PREFIX, cvtps_epu32, I, uint32_t, F, float, to_uint(nearbyintf(x))) \
  MICROSCALE_MODEL_CONVERT(PREFIX, cvttps_epu32, I, uint32_t, F, float, to_uint(x))
MICROSCALE_MODEL_NUMBERS(_mm512, __m512i, __m512)
MICROSCALE_MODEL_NUMBERS(_mm256, __m256i, __m256)
MICROSCALE_MODEL_NUMBERS(_mm, __m128i, __m128)
#undef MICROSCALE_MODEL_NUMBERS
MICROSCALE_MODEL_CONVERT(_mm512, cvtps_pd, __m512d, double, __m256, float, x)
MICROSCALE_MODEL_CONVERT(_mm512, cvtpd_ps, __m256, float, __m512d, double, static_cast<float>(x))

// binary16. NaN becomes quiet and keeps the upper bits of its payload.
inline float from_half(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, exponent_field = h >> 10 & 31u, mantissa = h & 0x3ffu;
  if (exponent_field == 31) return float_of(sign | 0x7f800000u | mantissa << 13 | (mantissa != 0 ? 0x00400000u : 0u));
  const float magnitude = exponent_field == 0
                              ? ldexpf(static_cast<float>(mantissa), -24)
                              : ldexpf(static_cast<float>(mantissa + 1024u), static_cast<int>(exponent_field) - 25);
  return float_of(sign | bits_of(magnitude));
}
/// To nearest even (the only direction that the model knows).
inline uint16_t to_half(float x) {
  const auto sign = static_cast<uint16_t>(bits_of(x) >> 16 & 0x8000u);
  if (x != x) return static_cast<uint16_t>(sign | 0x7e00u | (bits_of(x) >> 13 & 0x3ffu));
  const float magnitude = fabsf(x);
  if (magnitude >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00u);
  // In units of the last place; a carry moves into the exponent.
  const int power = magnitude < 0x1p-14f ? -14 : ilogbf(magnitude);
  const float units = nearbyintf(ldexpf(magnitude, 10 - power));
  return static_cast<uint16_t>(sign | (static_cast<uint32_t>(units) + (static_cast<uint32_t>(power + 14) << 10)));
}
#define MICROSCALE_MODEL_HALVES(PREFIX, H, F)                                     \
  MICROSCALE_MODEL_CONVERT(PREFIX, cvtph_ps, F, float, H, uint16_t, from_half(x)) \
  inline H PREFIX##_cvtps_ph(F a, int) {                                          \
    return convert<float, uint16_t, H>(a, [](float x) { return to_half(x); });    \
  }
MICROSCALE_MODEL_HALVES(_mm512, __m256i, __m512)
MICROSCALE_MODEL_HALVES(_mm256, __m128i, __m256)
#undef MICROSCALE_MODEL_HALVES

// bfloat16: to nearest even; subnormals count as zero (VCVTNEPS2BF16).
inline uint16_t to_bf16(float x) {
  const uint32_t u = bits_of(x);
  if (x != x) return static_cast<uint16_t>(u >> 16 | 0x40u);
  if ((u & 0x7f800000u) == 0) return static_cast<uint16_t>(u >> 16 & 0x8000u);
  return static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
inline float from_bf16(uint16_t h) { return float_of(static_cast<uint32_t>(h) << 16); }
MICROSCALE_MODEL_CONVERT(_mm512, cvtneps_pbh, __m256bh, uint16_t, __m512, float, to_bf16(x))
MICROSCALE_MODEL_CONVERT(_mm256, cvtneps_pbh, __m128bh, uint16_t, __m256, float, to_bf16(x))
MICROSCALE_MODEL_CONVERT(_mm512, cvtpbh_ps, __m512, float, __m256bh, uint16_t, from_bf16(x))
/// b's lanes below a's.
inline __m512bh _mm512_cvtne2ps_pbh(__m512 a, __m512 b) {
  Lanes<__m512bh, uint16_t> result;
  for (int i = 0; i < 16; ++i) {
    result[i] = to_bf16(b.lanes[i]);
    result[i + 16] = to_bf16(a.lanes[i]);
  }
  return result;
}
#undef MICROSCALE_MODEL_CONVERT

// The same bits under another type; the upper part is undefined on the processor and a pattern here.
#define MICROSCALE_MODEL_CAST(NAME, W, V)                                              \
  inline W NAME(V v) {                                                                 \
    W w;                                                                               \
    memset(static_cast<void*>(&w), 0xa5, sizeof w);                                    \
    memcpy(static_cast<void*>(&w), &v, sizeof(W) < sizeof(V) ? sizeof(W) : sizeof(V)); \
    return w;                                                                          \
  }
MICROSCALE_MODEL_CAST(_mm512_castsi512_ps, __m512, __m512i)
MICROSCALE_MODEL_CAST(_mm512_castps_si512, __m512i, __m512)
MICROSCALE_MODEL_CAST(_mm512_castsi512_pd, __m512d, __m512i)
MICROSCALE_MODEL_CAST(_mm512_castpd_si512, __m512i, __m512d)
MICROSCALE_MODEL_CAST(_mm512_castps_pd, __m512d, __m512)
MICROSCALE_MODEL_CAST(_mm512_castpd_ps, __m512, __m512d)
MICROSCALE_MODEL_CAST(_mm256_castsi256_ps, __m256, __m256i)
MICROSCALE_MODEL_CAST(_mm256_castps_si256, __m256i, __m256)
MICROSCALE_MODEL_CAST(_mm_castsi128_ps, __m128, __m128i)
MICROSCALE_MODEL_CAST(_mm_castps_si128, __m128i, __m128)
MICROSCALE_MODEL_CAST(_mm512_castsi512_si256, __m256i, __m512i)
MICROSCALE_MODEL_CAST(_mm512_castsi512_si128, __m128i, __m512i)
MICROSCALE_MODEL_CAST(_mm512_castsi256_si512, __m512i, __m256i)
MICROSCALE_MODEL_CAST(_mm512_castsi128_si512, __m512i, __m128i)
MICROSCALE_MODEL_CAST(_mm512_castps512_ps256, __m256, __m512)
MICROSCALE_MODEL_CAST(_mm512_castps512_ps128, __m128, __m512)
MICROSCALE_MODEL_CAST(_mm512_castps256_ps512, __m512, __m256)
MICROSCALE_MODEL_CAST(_mm512_castps128_ps512, __m512, __m128)
MICROSCALE_MODEL_CAST(_mm256_castsi256_si128, __m128i, __m256i)
MICROSCALE_MODEL_CAST(_mm256_castsi128_si256, __m256i, __m128i)
MICROSCALE_MODEL_CAST(_mm256_castps256_ps128, __m128, __m256)
#undef MICROSCALE_MODEL_CAST
inline __m512i _mm512_zextsi256_si512(__m256i v) { return {{v.bits[0], v.bits[1], v.bits[2], v.bits[3], 0, 0, 0, 0}}; }
inline __m512i _mm512_zextsi128_si512(__m128i v) { return {{v.bits[0], v.bits[1], 0, 0, 0, 0, 0, 0}}; }
inline __m256i _mm256_zextsi128_si256(__m128i v) { return {{v.bits[0], v.bits[1], 0, 0}}; }

}  // namespace microscale::avx512_model

#endif
