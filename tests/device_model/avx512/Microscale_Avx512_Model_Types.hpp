#ifndef MICROSCALE_AVX512_MODEL_TYPES_HPP
#define MICROSCALE_AVX512_MODEL_TYPES_HPP

#include <stdint.h>
#include <string.h>

// Vectors and masks of the model, and how an intrinsic is written for it: as a function of lanes, and with a macro that
// makes its forms of all widths, without a mask, with one that keeps what was there (mask_) and with one that zeroes
// (maskz_).
namespace microscale::avx512_model {

// Those of bf16 are cast to and from integers, as compilers allow.
struct alignas(64) __m512i {
  uint64_t bits[8];
};
struct alignas(64) __m512 {
  float lanes[16];
};
struct alignas(64) __m512d {
  double lanes[8];
};
struct alignas(64) __m512bh {
  uint16_t lanes[32];

  __m512bh() = default;
  explicit __m512bh(__m512i v) { memcpy(lanes, &v, sizeof v); }
  explicit operator __m512i() const { return __builtin_bit_cast(__m512i, lanes); }
};
struct alignas(32) __m256i {
  uint64_t bits[4];
};
struct alignas(32) __m256 {
  float lanes[8];
};
struct alignas(32) __m256d {
  double lanes[4];
};
struct alignas(32) __m256bh {
  uint16_t lanes[16];

  __m256bh() = default;
  explicit __m256bh(__m256i v) { memcpy(lanes, &v, sizeof v); }
  explicit operator __m256i() const { return __builtin_bit_cast(__m256i, lanes); }
};
struct alignas(16) __m128i {
  uint64_t bits[2];
};
struct alignas(16) __m128 {
  float lanes[4];
};
struct alignas(16) __m128d {
  double lanes[2];
};
struct alignas(16) __m128bh {
  uint16_t lanes[8];

  __m128bh() = default;
  explicit __m128bh(__m128i v) { memcpy(lanes, &v, sizeof v); }
  explicit operator __m128i() const { return __builtin_bit_cast(__m128i, lanes); }
};

using __mmask8 = uint8_t;
using __mmask16 = uint16_t;
using __mmask32 = uint32_t;
using __mmask64 = uint64_t;

/// A vector V as lanes of T.
template <class V, class T>
struct alignas(V) Lanes {
  static constexpr int count = static_cast<int>(sizeof(V) / sizeof(T));
  T lane[sizeof(V) / sizeof(T)];

  Lanes() = default;
  explicit Lanes(V v) { memcpy(lane, &v, sizeof v); }
  T& operator[](int i) { return lane[i]; }
  const T& operator[](int i) const { return lane[i]; }
  operator V() const {
    V v;
    memcpy(&v, lane, sizeof v);
    return v;
  }
};

/// The mask of `Count` lanes.
template <int Count>
struct MaskOf {
  using type = uint8_t;
};
template <>
struct MaskOf<16> {
  using type = uint16_t;
};
template <>
struct MaskOf<32> {
  using type = uint32_t;
};
template <>
struct MaskOf<64> {
  using type = uint64_t;
};
template <class V, class T>
using Mask = typename MaskOf<Lanes<V, T>::count>::type;

template <class M>
inline bool bit(M mask, int i) {
  return (mask >> i & 1) != 0;
}

/// The lanes of `value` where the mask has a bit, those of `other` elsewhere.
template <class T, class V>
inline V choose(Mask<V, T> mask, V value, V other) {
  const Lanes<V, T> a(value), b(other);
  Lanes<V, T> result;
  for (int i = 0; i < result.count; ++i) result[i] = bit(mask, i) ? a[i] : b[i];
  return result;
}

/// All bits zero.
template <class V>
inline V zero() {
  V v;
  memset(static_cast<void*>(&v), 0, sizeof v);
  return v;
}

/// f of each lane.
template <class T, class V, class F>
inline V map(V va, F f) {
  const Lanes<V, T> a(va);
  Lanes<V, T> result;
  for (int i = 0; i < result.count; ++i) result[i] = static_cast<T>(f(a[i]));
  return result;
}
template <class T, class V, class F>
inline V map(V va, V vb, F f) {
  const Lanes<V, T> a(va), b(vb);
  Lanes<V, T> result;
  for (int i = 0; i < result.count; ++i) result[i] = static_cast<T>(f(a[i], b[i]));
  return result;
}
template <class T, class V, class F>
inline V map(V va, V vb, V vc, F f) {
  const Lanes<V, T> a(va), b(vb), c(vc);
  Lanes<V, T> result;
  for (int i = 0; i < result.count; ++i) result[i] = static_cast<T>(f(a[i], b[i], c[i]));
  return result;
}

/// f of each lane into lanes of another width, as far as the narrower of the two vectors has any; the rest is zero.
template <class From, class To, class W, class V, class F>
inline W convert(V va, F f) {
  const Lanes<V, From> a(va);
  Lanes<W, To> result;
  for (int i = 0; i < result.count; ++i) result[i] = i < a.count ? static_cast<To>(f(a[i])) : To{};
  return result;
}

}  // namespace microscale::avx512_model

// PREFIX_NAME(V a, V b) and its masked forms; EXPRESSION of lanes x and y of T.
#define MICROSCALE_MODEL_BINARY(PREFIX, V, NAME, T, EXPRESSION)    \
  inline V PREFIX##_##NAME(V a, V b) {                             \
    return map<T>(a, b, [](T x, T y) { return EXPRESSION; });      \
  }                                                                \
  inline V PREFIX##_mask_##NAME(V other, Mask<V, T> k, V a, V b) { \
    return choose<T>(k, PREFIX##_##NAME(a, b), other);             \
  }                                                                \
  inline V PREFIX##_maskz_##NAME(Mask<V, T> k, V a, V b) { return choose<T>(k, PREFIX##_##NAME(a, b), zero<V>()); }

#define MICROSCALE_MODEL_UNARY(PREFIX, V, NAME, T, EXPRESSION)                                                  \
  inline V PREFIX##_##NAME(V a) {                                                                               \
    return map<T>(a, [](T x) { return EXPRESSION; });                                                           \
  }                                                                                                             \
  inline V PREFIX##_mask_##NAME(V other, Mask<V, T> k, V a) { return choose<T>(k, PREFIX##_##NAME(a), other); } \
  inline V PREFIX##_maskz_##NAME(Mask<V, T> k, V a) { return choose<T>(k, PREFIX##_##NAME(a), zero<V>()); }

// With a number that is an immediate operand of the instruction.
#define MICROSCALE_MODEL_IMMEDIATE(PREFIX, V, NAME, T, EXPRESSION)        \
  inline V PREFIX##_##NAME(V a, unsigned n) {                             \
    return map<T>(a, [n](T x) { return EXPRESSION; });                    \
  }                                                                       \
  inline V PREFIX##_mask_##NAME(V other, Mask<V, T> k, V a, unsigned n) { \
    return choose<T>(k, PREFIX##_##NAME(a, n), other);                    \
  }                                                                       \
  inline V PREFIX##_maskz_##NAME(Mask<V, T> k, V a, unsigned n) {         \
    return choose<T>(k, PREFIX##_##NAME(a, n), zero<V>());                \
  }

// The masked forms of a function that exists: of one or two vectors and, perhaps, an immediate.
#define MICROSCALE_MODEL_MASKED1(PREFIX, V, NAME, T)                                                            \
  inline V PREFIX##_mask_##NAME(V other, Mask<V, T> k, V a) { return choose<T>(k, PREFIX##_##NAME(a), other); } \
  inline V PREFIX##_maskz_##NAME(Mask<V, T> k, V a) { return choose<T>(k, PREFIX##_##NAME(a), zero<V>()); }
#define MICROSCALE_MODEL_MASKED2(PREFIX, V, NAME, T)               \
  inline V PREFIX##_mask_##NAME(V other, Mask<V, T> k, V a, V b) { \
    return choose<T>(k, PREFIX##_##NAME(a, b), other);             \
  }                                                                \
  inline V PREFIX##_maskz_##NAME(Mask<V, T> k, V a, V b) { return choose<T>(k, PREFIX##_##NAME(a, b), zero<V>()); }
#define MICROSCALE_MODEL_MASKED1_IMMEDIATE(PREFIX, V, NAME, T)       \
  inline V PREFIX##_mask_##NAME(V other, Mask<V, T> k, V a, int n) { \
    return choose<T>(k, PREFIX##_##NAME(a, n), other);               \
  }                                                                  \
  inline V PREFIX##_maskz_##NAME(Mask<V, T> k, V a, int n) { return choose<T>(k, PREFIX##_##NAME(a, n), zero<V>()); }
#define MICROSCALE_MODEL_MASKED2_IMMEDIATE(PREFIX, V, NAME, T)            \
  inline V PREFIX##_mask_##NAME(V other, Mask<V, T> k, V a, V b, int n) { \
    return choose<T>(k, PREFIX##_##NAME(a, b, n), other);                 \
  }                                                                       \
  inline V PREFIX##_maskz_##NAME(Mask<V, T> k, V a, V b, int n) {         \
    return choose<T>(k, PREFIX##_##NAME(a, b, n), zero<V>());             \
  }

// MACRO for the three widths of integer and of float vectors.
#define MICROSCALE_MODEL_INTEGERS(MACRO, ...) \
  MACRO(_mm512, __m512i, __VA_ARGS__)         \
  MACRO(_mm256, __m256i, __VA_ARGS__)         \
  MACRO(_mm, __m128i, __VA_ARGS__)
#define MICROSCALE_MODEL_FLOATS(MACRO, ...) \
  MACRO(_mm512, __m512, __VA_ARGS__)        \
  MACRO(_mm256, __m256, __VA_ARGS__)        \
  MACRO(_mm, __m128, __VA_ARGS__)

#endif
