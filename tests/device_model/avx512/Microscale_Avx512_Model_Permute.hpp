#ifndef MICROSCALE_AVX512_MODEL_PERMUTE_HPP
#define MICROSCALE_AVX512_MODEL_PERMUTE_HPP

#include <Microscale_Avx512_Model_Convert.hpp>

// Lanes that move: within 128-bit parts, and across the whole vector.
namespace microscale::avx512_model {

/// Lane i of the result is lane from(i) of a, or of b counted on after a's.
template <class T, class V, class F>
inline V pick(V va, V vb, F from) {
  const Lanes<V, T> a(va), b(vb);
  Lanes<V, T> result;
  for (int i = 0; i < result.count; ++i) {
    const int at = from(i);
    result[i] = at < a.count ? a[at] : b[at - a.count];
  }
  return result;
}

// By an index of each lane's own: permutexvar(index, a), permutex2var(a, index, b).
#define MICROSCALE_MODEL_PERMUTE(PREFIX, V, I, SUFFIX, T)                                                \
  inline V PREFIX##_permutexvar_##SUFFIX(I index, V a) {                                                 \
    const Lanes<I, T> at(index);                                                                         \
    return pick<T>(a, a, [&](int i) { return static_cast<int>(at[i] & (Lanes<V, T>::count - 1)); });     \
  }                                                                                                      \
  inline V PREFIX##_mask_permutexvar_##SUFFIX(V other, Mask<V, T> k, I index, V a) {                     \
    return choose<T>(k, PREFIX##_permutexvar_##SUFFIX(index, a), other);                                 \
  }                                                                                                      \
  inline V PREFIX##_maskz_permutexvar_##SUFFIX(Mask<V, T> k, I index, V a) {                             \
    return choose<T>(k, PREFIX##_permutexvar_##SUFFIX(index, a), zero<V>());                             \
  }                                                                                                      \
  inline V PREFIX##_permutex2var_##SUFFIX(V a, I index, V b) {                                           \
    const Lanes<I, T> at(index);                                                                         \
    return pick<T>(a, b, [&](int i) { return static_cast<int>(at[i] & (2 * Lanes<V, T>::count - 1)); }); \
  }                                                                                                      \
  inline V PREFIX##_mask_permutex2var_##SUFFIX(V a, Mask<V, T> k, I index, V b) {                        \
    return choose<T>(k, PREFIX##_permutex2var_##SUFFIX(a, index, b), a);                                 \
  }                                                                                                      \
  inline V PREFIX##_maskz_permutex2var_##SUFFIX(Mask<V, T> k, V a, I index, V b) {                       \
    return choose<T>(k, PREFIX##_permutex2var_##SUFFIX(a, index, b), zero<V>());                         \
  }
MICROSCALE_MODEL_PERMUTE(_mm512, __m512i, __m512i, epi8, uint8_t)
MICROSCALE_MODEL_PERMUTE(_mm512, __m512i, __m512i, epi16, uint16_t)
MICROSCALE_MODEL_PERMUTE(_mm512, __m512i, __m512i, epi32, uint32_t)
MICROSCALE_MODEL_PERMUTE(_mm512, __m512i, __m512i, epi64, uint64_t)
MICROSCALE_MODEL_PERMUTE(_mm512, __m512, __m512i, ps, uint32_t)
MICROSCALE_MODEL_PERMUTE(_mm256, __m256i, __m256i, epi8, uint8_t)
MICROSCALE_MODEL_PERMUTE(_mm256, __m256i, __m256i, epi16, uint16_t)
MICROSCALE_MODEL_PERMUTE(_mm256, __m256i, __m256i, epi32, uint32_t)
MICROSCALE_MODEL_PERMUTE(_mm256, __m256, __m256i, ps, uint32_t)
#undef MICROSCALE_MODEL_PERMUTE

// Bytes within each 16 by an index of each lane's own; a negative one gives zero.
#define MICROSCALE_MODEL_SHUFFLE_BYTES(PREFIX, V, UNUSED)                                                         \
  inline V PREFIX##_shuffle_epi8(V va, V index) {                                                                 \
    const Lanes<V, uint8_t> a(va), at(index);                                                                     \
    Lanes<V, uint8_t> result;                                                                                     \
    for (int i = 0; i < a.count; ++i) result[i] = (at[i] & 0x80) != 0 ? uint8_t{0} : a[(i & ~15) + (at[i] & 15)]; \
    return result;                                                                                                \
  }                                                                                                               \
  MICROSCALE_MODEL_MASKED2(PREFIX, V, shuffle_epi8, uint8_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_SHUFFLE_BYTES, )
#undef MICROSCALE_MODEL_SHUFFLE_BYTES

// Within 128-bit parts, lanes by the fields of an immediate.
#define MICROSCALE_MODEL_SHUFFLES(PREFIX, V, UNUSED)                                                              \
  inline V PREFIX##_shuffle_epi32(V a, int how) {                                                                 \
    return pick<uint32_t>(a, a, [how](int i) { return (i & ~3) + (how >> 2 * (i & 3) & 3); });                    \
  }                                                                                                               \
  inline V PREFIX##_alignr_epi8(V va, V vb, int n) {                                                              \
    const Lanes<V, uint8_t> a(va), b(vb);                                                                         \
    Lanes<V, uint8_t> result;                                                                                     \
    for (int i = 0; i < a.count; ++i) {                                                                           \
      const int at = (i & 15) + n;                                                                                \
      result[i] = at < 16 ? b[(i & ~15) + at] : (at < 32 ? a[(i & ~15) + at - 16] : uint8_t{0});                  \
    }                                                                                                             \
    return result;                                                                                                \
  }                                                                                                               \
  inline V PREFIX##_bslli_epi128(V a, int n) { return PREFIX##_alignr_epi8(a, zero<V>(), n < 16 ? 16 - n : 32); } \
  inline V PREFIX##_bsrli_epi128(V a, int n) { return PREFIX##_alignr_epi8(zero<V>(), a, n < 16 ? n : 32); }      \
  MICROSCALE_MODEL_MASKED2_IMMEDIATE(PREFIX, V, alignr_epi8, uint8_t)                                             \
  MICROSCALE_MODEL_MASKED1_IMMEDIATE(PREFIX, V, shuffle_epi32, uint32_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_SHUFFLES, )
#undef MICROSCALE_MODEL_SHUFFLES
#define MICROSCALE_MODEL_SHUFFLES(PREFIX, V, UNUSED)                                               \
  inline V PREFIX##_permute_ps(V a, int how) {                                                     \
    return pick<uint32_t>(a, a, [how](int i) { return (i & ~3) + (how >> 2 * (i & 3) & 3); });     \
  }                                                                                                \
  inline V PREFIX##_shuffle_ps(V a, V b, int how) {                                                \
    return pick<uint32_t>(a, b, [how](int i) {                                                     \
      return (i & ~3) + (how >> 2 * (i & 3) & 3) + ((i & 2) != 0 ? Lanes<V, uint32_t>::count : 0); \
    });                                                                                            \
  }                                                                                                \
  inline V PREFIX##_moveldup_ps(V a) {                                                             \
    return pick<uint32_t>(a, a, [](int i) { return i & ~1; });                                     \
  }                                                                                                \
  inline V PREFIX##_movehdup_ps(V a) {                                                             \
    return pick<uint32_t>(a, a, [](int i) { return i | 1; });                                      \
  }
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_SHUFFLES, )
#undef MICROSCALE_MODEL_SHUFFLES

// Lanes of a and b in turn, from the low or the high half of each 128-bit part.
#define MICROSCALE_MODEL_UNPACK(PREFIX, V, NAME, T, HALF)                                               \
  inline V PREFIX##_##NAME(V a, V b) {                                                                  \
    constexpr int part = 16 / sizeof(T);                                                                \
    return pick<T>(a, b, [](int i) {                                                                    \
      return (i & ~(part - 1)) + HALF * part / 2 + (i & (part - 1)) / 2 + (i & 1) * Lanes<V, T>::count; \
    });                                                                                                 \
  }                                                                                                     \
  MICROSCALE_MODEL_MASKED2(PREFIX, V, NAME, T)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNPACK, unpacklo_epi8, uint8_t, 0)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNPACK, unpacklo_epi16, uint16_t, 0)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNPACK, unpacklo_epi32, uint32_t, 0)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNPACK, unpacklo_epi64, uint64_t, 0)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNPACK, unpackhi_epi8, uint8_t, 1)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNPACK, unpackhi_epi16, uint16_t, 1)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNPACK, unpackhi_epi32, uint32_t, 1)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_UNPACK, unpackhi_epi64, uint64_t, 1)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_UNPACK, unpacklo_ps, uint32_t, 0)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_UNPACK, unpackhi_ps, uint32_t, 1)
MICROSCALE_MODEL_UNPACK(_mm512, __m512d, unpacklo_pd, uint64_t, 0)
MICROSCALE_MODEL_UNPACK(_mm512, __m512d, unpackhi_pd, uint64_t, 1)
#undef MICROSCALE_MODEL_UNPACK

// Saturated to half the width: within each 128-bit part a's lanes, then b's.
#define MICROSCALE_MODEL_PACK(PREFIX, V, NAME, FROM, TO) \
  inline V PREFIX##_##NAME(V va, V vb) {                 \
    constexpr int part = 16 / sizeof(FROM);              \
    const Lanes<V, FROM> a(va), b(vb);                   \
    Lanes<V, TO> result;                                 \
    for (int i = 0; i < a.count; ++i) {                  \
      const int to = i / part * 2 * part + i % part;     \
      result[to] = saturate<TO>(a[i]);                   \
      result[to + part] = saturate<TO>(b[i]);            \
    }                                                    \
    return result;                                       \
  }                                                      \
  MICROSCALE_MODEL_MASKED2(PREFIX, V, NAME, TO)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_PACK, packs_epi32, int32_t, int16_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_PACK, packus_epi32, int32_t, uint16_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_PACK, packs_epi16, int16_t, int8_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_PACK, packus_epi16, int16_t, uint8_t)
#undef MICROSCALE_MODEL_PACK

// Whole 128-bit parts: the lower two of the result from a, the upper two from b.
#define MICROSCALE_MODEL_PARTS(NAME, V, T)                                               \
  inline V _mm512_##NAME(V a, V b, int how) {                                            \
    constexpr int part = 16 / sizeof(T);                                                 \
    return pick<T>(a, b, [how](int i) {                                                  \
      const int at = i / part;                                                           \
      return (how >> 2 * at & 3) * part + i % part + (at >= 2 ? Lanes<V, T>::count : 0); \
    });                                                                                  \
  }                                                                                      \
  MICROSCALE_MODEL_MASKED2_IMMEDIATE(_mm512, V, NAME, T)
MICROSCALE_MODEL_PARTS(shuffle_i32x4, __m512i, uint32_t)
MICROSCALE_MODEL_PARTS(shuffle_i64x2, __m512i, uint64_t)
MICROSCALE_MODEL_PARTS(shuffle_f32x4, __m512, uint32_t)
MICROSCALE_MODEL_PARTS(shuffle_f64x2, __m512d, uint64_t)
#undef MICROSCALE_MODEL_PARTS
inline __m256i _mm256_permute2x128_si256(__m256i a, __m256i b, int how) {
  Lanes<__m256i, __m128i> result;
  const Lanes<__m256i, __m128i> from_a(a), from_b(b);
  for (int i = 0; i < 2; ++i) {
    const int field = how >> 4 * i & 15;
    result[i] = (field & 8) != 0 ? __m128i{} : ((field & 2) != 0 ? from_b[field & 1] : from_a[field & 1]);
  }
  return result;
}
inline __m512i _mm512_permutex_epi64(__m512i a, int how) {
  return pick<uint64_t>(a, a, [how](int i) { return (i & ~3) + (how >> 2 * (i & 3) & 3); });
}
inline __m256i _mm256_permute4x64_epi64(__m256i a, int how) {
  return pick<uint64_t>(a, a, [how](int i) { return how >> 2 * i & 3; });
}
inline __m256i _mm256_permutevar8x32_epi32(__m256i a, __m256i index) { return _mm256_permutexvar_epi32(index, a); }
/// b's lanes from the n-th on, then a's.
inline __m512i _mm512_alignr_epi32(__m512i a, __m512i b, int n) {
  return pick<uint32_t>(b, a, [n](int i) { return i + (n & 15); });
}
inline __m512i _mm512_alignr_epi64(__m512i a, __m512i b, int n) {
  return pick<uint64_t>(b, a, [n](int i) { return i + (n & 7); });
}

// Parts out of a vector and into one.
#define MICROSCALE_MODEL_PART(PREFIX, V, W, EXTRACT, INSERT)                                       \
  inline W PREFIX##_##EXTRACT(V a, int i) { return Lanes<V, W>(a)[i & (Lanes<V, W>::count - 1)]; } \
  inline V PREFIX##_##INSERT(V a, W part, int i) {                                                 \
    Lanes<V, W> result(a);                                                                         \
    result[i & (Lanes<V, W>::count - 1)] = part;                                                   \
    return result;                                                                                 \
  }
MICROSCALE_MODEL_PART(_mm512, __m512i, __m128i, extracti32x4_epi32, inserti32x4)
MICROSCALE_MODEL_PART(_mm512, __m512i, __m128i, extracti64x2_epi64, inserti64x2)
MICROSCALE_MODEL_PART(_mm512, __m512i, __m256i, extracti32x8_epi32, inserti32x8)
MICROSCALE_MODEL_PART(_mm512, __m512i, __m256i, extracti64x4_epi64, inserti64x4)
MICROSCALE_MODEL_PART(_mm512, __m512, __m128, extractf32x4_ps, insertf32x4)
MICROSCALE_MODEL_PART(_mm512, __m512, __m256, extractf32x8_ps, insertf32x8)
MICROSCALE_MODEL_PART(_mm256, __m256i, __m128i, extracti128_si256, inserti128_si256)
MICROSCALE_MODEL_PART(_mm256, __m256i, __m128i, extracti32x4_epi32, inserti32x4)
MICROSCALE_MODEL_PART(_mm256, __m256, __m128, extractf128_ps, insertf128_ps)
#undef MICROSCALE_MODEL_PART

// The lanes of the mask together at the bottom, and back again.
#define MICROSCALE_MODEL_COMPRESS(V, SUFFIX, T)                         \
  inline V _mm512_mask_compress_##SUFFIX(V other, Mask<V, T> k, V va) { \
    const Lanes<V, T> a(va);                                            \
    Lanes<V, T> result(other);                                          \
    for (int i = 0, to = 0; i < a.count; ++i)                           \
      if (bit(k, i)) result[to++] = a[i];                               \
    return result;                                                      \
  }                                                                     \
  inline V _mm512_maskz_compress_##SUFFIX(Mask<V, T> k, V a) {          \
    return _mm512_mask_compress_##SUFFIX(zero<V>(), k, a);              \
  }                                                                     \
  inline V _mm512_mask_expand_##SUFFIX(V other, Mask<V, T> k, V va) {   \
    const Lanes<V, T> a(va);                                            \
    Lanes<V, T> result(other);                                          \
    for (int i = 0, from = 0; i < a.count; ++i)                         \
      if (bit(k, i)) result[i] = a[from++];                             \
    return result;                                                      \
  }                                                                     \
  inline V _mm512_maskz_expand_##SUFFIX(Mask<V, T> k, V a) { return _mm512_mask_expand_##SUFFIX(zero<V>(), k, a); }
MICROSCALE_MODEL_COMPRESS(__m512i, epi32, uint32_t)
MICROSCALE_MODEL_COMPRESS(__m512i, epi64, uint64_t)
MICROSCALE_MODEL_COMPRESS(__m512, ps, uint32_t)
#undef MICROSCALE_MODEL_COMPRESS

}  // namespace microscale::avx512_model

#endif
