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

// The fields of an immediate as letters, the highest lane's first; A is lane 0.
using _MM_PERM_ENUM = int;
enum {
  _MM_PERM_AAAA = 0x00,
  _MM_PERM_AAAB = 0x01,
  _MM_PERM_AAAC = 0x02,
  _MM_PERM_AAAD = 0x03,
  _MM_PERM_AABA = 0x04,
  _MM_PERM_AABB = 0x05,
  _MM_PERM_AABC = 0x06,
  _MM_PERM_AABD = 0x07,
  _MM_PERM_AACA = 0x08,
  _MM_PERM_AACB = 0x09,
  _MM_PERM_AACC = 0x0a,
  _MM_PERM_AACD = 0x0b,
  _MM_PERM_AADA = 0x0c,
  _MM_PERM_AADB = 0x0d,
  _MM_PERM_AADC = 0x0e,
  _MM_PERM_AADD = 0x0f,
  _MM_PERM_ABAA = 0x10,
  _MM_PERM_ABAB = 0x11,
  _MM_PERM_ABAC = 0x12,
  _MM_PERM_ABAD = 0x13,
  _MM_PERM_ABBA = 0x14,
  _MM_PERM_ABBB = 0x15,
  _MM_PERM_ABBC = 0x16,
  _MM_PERM_ABBD = 0x17,
  _MM_PERM_ABCA = 0x18,
  _MM_PERM_ABCB = 0x19,
  _MM_PERM_ABCC = 0x1a,
  _MM_PERM_ABCD = 0x1b,
  _MM_PERM_ABDA = 0x1c,
  _MM_PERM_ABDB = 0x1d,
  _MM_PERM_ABDC = 0x1e,
  _MM_PERM_ABDD = 0x1f,
  _MM_PERM_ACAA = 0x20,
  _MM_PERM_ACAB = 0x21,
  _MM_PERM_ACAC = 0x22,
  _MM_PERM_ACAD = 0x23,
  _MM_PERM_ACBA = 0x24,
  _MM_PERM_ACBB = 0x25,
  _MM_PERM_ACBC = 0x26,
  _MM_PERM_ACBD = 0x27,
  _MM_PERM_ACCA = 0x28,
  _MM_PERM_ACCB = 0x29,
  _MM_PERM_ACCC = 0x2a,
  _MM_PERM_ACCD = 0x2b,
  _MM_PERM_ACDA = 0x2c,
  _MM_PERM_ACDB = 0x2d,
  _MM_PERM_ACDC = 0x2e,
  _MM_PERM_ACDD = 0x2f,
  _MM_PERM_ADAA = 0x30,
  _MM_PERM_ADAB = 0x31,
  _MM_PERM_ADAC = 0x32,
  _MM_PERM_ADAD = 0x33,
  _MM_PERM_ADBA = 0x34,
  _MM_PERM_ADBB = 0x35,
  _MM_PERM_ADBC = 0x36,
  _MM_PERM_ADBD = 0x37,
  _MM_PERM_ADCA = 0x38,
  _MM_PERM_ADCB = 0x39,
  _MM_PERM_ADCC = 0x3a,
  _MM_PERM_ADCD = 0x3b,
  _MM_PERM_ADDA = 0x3c,
  _MM_PERM_ADDB = 0x3d,
  _MM_PERM_ADDC = 0x3e,
  _MM_PERM_ADDD = 0x3f,
  _MM_PERM_BAAA = 0x40,
  _MM_PERM_BAAB = 0x41,
  _MM_PERM_BAAC = 0x42,
  _MM_PERM_BAAD = 0x43,
  _MM_PERM_BABA = 0x44,
  _MM_PERM_BABB = 0x45,
  _MM_PERM_BABC = 0x46,
  _MM_PERM_BABD = 0x47,
  _MM_PERM_BACA = 0x48,
  _MM_PERM_BACB = 0x49,
  _MM_PERM_BACC = 0x4a,
  _MM_PERM_BACD = 0x4b,
  _MM_PERM_BADA = 0x4c,
  _MM_PERM_BADB = 0x4d,
  _MM_PERM_BADC = 0x4e,
  _MM_PERM_BADD = 0x4f,
  _MM_PERM_BBAA = 0x50,
  _MM_PERM_BBAB = 0x51,
  _MM_PERM_BBAC = 0x52,
  _MM_PERM_BBAD = 0x53,
  _MM_PERM_BBBA = 0x54,
  _MM_PERM_BBBB = 0x55,
  _MM_PERM_BBBC = 0x56,
  _MM_PERM_BBBD = 0x57,
  _MM_PERM_BBCA = 0x58,
  _MM_PERM_BBCB = 0x59,
  _MM_PERM_BBCC = 0x5a,
  _MM_PERM_BBCD = 0x5b,
  _MM_PERM_BBDA = 0x5c,
  _MM_PERM_BBDB = 0x5d,
  _MM_PERM_BBDC = 0x5e,
  _MM_PERM_BBDD = 0x5f,
  _MM_PERM_BCAA = 0x60,
  _MM_PERM_BCAB = 0x61,
  _MM_PERM_BCAC = 0x62,
  _MM_PERM_BCAD = 0x63,
  _MM_PERM_BCBA = 0x64,
  _MM_PERM_BCBB = 0x65,
  _MM_PERM_BCBC = 0x66,
  _MM_PERM_BCBD = 0x67,
  _MM_PERM_BCCA = 0x68,
  _MM_PERM_BCCB = 0x69,
  _MM_PERM_BCCC = 0x6a,
  _MM_PERM_BCCD = 0x6b,
  _MM_PERM_BCDA = 0x6c,
  _MM_PERM_BCDB = 0x6d,
  _MM_PERM_BCDC = 0x6e,
  _MM_PERM_BCDD = 0x6f,
  _MM_PERM_BDAA = 0x70,
  _MM_PERM_BDAB = 0x71,
  _MM_PERM_BDAC = 0x72,
  _MM_PERM_BDAD = 0x73,
  _MM_PERM_BDBA = 0x74,
  _MM_PERM_BDBB = 0x75,
  _MM_PERM_BDBC = 0x76,
  _MM_PERM_BDBD = 0x77,
  _MM_PERM_BDCA = 0x78,
  _MM_PERM_BDCB = 0x79,
  _MM_PERM_BDCC = 0x7a,
  _MM_PERM_BDCD = 0x7b,
  _MM_PERM_BDDA = 0x7c,
  _MM_PERM_BDDB = 0x7d,
  _MM_PERM_BDDC = 0x7e,
  _MM_PERM_BDDD = 0x7f,
  _MM_PERM_CAAA = 0x80,
  _MM_PERM_CAAB = 0x81,
  _MM_PERM_CAAC = 0x82,
  _MM_PERM_CAAD = 0x83,
  _MM_PERM_CABA = 0x84,
  _MM_PERM_CABB = 0x85,
  _MM_PERM_CABC = 0x86,
  _MM_PERM_CABD = 0x87,
  _MM_PERM_CACA = 0x88,
  _MM_PERM_CACB = 0x89,
  _MM_PERM_CACC = 0x8a,
  _MM_PERM_CACD = 0x8b,
  _MM_PERM_CADA = 0x8c,
  _MM_PERM_CADB = 0x8d,
  _MM_PERM_CADC = 0x8e,
  _MM_PERM_CADD = 0x8f,
  _MM_PERM_CBAA = 0x90,
  _MM_PERM_CBAB = 0x91,
  _MM_PERM_CBAC = 0x92,
  _MM_PERM_CBAD = 0x93,
  _MM_PERM_CBBA = 0x94,
  _MM_PERM_CBBB = 0x95,
  _MM_PERM_CBBC = 0x96,
  _MM_PERM_CBBD = 0x97,
  _MM_PERM_CBCA = 0x98,
  _MM_PERM_CBCB = 0x99,
  _MM_PERM_CBCC = 0x9a,
  _MM_PERM_CBCD = 0x9b,
  _MM_PERM_CBDA = 0x9c,
  _MM_PERM_CBDB = 0x9d,
  _MM_PERM_CBDC = 0x9e,
  _MM_PERM_CBDD = 0x9f,
  _MM_PERM_CCAA = 0xa0,
  _MM_PERM_CCAB = 0xa1,
  _MM_PERM_CCAC = 0xa2,
  _MM_PERM_CCAD = 0xa3,
  _MM_PERM_CCBA = 0xa4,
  _MM_PERM_CCBB = 0xa5,
  _MM_PERM_CCBC = 0xa6,
  _MM_PERM_CCBD = 0xa7,
  _MM_PERM_CCCA = 0xa8,
  _MM_PERM_CCCB = 0xa9,
  _MM_PERM_CCCC = 0xaa,
  _MM_PERM_CCCD = 0xab,
  _MM_PERM_CCDA = 0xac,
  _MM_PERM_CCDB = 0xad,
  _MM_PERM_CCDC = 0xae,
  _MM_PERM_CCDD = 0xaf,
  _MM_PERM_CDAA = 0xb0,
  _MM_PERM_CDAB = 0xb1,
  _MM_PERM_CDAC = 0xb2,
  _MM_PERM_CDAD = 0xb3,
  _MM_PERM_CDBA = 0xb4,
  _MM_PERM_CDBB = 0xb5,
  _MM_PERM_CDBC = 0xb6,
  _MM_PERM_CDBD = 0xb7,
  _MM_PERM_CDCA = 0xb8,
  _MM_PERM_CDCB = 0xb9,
  _MM_PERM_CDCC = 0xba,
  _MM_PERM_CDCD = 0xbb,
  _MM_PERM_CDDA = 0xbc,
  _MM_PERM_CDDB = 0xbd,
  _MM_PERM_CDDC = 0xbe,
  _MM_PERM_CDDD = 0xbf,
  _MM_PERM_DAAA = 0xc0,
  _MM_PERM_DAAB = 0xc1,
  _MM_PERM_DAAC = 0xc2,
  _MM_PERM_DAAD = 0xc3,
  _MM_PERM_DABA = 0xc4,
  _MM_PERM_DABB = 0xc5,
  _MM_PERM_DABC = 0xc6,
  _MM_PERM_DABD = 0xc7,
  _MM_PERM_DACA = 0xc8,
  _MM_PERM_DACB = 0xc9,
  _MM_PERM_DACC = 0xca,
  _MM_PERM_DACD = 0xcb,
  _MM_PERM_DADA = 0xcc,
  _MM_PERM_DADB = 0xcd,
  _MM_PERM_DADC = 0xce,
  _MM_PERM_DADD = 0xcf,
  _MM_PERM_DBAA = 0xd0,
  _MM_PERM_DBAB = 0xd1,
  _MM_PERM_DBAC = 0xd2,
  _MM_PERM_DBAD = 0xd3,
  _MM_PERM_DBBA = 0xd4,
  _MM_PERM_DBBB = 0xd5,
  _MM_PERM_DBBC = 0xd6,
  _MM_PERM_DBBD = 0xd7,
  _MM_PERM_DBCA = 0xd8,
  _MM_PERM_DBCB = 0xd9,
  _MM_PERM_DBCC = 0xda,
  _MM_PERM_DBCD = 0xdb,
  _MM_PERM_DBDA = 0xdc,
  _MM_PERM_DBDB = 0xdd,
  _MM_PERM_DBDC = 0xde,
  _MM_PERM_DBDD = 0xdf,
  _MM_PERM_DCAA = 0xe0,
  _MM_PERM_DCAB = 0xe1,
  _MM_PERM_DCAC = 0xe2,
  _MM_PERM_DCAD = 0xe3,
  _MM_PERM_DCBA = 0xe4,
  _MM_PERM_DCBB = 0xe5,
  _MM_PERM_DCBC = 0xe6,
  _MM_PERM_DCBD = 0xe7,
  _MM_PERM_DCCA = 0xe8,
  _MM_PERM_DCCB = 0xe9,
  _MM_PERM_DCCC = 0xea,
  _MM_PERM_DCCD = 0xeb,
  _MM_PERM_DCDA = 0xec,
  _MM_PERM_DCDB = 0xed,
  _MM_PERM_DCDC = 0xee,
  _MM_PERM_DCDD = 0xef,
  _MM_PERM_DDAA = 0xf0,
  _MM_PERM_DDAB = 0xf1,
  _MM_PERM_DDAC = 0xf2,
  _MM_PERM_DDAD = 0xf3,
  _MM_PERM_DDBA = 0xf4,
  _MM_PERM_DDBB = 0xf5,
  _MM_PERM_DDBC = 0xf6,
  _MM_PERM_DDBD = 0xf7,
  _MM_PERM_DDCA = 0xf8,
  _MM_PERM_DDCB = 0xf9,
  _MM_PERM_DDCC = 0xfa,
  _MM_PERM_DDCD = 0xfb,
  _MM_PERM_DDDA = 0xfc,
  _MM_PERM_DDDB = 0xfd,
  _MM_PERM_DDDC = 0xfe,
  _MM_PERM_DDDD = 0xff
};

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
