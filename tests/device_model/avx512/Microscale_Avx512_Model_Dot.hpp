#ifndef MICROSCALE_AVX512_MODEL_DOT_HPP
#define MICROSCALE_AVX512_MODEL_DOT_HPP

#include <Microscale_Avx512_Model_Permute.hpp>

// Dot products of neighbours, added to 32-bit lanes (VNNI and BF16).
namespace microscale::avx512_model {

// acc + four products of bytes of a, unsigned, with bytes of b, signed; acc + two products of signed words. The sum is
// exact, then wraps around or (s) saturates.
#define MICROSCALE_MODEL_DOT(PREFIX, V, NAME, A, B, RESULT)                \
  inline V PREFIX##_##NAME(V acc, V va, V vb) {                            \
    constexpr int n = 4 / sizeof(A);                                       \
    const Lanes<V, A> a(va);                                               \
    const Lanes<V, B> b(vb);                                               \
    Lanes<V, int32_t> result(acc);                                         \
    for (int i = 0; i < result.count; ++i) {                               \
      int64_t sum = result[i];                                             \
      for (int j = n * i; j < n * i + n; ++j) sum += int64_t{a[j]} * b[j]; \
      result[i] = RESULT;                                                  \
    }                                                                      \
    return result;                                                         \
  }                                                                        \
  inline V PREFIX##_mask_##NAME(V acc, Mask<V, int32_t> k, V a, V b) {     \
    return choose<int32_t>(k, PREFIX##_##NAME(acc, a, b), acc);            \
  }                                                                        \
  inline V PREFIX##_maskz_##NAME(Mask<V, int32_t> k, V acc, V a, V b) {    \
    return choose<int32_t>(k, PREFIX##_##NAME(acc, a, b), zero<V>());      \
  }
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_DOT, dpbusd_epi32, uint8_t, int8_t, static_cast<int32_t>(sum))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_DOT, dpbusds_epi32, uint8_t, int8_t, saturate<int32_t>(sum))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_DOT, dpwssd_epi32, int16_t, int16_t, static_cast<int32_t>(sum))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_DOT, dpwssds_epi32, int16_t, int16_t, saturate<int32_t>(sum))
#undef MICROSCALE_MODEL_DOT

/// Zero with its sign for a subnormal.
inline float flushed(float x) { return (bits_of(x) & 0x7f800000u) == 0 ? copysignf(0.0f, x) : x; }

/// a * b + c as VDPBF16PS does it: fused, to nearest even, subnormal operands and results flushed to zero. a and b have
/// 8 significant bits.
inline float fused_bf16(float a, float b, float c) {
  a = flushed(a);
  b = flushed(b);
  c = flushed(c);
  const float result = fmaf(a, b, c);
  if (!(fabsf(result) <= 0x1p-126f) || result == 0) return result;
  // What rounds up to 2^-126 only because subnormals have fewer bits is flushed too: the processor looks at the result
  // rounded as if the exponent had no limit. 2^64 times larger, nothing is subnormal that matters. (As c and a * b add up
  // to so little, both are small.)
  int exponent_a = 0, exponent_b = 0;
  const float product = frexpf(a, &exponent_a) * frexpf(b, &exponent_b);
  const int moved = exponent_a + exponent_b + 64;
  const float larger = fmaf(product, ldexpf(1.0f, moved < -120 ? -120 : moved), ldexpf(c, 64));
  return fabsf(larger) < 0x1p-62f ? copysignf(0.0f, result) : result;
}
inline float dot_bf16(float acc, const uint16_t* a, const uint16_t* b) {
  // The upper pair of the dword first.
  const float upper = fused_bf16(from_bf16(a[1]), from_bf16(b[1]), acc);
  return fused_bf16(from_bf16(a[0]), from_bf16(b[0]), upper);
}
// Not under a mask: GCC 13 and older take the mask to have 8 bits, whatever the vector.
#define MICROSCALE_MODEL_DOT_BF16(PREFIX, V, H)                                                               \
  inline V PREFIX##_dpbf16_ps(V acc, H a, H b) {                                                              \
    Lanes<V, float> result(acc);                                                                              \
    for (int i = 0; i < result.count; ++i) result[i] = dot_bf16(result[i], a.lanes + 2 * i, b.lanes + 2 * i); \
    return result;                                                                                            \
  }
MICROSCALE_MODEL_DOT_BF16(_mm512, __m512, __m512bh)
MICROSCALE_MODEL_DOT_BF16(_mm256, __m256, __m256bh)
MICROSCALE_MODEL_DOT_BF16(_mm, __m128, __m128bh)
#undef MICROSCALE_MODEL_DOT_BF16

}  // namespace microscale::avx512_model

#endif
