#ifndef MICROSCALE_AVX512_MODEL_INTEGER_HPP
#define MICROSCALE_AVX512_MODEL_INTEGER_HPP

#include <Microscale_Avx512_Model_Memory.hpp>

// Bits, shifts and integer arithmetic.
namespace microscale::avx512_model {

// Whole vectors of bits; a mask needs to know the lanes.
#define MICROSCALE_MODEL_LOGIC(PREFIX, V, SUFFIX, NAME, EXPRESSION)                \
  inline V PREFIX##_##NAME##_##SUFFIX(V a, V b) {                                  \
    return map<uint64_t>(a, b, [](uint64_t x, uint64_t y) { return EXPRESSION; }); \
  }
#define MICROSCALE_MODEL_LOGICS(NAME, EXPRESSION)                              \
  MICROSCALE_MODEL_LOGIC(_mm512, __m512i, si512, NAME, EXPRESSION)             \
  MICROSCALE_MODEL_LOGIC(_mm256, __m256i, si256, NAME, EXPRESSION)             \
  MICROSCALE_MODEL_LOGIC(_mm, __m128i, si128, NAME, EXPRESSION)                \
  MICROSCALE_MODEL_BINARY(_mm512, __m512i, NAME##_epi32, uint32_t, EXPRESSION) \
  MICROSCALE_MODEL_BINARY(_mm512, __m512i, NAME##_epi64, uint64_t, EXPRESSION) \
  MICROSCALE_MODEL_BINARY(_mm256, __m256i, NAME##_epi32, uint32_t, EXPRESSION) \
  MICROSCALE_MODEL_BINARY(_mm, __m128i, NAME##_epi32, uint32_t, EXPRESSION)
MICROSCALE_MODEL_LOGICS(and, x& y)
MICROSCALE_MODEL_LOGICS(or, x | y)
MICROSCALE_MODEL_LOGICS(xor, x ^ y)
MICROSCALE_MODEL_LOGICS(andnot, ~x& y)
#undef MICROSCALE_MODEL_LOGIC
#undef MICROSCALE_MODEL_LOGICS

// Bit 4 a + 2 b + c of the table.
#define MICROSCALE_MODEL_TERNARY(PREFIX, V, NAME, T)                                                 \
  inline V PREFIX##_##NAME(V a, V b, V c, int table) {                                               \
    return map<uint64_t>(a, b, c, [table](uint64_t x, uint64_t y, uint64_t z) {                      \
      uint64_t result = 0;                                                                           \
      for (int i = 0; i < 8; ++i)                                                                    \
        if ((table >> i & 1) != 0) result |= (i & 4 ? x : ~x) & (i & 2 ? y : ~y) & (i & 1 ? z : ~z); \
      return result;                                                                                 \
    });                                                                                              \
  }                                                                                                  \
  inline V PREFIX##_mask_##NAME(V a, Mask<V, T> k, V b, V c, int table) {                            \
    return choose<T>(k, PREFIX##_##NAME(a, b, c, table), a);                                         \
  }                                                                                                  \
  inline V PREFIX##_maskz_##NAME(Mask<V, T> k, V a, V b, V c, int table) {                           \
    return choose<T>(k, PREFIX##_##NAME(a, b, c, table), zero<V>());                                 \
  }
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_TERNARY, ternarylogic_epi32, uint32_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_TERNARY, ternarylogic_epi64, uint64_t)
#undef MICROSCALE_MODEL_TERNARY

// Shifts by an immediate and by a count of each lane's own. Counts beyond the width leave nothing, or the sign.
template <class T>
inline T shift_left(T x, uint64_t n) {
  return n < sizeof(T) * 8 ? static_cast<T>(x << n) : T{};
}
template <class T>
inline T shift_right(T x, uint64_t n) {
  return n < sizeof(T) * 8 ? static_cast<T>(x >> n) : T{};
}
template <class T>
inline T shift_signed(T x, uint64_t n) {
  constexpr uint64_t last = sizeof(T) * 8 - 1;
  return static_cast<T>(x >> (n < last ? n : last));
}
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, slli_epi16, uint16_t, shift_left(x, n))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, slli_epi32, uint32_t, shift_left(x, n))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, slli_epi64, uint64_t, shift_left(x, n))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, srli_epi16, uint16_t, shift_right(x, n))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, srli_epi32, uint32_t, shift_right(x, n))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, srli_epi64, uint64_t, shift_right(x, n))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, srai_epi16, int16_t, shift_signed(x, n))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, srai_epi32, int32_t, shift_signed(x, n))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, srai_epi64, int64_t, shift_signed(x, n))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, rol_epi32, uint32_t, (x << (n & 31)) | (x >> (-n & 31)))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, ror_epi32, uint32_t, (x >> (n & 31)) | (x << (-n & 31)))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_IMMEDIATE, ror_epi64, uint64_t, (x >> (n & 63)) | (x << (-n & 63)))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, sllv_epi16, uint16_t, shift_left(x, y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, sllv_epi32, uint32_t, shift_left(x, y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, sllv_epi64, uint64_t, shift_left(x, y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, srlv_epi16, uint16_t, shift_right(x, y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, srlv_epi32, uint32_t, shift_right(x, y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, srlv_epi64, uint64_t, shift_right(x, y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, srav_epi16, int16_t, shift_signed(x, static_cast<uint16_t>(y)))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, srav_epi32, int32_t, shift_signed(x, static_cast<uint32_t>(y)))

// Unsigned types wrap around; those of 16 bits would be promoted to int.
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, add_epi8, uint8_t, x + y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, add_epi16, uint16_t, x + y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, add_epi32, uint32_t, x + y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, add_epi64, uint64_t, x + y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, sub_epi8, uint8_t, x - y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, sub_epi16, uint16_t, x - y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, sub_epi32, uint32_t, x - y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, sub_epi64, uint64_t, x - y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, mullo_epi16, uint16_t, uint32_t{x} * y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, mullo_epi32, uint32_t, x* y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, mulhi_epi16, int16_t, (int32_t{x} * y) >> 16)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, mulhi_epu16, uint16_t, (uint32_t{x} * y) >> 16)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, mulhrs_epi16, int16_t, (((int32_t{x} * y) >> 14) + 1) >> 1)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, mul_epu32, uint64_t, (x & 0xffffffffu) * (y & 0xffffffffu))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, mul_epi32, int64_t,
                          int64_t{static_cast<int32_t>(x)} * static_cast<int32_t>(y))

template <class T>
inline T saturate(int64_t x) {
  constexpr bool is_signed = static_cast<T>(-1) < T{};
  constexpr int bits = sizeof(T) * 8;
  constexpr int64_t least = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  constexpr int64_t most = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return static_cast<T>(x < least ? least : (x > most ? most : x));
}
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, adds_epi8, int8_t, saturate<int8_t>(x + y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, adds_epu8, uint8_t, saturate<uint8_t>(x + y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, adds_epi16, int16_t, saturate<int16_t>(x + y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, adds_epu16, uint16_t, saturate<uint16_t>(x + y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, subs_epi8, int8_t, saturate<int8_t>(x - y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, subs_epu8, uint8_t, saturate<uint8_t>(x - y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, subs_epi16, int16_t, saturate<int16_t>(x - y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, subs_epu16, uint16_t, saturate<uint16_t>(x - y))
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, avg_epu8, uint8_t, (x + y + 1) >> 1)

MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, min_epi8, int8_t, x < y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, min_epu8, uint8_t, x < y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, min_epi16, int16_t, x < y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, min_epu16, uint16_t, x < y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, min_epi32, int32_t, x < y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, min_epu32, uint32_t, x < y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, max_epi8, int8_t, x > y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, max_epu8, uint8_t, x > y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, max_epi16, int16_t, x > y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, max_epu16, uint16_t, x > y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, max_epi32, int32_t, x > y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BINARY, max_epu32, uint32_t, x > y ? x : y)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNARY, abs_epi8, int8_t, x < 0 ? -x : x)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNARY, abs_epi16, int16_t, x < 0 ? -x : x)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNARY, abs_epi32, int32_t, x < 0 ? 0u - static_cast<uint32_t>(x) : x)

// Pairs of 16-bit lanes summed to 32 bits; pairs of unsigned (a) by signed (b) bytes, saturated to 16.
#define MICROSCALE_MODEL_MADD(PREFIX, V, UNUSED)                                                                   \
  inline V PREFIX##_madd_epi16(V va, V vb) {                                                                       \
    const Lanes<V, int16_t> a(va), b(vb);                                                                          \
    Lanes<V, uint32_t> result;                                                                                     \
    for (int i = 0; i < result.count; ++i)                                                                         \
      result[i] = static_cast<uint32_t>(a[2 * i] * b[2 * i]) + static_cast<uint32_t>(a[2 * i + 1] * b[2 * i + 1]); \
    return result;                                                                                                 \
  }                                                                                                                \
  inline V PREFIX##_maddubs_epi16(V va, V vb) {                                                                    \
    const Lanes<V, uint8_t> a(va);                                                                                 \
    const Lanes<V, int8_t> b(vb);                                                                                  \
    Lanes<V, int16_t> result;                                                                                      \
    for (int i = 0; i < result.count; ++i)                                                                         \
      result[i] = saturate<int16_t>(a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1]);                            \
    return result;                                                                                                 \
  }
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_MADD, )
#undef MICROSCALE_MODEL_MADD

// Eight bits of b's 64 from each of the positions that the bytes of a name, around the end.
#define MICROSCALE_MODEL_MULTISHIFT(PREFIX, V, UNUSED)                                                \
  inline V PREFIX##_multishift_epi64_epi8(V va, V vb) {                                               \
    const Lanes<V, uint8_t> a(va);                                                                    \
    const Lanes<V, uint64_t> b(vb);                                                                   \
    Lanes<V, uint8_t> result;                                                                         \
    for (int i = 0; i < result.count; ++i) {                                                          \
      const unsigned n = a[i] & 63u;                                                                  \
      result[i] = static_cast<uint8_t>(n == 0 ? b[i / 8] : (b[i / 8] >> n) | (b[i / 8] << (64 - n))); \
    }                                                                                                 \
    return result;                                                                                    \
  }                                                                                                   \
  MICROSCALE_MODEL_MASKED2(PREFIX, V, multishift_epi64_epi8, uint8_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_MULTISHIFT, )
#undef MICROSCALE_MODEL_MULTISHIFT

// Sums of absolute differences of bytes, one for 8 of them.
inline __m512i _mm512_sad_epu8(__m512i va, __m512i vb) {
  const Lanes<__m512i, uint8_t> a(va), b(vb);
  Lanes<__m512i, uint64_t> result;
  for (int i = 0; i < 8; ++i) {
    result[i] = 0;
    for (int j = 8 * i; j < 8 * i + 8; ++j) result[i] += static_cast<uint64_t>(a[j] > b[j] ? a[j] - b[j] : b[j] - a[j]);
  }
  return result;
}

/// All lanes by f, the halves first.
template <class T, class V, class F>
inline T reduce(V va, F f) {
  Lanes<V, T> a(va);
  for (int n = a.count / 2; n > 0; n /= 2)
    for (int i = 0; i < n; ++i) a[i] = static_cast<T>(f(a[i], a[i + n]));
  return a[0];
}
inline int _mm512_reduce_add_epi32(__m512i a) {
  return static_cast<int>(reduce<uint32_t>(a, [](uint32_t x, uint32_t y) { return x + y; }));
}
inline int _mm512_mask_reduce_add_epi32(__mmask16 k, __m512i a) {
  return _mm512_reduce_add_epi32(choose<uint32_t>(k, a, zero<__m512i>()));
}
inline long long _mm512_reduce_add_epi64(__m512i a) {
  return static_cast<long long>(reduce<uint64_t>(a, [](uint64_t x, uint64_t y) { return x + y; }));
}
inline int _mm512_reduce_max_epi32(__m512i a) {
  return reduce<int32_t>(a, [](int32_t x, int32_t y) { return x > y ? x : y; });
}
inline int _mm512_reduce_min_epi32(__m512i a) {
  return reduce<int32_t>(a, [](int32_t x, int32_t y) { return x < y ? x : y; });
}
inline unsigned _mm512_reduce_max_epu32(__m512i a) {
  return reduce<uint32_t>(a, [](uint32_t x, uint32_t y) { return x > y ? x : y; });
}
inline unsigned _mm512_reduce_min_epu32(__m512i a) {
  return reduce<uint32_t>(a, [](uint32_t x, uint32_t y) { return x < y ? x : y; });
}
inline int _mm512_reduce_or_epi32(__m512i a) {
  return static_cast<int>(reduce<uint32_t>(a, [](uint32_t x, uint32_t y) { return x | y; }));
}
inline int _mm512_reduce_and_epi32(__m512i a) {
  return static_cast<int>(reduce<uint32_t>(a, [](uint32_t x, uint32_t y) { return x & y; }));
}

// Bit fields of scalars (BMI2).
inline unsigned long long _pext_u64(unsigned long long x, unsigned long long mask) {
  unsigned long long result = 0;
  for (int i = 0, to = 0; i < 64; ++i)
    if (bit(mask, i)) result |= (x >> i & 1) << to++;
  return result;
}
inline unsigned long long _pdep_u64(unsigned long long x, unsigned long long mask) {
  unsigned long long result = 0;
  for (int i = 0, from = 0; i < 64; ++i)
    if (bit(mask, i)) result |= (x >> from++ & 1) << i;
  return result;
}

}  // namespace microscale::avx512_model

#endif
