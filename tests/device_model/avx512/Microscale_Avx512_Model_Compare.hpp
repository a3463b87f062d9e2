#ifndef MICROSCALE_AVX512_MODEL_COMPARE_HPP
#define MICROSCALE_AVX512_MODEL_COMPARE_HPP

#include <Microscale_Avx512_Model_Integer.hpp>

// Comparisons into masks, blends by masks, masks themselves.
namespace microscale::avx512_model {

template <class T, class V, class F>
inline Mask<V, T> compare(V va, V vb, F f) {
  const Lanes<V, T> a(va), b(vb);
  uint64_t result = 0;
  for (int i = 0; i < a.count; ++i) result |= static_cast<uint64_t>(f(a[i], b[i]) ? 1 : 0) << i;
  return static_cast<Mask<V, T>>(result);
}

using _MM_CMPINT_ENUM = int;
enum {
  _MM_CMPINT_EQ = 0,
  _MM_CMPINT_LT = 1,
  _MM_CMPINT_LE = 2,
  _MM_CMPINT_FALSE = 3,
  _MM_CMPINT_NE = 4,
  _MM_CMPINT_NLT = 5,
  _MM_CMPINT_NLE = 6,
  _MM_CMPINT_TRUE = 7
};
template <class T>
inline bool compared(T x, T y, int how) {
  const bool results[] = {x == y, x < y, x <= y, false};
  return results[how & 3] != ((how & 4) != 0);
}

#define MICROSCALE_MODEL_COMPARE(PREFIX, V, NAME, T, EXPRESSION)          \
  inline Mask<V, T> PREFIX##_##NAME##_mask(V a, V b) {                    \
    return compare<T>(a, b, [](T x, T y) { return EXPRESSION; });         \
  }                                                                       \
  inline Mask<V, T> PREFIX##_mask_##NAME##_mask(Mask<V, T> k, V a, V b) { \
    return static_cast<Mask<V, T>>(k & PREFIX##_##NAME##_mask(a, b));     \
  }
#define MICROSCALE_MODEL_COMPARE_HOW(PREFIX, V, NAME, T)                           \
  inline Mask<V, T> PREFIX##_##NAME##_mask(V a, V b, int how) {                    \
    return compare<T>(a, b, [how](T x, T y) { return compared(x, y, how); });      \
  }                                                                                \
  inline Mask<V, T> PREFIX##_mask_##NAME##_mask(Mask<V, T> k, V a, V b, int how) { \
    return static_cast<Mask<V, T>>(k & PREFIX##_##NAME##_mask(a, b, how));         \
  }
#define MICROSCALE_MODEL_COMPARES(SUFFIX, T)                                      \
  MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, cmpeq_##SUFFIX, T, x == y)  \
  MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, cmpneq_##SUFFIX, T, x != y) \
  MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, cmplt_##SUFFIX, T, x < y)   \
  MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, cmple_##SUFFIX, T, x <= y)  \
  MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, cmpgt_##SUFFIX, T, x > y)   \
  MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, cmpge_##SUFFIX, T, x >= y)  \
  MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE_HOW, cmp_##SUFFIX, T)
MICROSCALE_MODEL_COMPARES(epi8, int8_t)
MICROSCALE_MODEL_COMPARES(epu8, uint8_t)
MICROSCALE_MODEL_COMPARES(epi16, int16_t)
MICROSCALE_MODEL_COMPARES(epu16, uint16_t)
MICROSCALE_MODEL_COMPARES(epi32, int32_t)
MICROSCALE_MODEL_COMPARES(epu32, uint32_t)
MICROSCALE_MODEL_COMPARES(epi64, int64_t)
MICROSCALE_MODEL_COMPARES(epu64, uint64_t)
#undef MICROSCALE_MODEL_COMPARES
#undef MICROSCALE_MODEL_COMPARE_HOW

MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, test_epi8, uint8_t, (x & y) != 0)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, test_epi16, uint16_t, (x & y) != 0)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, test_epi32, uint32_t, (x & y) != 0)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, test_epi64, uint64_t, (x & y) != 0)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, testn_epi8, uint8_t, (x & y) == 0)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, testn_epi16, uint16_t, (x & y) == 0)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_COMPARE, testn_epi32, uint32_t, (x & y) == 0)
#undef MICROSCALE_MODEL_COMPARE

// Of floats: four answers for less, equal, greater and unordered, whether or not a quiet NaN would signal.
enum {
  _CMP_EQ_OQ = 0x00,
  _CMP_LT_OS = 0x01,
  _CMP_LE_OS = 0x02,
  _CMP_UNORD_Q = 0x03,
  _CMP_NEQ_UQ = 0x04,
  _CMP_NLT_US = 0x05,
  _CMP_NLE_US = 0x06,
  _CMP_ORD_Q = 0x07,
  _CMP_EQ_UQ = 0x08,
  _CMP_NGE_US = 0x09,
  _CMP_NGT_US = 0x0a,
  _CMP_FALSE_OQ = 0x0b,
  _CMP_NEQ_OQ = 0x0c,
  _CMP_GE_OS = 0x0d,
  _CMP_GT_OS = 0x0e,
  _CMP_TRUE_UQ = 0x0f,
  _CMP_LT_OQ = 0x11,
  _CMP_LE_OQ = 0x12,
  _CMP_NLT_UQ = 0x15,
  _CMP_NLE_UQ = 0x16,
  _CMP_NGE_UQ = 0x19,
  _CMP_NGT_UQ = 0x1a,
  _CMP_GE_OQ = 0x1d,
  _CMP_GT_OQ = 0x1e
};
inline bool compared(float x, float y, int how) {
  const bool unordered = x != x || y != y;
  switch (how & 15) {
    case 0:
      return x == y;
    case 1:
      return x < y;
    case 2:
      return x <= y;
    case 3:
      return unordered;
    case 4:
      return !(x == y);
    case 5:
      return !(x < y);
    case 6:
      return !(x <= y);
    case 7:
      return !unordered;
    case 8:
      return unordered || x == y;
    case 9:
      return !(x >= y);
    case 10:
      return !(x > y);
    case 11:
      return false;
    case 12:
      return !unordered && x != y;
    case 13:
      return x >= y;
    case 14:
      return x > y;
  }
  return true;
}
#define MICROSCALE_MODEL_COMPARE_FLOATS(PREFIX, V, NAME)                                   \
  inline Mask<V, float> PREFIX##_##NAME##_mask(V a, V b, int how) {                        \
    return compare<float>(a, b, [how](float x, float y) { return compared(x, y, how); });  \
  }                                                                                        \
  inline Mask<V, float> PREFIX##_mask_##NAME##_mask(Mask<V, float> k, V a, V b, int how) { \
    return static_cast<Mask<V, float>>(k & PREFIX##_##NAME##_mask(a, b, how));             \
  }
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_COMPARE_FLOATS, cmp_ps)
#undef MICROSCALE_MODEL_COMPARE_FLOATS

#define MICROSCALE_MODEL_BLEND(PREFIX, V, NAME, T) \
  inline V PREFIX##_mask_##NAME(Mask<V, T> k, V a, V b) { return choose<T>(k, b, a); }
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BLEND, blend_epi8, uint8_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BLEND, blend_epi16, uint16_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BLEND, blend_epi32, uint32_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BLEND, blend_epi64, uint64_t)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_BLEND, blend_ps, float)
#undef MICROSCALE_MODEL_BLEND
#define MICROSCALE_MODEL_MOVE(PREFIX, V, NAME, T)                                              \
  inline V PREFIX##_mask_##NAME(V other, Mask<V, T> k, V a) { return choose<T>(k, a, other); } \
  inline V PREFIX##_maskz_##NAME(Mask<V, T> k, V a) { return choose<T>(k, a, zero<V>()); }
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_MOVE, mov_epi8, uint8_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_MOVE, mov_epi16, uint16_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_MOVE, mov_epi32, uint32_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_MOVE, mov_epi64, uint64_t)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_MOVE, mov_ps, float)
#undef MICROSCALE_MODEL_MOVE

// Sign bits to a mask, and a mask to lanes of all ones.
#define MICROSCALE_MODEL_MOVM(PREFIX, V, SUFFIX, T) \
  inline V PREFIX##_movm_##SUFFIX(Mask<V, T> k) { return choose<T>(k, broadcast<T, V>(static_cast<T>(-1)), zero<V>()); }
#define MICROSCALE_MODEL_SIGNS(PREFIX, V, NAME, T)         \
  inline Mask<V, T> PREFIX##_##NAME##_mask(V a) {          \
    return compare<T>(a, a, [](T x, T) { return x < 0; }); \
  }
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_SIGNS, movepi8, int8_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_SIGNS, movepi16, int16_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_SIGNS, movepi32, int32_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_MOVM, epi8, int8_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_MOVM, epi16, int16_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_MOVM, epi32, int32_t)
#undef MICROSCALE_MODEL_SIGNS
#undef MICROSCALE_MODEL_MOVM

#define MICROSCALE_MODEL_MASKS(N)                                                                          \
  inline __mmask##N _kand_mask##N(__mmask##N a, __mmask##N b) { return static_cast<__mmask##N>(a & b); }   \
  inline __mmask##N _kor_mask##N(__mmask##N a, __mmask##N b) { return static_cast<__mmask##N>(a | b); }    \
  inline __mmask##N _kxor_mask##N(__mmask##N a, __mmask##N b) { return static_cast<__mmask##N>(a ^ b); }   \
  inline __mmask##N _kandn_mask##N(__mmask##N a, __mmask##N b) { return static_cast<__mmask##N>(~a & b); } \
  inline __mmask##N _knot_mask##N(__mmask##N a) { return static_cast<__mmask##N>(~a); }                    \
  inline unsigned char _kortestz_mask##N##_u8(__mmask##N a, __mmask##N b) { return (a | b) == 0; }
MICROSCALE_MODEL_MASKS(8)
MICROSCALE_MODEL_MASKS(16)
MICROSCALE_MODEL_MASKS(32)
MICROSCALE_MODEL_MASKS(64)
#undef MICROSCALE_MODEL_MASKS
inline unsigned _cvtmask16_u32(__mmask16 k) { return k; }
inline unsigned _cvtmask32_u32(__mmask32 k) { return k; }
inline unsigned long long _cvtmask64_u64(__mmask64 k) { return k; }
inline __mmask16 _cvtu32_mask16(unsigned k) { return static_cast<__mmask16>(k); }
inline __mmask32 _cvtu32_mask32(unsigned k) { return k; }
inline __mmask64 _cvtu64_mask64(unsigned long long k) { return k; }

}  // namespace microscale::avx512_model

#endif
