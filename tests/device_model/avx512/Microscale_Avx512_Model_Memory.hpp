#ifndef MICROSCALE_AVX512_MODEL_MEMORY_HPP
#define MICROSCALE_AVX512_MODEL_MEMORY_HPP

#include <Microscale_Avx512_Model_Types.hpp>

// Loads, stores, constants, gathers. What a mask leaves out is not touched in memory.
namespace microscale::avx512_model {

enum { _MM_HINT_NTA = 0, _MM_HINT_T2 = 1, _MM_HINT_T1 = 2, _MM_HINT_T0 = 3, _MM_HINT_ET0 = 7 };
inline void _mm_prefetch(const void*, int) {}
inline void _mm_sfence() {}

template <class V>
inline V load(const void* from) {
  V v;
  memcpy(static_cast<void*>(&v), from, sizeof v);
  return v;
}
/// An aligned access to an address that is not aligned traps.
template <class V>
inline const void* aligned(const void* address) {
  if (reinterpret_cast<uintptr_t>(address) % sizeof(V) != 0) __builtin_trap();
  return address;
}
template <class V>
inline void* aligned(void* address) {
  return const_cast<void*>(aligned<V>(const_cast<const void*>(address)));
}
template <class T, class V>
inline V masked_load(V other, Mask<V, T> k, const void* from) {
  Lanes<V, T> result(other);
  for (int i = 0; i < result.count; ++i)
    if (bit(k, i)) memcpy(&result[i], static_cast<const char*>(from) + sizeof(T) * i, sizeof(T));
  return result;
}
template <class T, class V>
inline void masked_store(void* to, Mask<V, T> k, V v) {
  const Lanes<V, T> a(v);
  for (int i = 0; i < a.count; ++i)
    if (bit(k, i)) memcpy(static_cast<char*>(to) + sizeof(T) * i, &a[i], sizeof(T));
}
template <class T, class V>
inline V broadcast(T value) {
  Lanes<V, T> result;
  for (int i = 0; i < result.count; ++i) result[i] = value;
  return result;
}

#define MICROSCALE_MODEL_LOADS(PREFIX, V, NAME, T)                                                                  \
  inline V PREFIX##_loadu_##NAME(const void* p) { return load<V>(p); }                                              \
  inline V PREFIX##_mask_loadu_##NAME(V other, Mask<V, T> k, const void* p) { return masked_load<T>(other, k, p); } \
  inline V PREFIX##_maskz_loadu_##NAME(Mask<V, T> k, const void* p) { return masked_load<T>(zero<V>(), k, p); }     \
  inline void PREFIX##_storeu_##NAME(void* p, V v) { memcpy(p, &v, sizeof v); }                                     \
  inline void PREFIX##_mask_storeu_##NAME(void* p, Mask<V, T> k, V v) { masked_store<T>(p, k, v); }
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_LOADS, epi8, uint8_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_LOADS, epi16, uint16_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_LOADS, epi32, uint32_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_LOADS, epi64, uint64_t)
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_LOADS, ps, float)
MICROSCALE_MODEL_LOADS(_mm512, __m512d, pd, double)
#undef MICROSCALE_MODEL_LOADS

// Aligned, and of whole integer vectors, whose names tell the width again.
#define MICROSCALE_MODEL_WHOLE(PREFIX, V, NAME)                                             \
  inline V PREFIX##_load_##NAME(const void* p) { return load<V>(aligned<V>(p)); }           \
  inline void PREFIX##_store_##NAME(void* p, V v) { memcpy(aligned<V>(p), &v, sizeof v); }  \
  inline void PREFIX##_stream_##NAME(void* p, V v) { memcpy(aligned<V>(p), &v, sizeof v); } \
  inline V PREFIX##_setzero_##NAME() { return zero<V>(); }
MICROSCALE_MODEL_FLOATS(MICROSCALE_MODEL_WHOLE, ps)
MICROSCALE_MODEL_WHOLE(_mm512, __m512d, pd)
MICROSCALE_MODEL_WHOLE(_mm512, __m512i, si512)
MICROSCALE_MODEL_WHOLE(_mm256, __m256i, si256)
MICROSCALE_MODEL_WHOLE(_mm, __m128i, si128)
#undef MICROSCALE_MODEL_WHOLE
inline __m512i _mm512_load_epi32(const void* p) { return _mm512_load_si512(p); }
inline __m512i _mm512_load_epi64(const void* p) { return _mm512_load_si512(p); }
inline void _mm512_store_epi32(void* p, __m512i v) { _mm512_store_si512(p, v); }
inline void _mm512_store_epi64(void* p, __m512i v) { _mm512_store_si512(p, v); }
inline __m512i _mm512_loadu_si512(const void* p) { return load<__m512i>(p); }
inline __m256i _mm256_loadu_si256(const __m256i* p) { return load<__m256i>(p); }
inline __m128i _mm_loadu_si128(const __m128i* p) { return load<__m128i>(p); }
inline void _mm512_storeu_si512(void* p, __m512i v) { memcpy(p, &v, sizeof v); }
inline void _mm256_storeu_si256(__m256i* p, __m256i v) { memcpy(static_cast<void*>(p), &v, sizeof v); }
inline void _mm_storeu_si128(__m128i* p, __m128i v) { memcpy(static_cast<void*>(p), &v, sizeof v); }
inline __m512i _mm512_setzero_epi32() { return zero<__m512i>(); }
inline __m512 _mm512_setzero() { return zero<__m512>(); }
inline __m512i _mm512_undefined_epi32() { return zero<__m512i>(); }
inline __m512 _mm512_undefined_ps() { return zero<__m512>(); }

// The low lanes alone.
inline __m128i _mm_loadl_epi64(const __m128i* p) {
  __m128i v{};
  memcpy(v.bits, p, 8);
  return v;
}
inline void _mm_storel_epi64(__m128i* p, __m128i v) { memcpy(static_cast<void*>(p), v.bits, 8); }
inline __m128i _mm_loadu_si64(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
inline __m128i _mm_loadu_si32(const void* p) {
  __m128i v{};
  memcpy(v.bits, p, 4);
  return v;
}
inline __m128i _mm_loadu_si16(const void* p) {
  __m128i v{};
  memcpy(v.bits, p, 2);
  return v;
}
inline void _mm_storeu_si64(void* p, __m128i v) { memcpy(p, v.bits, 8); }
inline void _mm_storeu_si32(void* p, __m128i v) { memcpy(p, v.bits, 4); }
inline void _mm_storeu_si16(void* p, __m128i v) { memcpy(p, v.bits, 2); }
inline __m128 _mm_load_ss(const float* p) { return {{*p, 0, 0, 0}}; }
inline void _mm_store_ss(float* p, __m128 v) { *p = v.lanes[0]; }
inline __m128 _mm_set_ss(float x) { return {{x, 0, 0, 0}}; }
inline float _mm_cvtss_f32(__m128 v) { return v.lanes[0]; }
inline float _mm256_cvtss_f32(__m256 v) { return v.lanes[0]; }
inline float _mm512_cvtss_f32(__m512 v) { return v.lanes[0]; }
inline int _mm_cvtsi128_si32(__m128i v) { return static_cast<int>(v.bits[0]); }
inline int _mm256_cvtsi256_si32(__m256i v) { return static_cast<int>(v.bits[0]); }
inline int _mm512_cvtsi512_si32(__m512i v) { return static_cast<int>(v.bits[0]); }
inline long long _mm_cvtsi128_si64(__m128i v) { return static_cast<long long>(v.bits[0]); }
inline __m128i _mm_cvtsi32_si128(int x) { return {{static_cast<uint32_t>(x), 0}}; }
inline __m128i _mm_cvtsi64_si128(long long x) { return {{static_cast<uint64_t>(x), 0}}; }
inline int _mm_extract_epi32(__m128i v, int i) { return Lanes<__m128i, int32_t>(v)[i]; }
inline int _mm_extract_epi16(__m128i v, int i) { return Lanes<__m128i, uint16_t>(v)[i]; }
inline int _mm_extract_epi8(__m128i v, int i) { return Lanes<__m128i, uint8_t>(v)[i]; }
inline long long _mm_extract_epi64(__m128i v, int i) { return static_cast<long long>(v.bits[i]); }

// One value in all lanes.
#define MICROSCALE_MODEL_SET1(PREFIX, V, NAME, T, ARGUMENT)                                \
  inline V PREFIX##_set1_##NAME(ARGUMENT x) { return broadcast<T, V>(static_cast<T>(x)); } \
  inline V PREFIX##_mask_set1_##NAME(V other, Mask<V, T> k, ARGUMENT x) {                  \
    return choose<T>(k, PREFIX##_set1_##NAME(x), other);                                   \
  }                                                                                        \
  inline V PREFIX##_maskz_set1_##NAME(Mask<V, T> k, ARGUMENT x) {                          \
    return choose<T>(k, PREFIX##_set1_##NAME(x), zero<V>());                               \
  }
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_SET1, epi8, int8_t, char)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_SET1, epi16, int16_t, short)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_SET1, epi32, int32_t, int)
MICROSCALE_MODEL_SET1(_mm512, __m512i, epi64, int64_t, long long)
#undef MICROSCALE_MODEL_SET1
inline __m256i _mm256_set1_epi64x(long long x) { return broadcast<int64_t, __m256i>(x); }
inline __m128i _mm_set1_epi64x(long long x) { return broadcast<int64_t, __m128i>(x); }
inline __m512 _mm512_set1_ps(float x) { return broadcast<float, __m512>(x); }
inline __m256 _mm256_set1_ps(float x) { return broadcast<float, __m256>(x); }
inline __m128 _mm_set1_ps(float x) { return broadcast<float, __m128>(x); }
inline __m512d _mm512_set1_pd(double x) { return broadcast<double, __m512d>(x); }

// All lanes; setr names the lowest first, set the highest.
inline __m512i _mm512_setr_epi32(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l,
                                 int m, int n, int o, int p) {
  const int32_t x[] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p};
  return load<__m512i>(x);
}
inline __m512i _mm512_set_epi32(int p, int o, int n, int m, int l, int k, int j, int i, int h, int g, int f, int e,
                                int d, int c, int b, int a) {
  return _mm512_setr_epi32(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
}
inline __m512i _mm512_setr_epi64(long long a, long long b, long long c, long long d, long long e, long long f,
                                 long long g, long long h) {
  const int64_t x[] = {a, b, c, d, e, f, g, h};
  return load<__m512i>(x);
}
inline __m512i _mm512_set_epi64(long long h, long long g, long long f, long long e, long long d, long long c,
                                long long b, long long a) {
  return _mm512_setr_epi64(a, b, c, d, e, f, g, h);
}
inline __m256i _mm256_setr_epi32(int a, int b, int c, int d, int e, int f, int g, int h) {
  const int32_t x[] = {a, b, c, d, e, f, g, h};
  return load<__m256i>(x);
}
inline __m128i _mm_setr_epi32(int a, int b, int c, int d) {
  const int32_t x[] = {a, b, c, d};
  return load<__m128i>(x);
}
inline __m128i _mm_set_epi64x(long long b, long long a) {
  return {{static_cast<uint64_t>(a), static_cast<uint64_t>(b)}};
}
inline __m128i _mm_setr_epi8(char a, char b, char c, char d, char e, char f, char g, char h, char i, char j, char k,
                             char l, char m, char n, char o, char p) {
  const char x[] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p};
  return load<__m128i>(x);
}
inline __m128i _mm_set_epi8(char p, char o, char n, char m, char l, char k, char j, char i, char h, char g, char f,
                            char e, char d, char c, char b, char a) {
  return _mm_setr_epi8(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
}
inline __m512 _mm512_setr_ps(float a, float b, float c, float d, float e, float f, float g, float h, float i, float j,
                             float k, float l, float m, float n, float o, float p) {
  return {{a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p}};
}

// A short vector in all its places of a longer one.
template <class W, class V>
inline W repeat(V v) {
  W w;
  for (unsigned i = 0; i < sizeof(W) / sizeof(V); ++i) memcpy(reinterpret_cast<char*>(&w) + i * sizeof v, &v, sizeof v);
  return w;
}
#define MICROSCALE_MODEL_REPEAT(W, V, PREFIX, NAME, T)                                                    \
  inline W PREFIX##_##NAME(V v) { return repeat<W>(v); }                                                  \
  inline W PREFIX##_mask_##NAME(W other, Mask<W, T> k, V v) { return choose<T>(k, repeat<W>(v), other); } \
  inline W PREFIX##_maskz_##NAME(Mask<W, T> k, V v) { return choose<T>(k, repeat<W>(v), zero<W>()); }
MICROSCALE_MODEL_REPEAT(__m512i, __m128i, _mm512, broadcast_i32x4, uint32_t)
MICROSCALE_MODEL_REPEAT(__m512i, __m128i, _mm512, broadcast_i64x2, uint64_t)
MICROSCALE_MODEL_REPEAT(__m512i, __m256i, _mm512, broadcast_i32x8, uint32_t)
MICROSCALE_MODEL_REPEAT(__m512i, __m256i, _mm512, broadcast_i64x4, uint64_t)
MICROSCALE_MODEL_REPEAT(__m512, __m128, _mm512, broadcast_f32x4, float)
MICROSCALE_MODEL_REPEAT(__m512, __m256, _mm512, broadcast_f32x8, float)
MICROSCALE_MODEL_REPEAT(__m256i, __m128i, _mm256, broadcast_i32x4, uint32_t)
#undef MICROSCALE_MODEL_REPEAT
#define MICROSCALE_MODEL_BROADCAST(PREFIX, V, NAME, T)                                                                \
  inline V PREFIX##_##NAME(__m128i a) { return broadcast<T, V>(Lanes<__m128i, T>(a)[0]); }                            \
  inline V PREFIX##_mask_##NAME(V other, Mask<V, T> k, __m128i a) { return choose<T>(k, PREFIX##_##NAME(a), other); } \
  inline V PREFIX##_maskz_##NAME(Mask<V, T> k, __m128i a) { return choose<T>(k, PREFIX##_##NAME(a), zero<V>()); }
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BROADCAST, broadcastb_epi8, uint8_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BROADCAST, broadcastw_epi16, uint16_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BROADCAST, broadcastd_epi32, uint32_t)
MICROSCALE_MODEL_INTEGERS(MICROSCALE_MODEL_BROADCAST, broadcastq_epi64, uint64_t)
#undef MICROSCALE_MODEL_BROADCAST
inline __m512 _mm512_broadcastss_ps(__m128 a) { return _mm512_set1_ps(a.lanes[0]); }
inline __m256 _mm256_broadcastss_ps(__m128 a) { return _mm256_set1_ps(a.lanes[0]); }

// Element addresses are base + scale * index in bytes.
template <class T, class V, class I>
inline V gather(V other, Mask<V, T> k, I index, const void* base, int scale) {
  Lanes<V, T> result(other);
  const Lanes<I, int32_t> at(index);
  for (int i = 0; i < result.count; ++i)
    if (bit(k, i)) memcpy(&result[i], static_cast<const char*>(base) + int64_t{at[i]} * scale, sizeof(T));
  return result;
}
inline __m512i _mm512_i32gather_epi32(__m512i index, const void* base, int scale) {
  return gather<uint32_t>(zero<__m512i>(), 0xffff, index, base, scale);
}
inline __m512i _mm512_mask_i32gather_epi32(__m512i other, __mmask16 k, __m512i index, const void* base, int scale) {
  return gather<uint32_t>(other, k, index, base, scale);
}
inline __m512 _mm512_i32gather_ps(__m512i index, const void* base, int scale) {
  return gather<float>(zero<__m512>(), 0xffff, index, base, scale);
}
inline __m512 _mm512_mask_i32gather_ps(__m512 other, __mmask16 k, __m512i index, const void* base, int scale) {
  return gather<float>(other, k, index, base, scale);
}
inline __m512i _mm512_i32gather_epi64(__m256i index, const void* base, int scale) {
  return gather<uint64_t>(zero<__m512i>(), 0xff, index, base, scale);
}
inline void _mm512_mask_i32scatter_epi32(void* base, __mmask16 k, __m512i index, __m512i v, int scale) {
  const Lanes<__m512i, int32_t> at(index), a(v);
  for (int i = 0; i < 16; ++i)
    if (bit(k, i)) memcpy(static_cast<char*>(base) + int64_t{at[i]} * scale, &a[i], 4);
}
inline void _mm512_i32scatter_epi32(void* base, __m512i index, __m512i v, int scale) {
  _mm512_mask_i32scatter_epi32(base, 0xffff, index, v, scale);
}
inline void _mm512_mask_i32scatter_ps(void* base, __mmask16 k, __m512i index, __m512 v, int scale) {
  _mm512_mask_i32scatter_epi32(base, k, index, __builtin_bit_cast(__m512i, v), scale);
}
inline void _mm512_i32scatter_ps(void* base, __m512i index, __m512 v, int scale) {
  _mm512_mask_i32scatter_ps(base, 0xffff, index, v, scale);
}

}  // namespace microscale::avx512_model

#endif
