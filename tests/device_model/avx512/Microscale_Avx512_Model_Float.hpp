#ifndef MICROSCALE_AVX512_MODEL_FLOAT_HPP
#define MICROSCALE_AVX512_MODEL_FLOAT_HPP

#include <math.h>
#include <Microscale_Avx512_Model_Compare.hpp>

// Arithmetic on binary32, each operation rounded once to nearest even, subnormals kept (the default of MXCSR).
namespace microscale::avx512_model {

inline uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, add_ps, float, x + y)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, sub_ps, float, x - y)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, mul_ps, float, x* y)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, div_ps, float, x / y)
// The second operand if they are equal (zeros of either sign too) or one is NaN.
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, max_ps, float, x > y ? x : y)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, min_ps, float, x < y ? x : y)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_UNARY, sqrt_ps, float, sqrtf(x))
inline __m512d _mm512_add_pd(__m512d a, __m512d b) {
  return map<double>(a, b, [](double x, double y) { return x + y; });
}
inline __m512d _mm512_mul_pd(__m512d a, __m512d b) {
  return map<double>(a, b, [](double x, double y) { return x * y; });
}

// Floats as their bits.
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, and_ps, uint32_t, x& y)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, or_ps, uint32_t, x | y)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, xor_ps, uint32_t, x ^ y)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, andnot_ps, uint32_t, ~x& y)
inline __m512 _mm512_abs_ps(__m512 a) {
  return map<uint32_t>(a, [](uint32_t x) { return x & 0x7fffffffu; });
}

// a * b + c and its signs, rounded once. (A mask keeps the lanes of a, and those of c with mask3_.)
#define MICROSCALE_MODEL_FUSED(PREFIX, V, NAME, EXPRESSION)                           \
  inline V PREFIX##_##NAME(V a, V b, V c) {                                           \
    return map<float>(a, b, c, [](float x, float y, float z) { return EXPRESSION; }); \
  }                                                                                   \
  inline V PREFIX##_mask_##NAME(V a, Mask<V, float> k, V b, V c) {                    \
    return choose<float>(k, PREFIX##_##NAME(a, b, c), a);                             \
  }                                                                                   \
  inline V PREFIX##_mask3_##NAME(V a, V b, V c, Mask<V, float> k) {                   \
    return choose<float>(k, PREFIX##_##NAME(a, b, c), c);                             \
  }                                                                                   \
  inline V PREFIX##_maskz_##NAME(Mask<V, float> k, V a, V b, V c) {                   \
    return choose<float>(k, PREFIX##_##NAME(a, b, c), zero<V>());                     \
  }
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_FUSED, fmadd_ps, fmaf(x, y, z))
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_FUSED, fmsub_ps, fmaf(x, y, -z))
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_FUSED, fnmadd_ps, fmaf(-x, y, z))
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_FUSED, fnmsub_ps, fmaf(-x, y, -z))
#undef MICROSCALE_MODEL_FUSED

inline float quiet(float x) { return float_of(bits_of(x) | 0x00400000u); }
inline float default_nan() { return float_of(0xffc00000u); }

/// x * 2^floor(y), rounded once (VSCALEFPS).
inline float scaled(float x, float y) {
  const bool x_is_nan = x != x, x_signals = x_is_nan && (bits_of(x) & 0x00400000u) == 0;
  if (x_signals) return quiet(x);
  if (y != y) return quiet(x_is_nan ? x : y);
  if (y == INFINITY) return x_is_nan ? y : (x == 0 ? default_nan() : copysignf(INFINITY, x));
  if (y == -INFINITY) return x_is_nan ? 0.0f : (isinf(x) ? default_nan() : copysignf(0.0f, x));
  if (x_is_nan) return x;
  const float floored = floorf(y);
  return scalbnf(x, floored > 1000 ? 1000 : (floored < -1000 ? -1000 : static_cast<int>(floored)));
}
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BINARY, scalef_ps, float, scaled(x, y))

/// floor(log2(|x|)), of subnormals too (VGETEXPPS).
inline float exponent(float x) {
  if (x != x) return quiet(x);
  if (x == 0) return -INFINITY;
  return isinf(x) ? INFINITY : static_cast<float>(ilogbf(x));
}
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_UNARY, getexp_ps, float, exponent(x))

enum {
  _MM_FROUND_TO_NEAREST_INT = 0,
  _MM_FROUND_TO_NEG_INF = 1,
  _MM_FROUND_TO_POS_INF = 2,
  _MM_FROUND_TO_ZERO = 3,
  _MM_FROUND_CUR_DIRECTION = 4,
  _MM_FROUND_NO_EXC = 8
};
/// To a multiple of 2^-(how / 16), in the direction that the low bits say.
inline float rounded(float x, int how) {
  if (x != x) return quiet(x);
  if (isinf(x)) return x;
  const double scale = ldexp(1.0, how >> 4 & 15), moved = x * scale;
  const int direction = (how & 4) != 0 ? 0 : how & 3;
  const double result = direction == 0   ? nearbyint(moved)
                        : direction == 1 ? floor(moved)
                        : direction == 2 ? ceil(moved)
                                         : trunc(moved);
  return copysignf(static_cast<float>(result / scale), x);
}
#define MICROSCALE_MODEL_ROUND(PREFIX, V, NAME)                       \
  inline V PREFIX##_##NAME(V a, int how) {                            \
    return map<float>(a, [how](float x) { return rounded(x, how); }); \
  }                                                                   \
  MICROSCALE_MODEL_MASKED1_IMMEDIATE(PREFIX, V, NAME, float)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_ROUND, roundscale_ps)
#undef MICROSCALE_MODEL_ROUND

/// The smaller (how & 3: 0), larger (1), smaller by magnitude (2) or larger by magnitude (3) of the two, with x's sign,
/// its own, none or a minus (how / 4: 0 to 3) (VRANGEPS). A quiet NaN gives way to the other.
inline float ranged(float x, float y, int how) {
  const auto signals = [](float v) { return v != v && (bits_of(v) & 0x00400000u) == 0; };
  if (signals(x)) return quiet(x);
  if (signals(y)) return quiet(y);
  float result = x;
  if (x != x)
    result = y == y ? y : x;
  else if (y == y) {
    const float a = (how & 2) != 0 ? fabsf(x) : x, b = (how & 2) != 0 ? fabsf(y) : y;
    const bool x_is_less = a < b || (a == b && (how & 2) == 0 && bits_of(x) >> 31 != 0);
    const bool x_is_more = a > b || (a == b && (how & 2) == 0 && bits_of(x) >> 31 == 0);
    result = (how & 1) == 0 ? (x_is_less ? x : y) : (x_is_more ? x : y);
    if (a == b && (how & 2) != 0 && bits_of(x) != bits_of(y)) result = (how & 1) == 0 ? -fabsf(x) : fabsf(x);
  }
  switch (how >> 2 & 3) {
    case 0:
      return result != result ? result : copysignf(result, x);
    case 2:
      return fabsf(result);
    case 3:
      return -fabsf(result);
  }
  return result;
}
#define MICROSCALE_MODEL_RANGE(PREFIX, V, NAME)                                     \
  inline V PREFIX##_##NAME(V a, V b, int how) {                                     \
    return map<float>(a, b, [how](float x, float y) { return ranged(x, y, how); }); \
  }                                                                                 \
  MICROSCALE_MODEL_MASKED2_IMMEDIATE(PREFIX, V, NAME, float)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_RANGE, range_ps)
#undef MICROSCALE_MODEL_RANGE

// The halves of the vector first.
inline float _mm512_reduce_add_ps(__m512 a) {
  return reduce<float>(a, [](float x, float y) { return x + y; });
}
inline float _mm512_reduce_max_ps(__m512 a) {
  return reduce<float>(a, [](float x, float y) { return x > y ? x : y; });
}
inline float _mm512_reduce_min_ps(__m512 a) {
  return reduce<float>(a, [](float x, float y) { return x < y ? x : y; });
}

}  // namespace microscale::avx512_model

#endif
