#include <Intrinsics_Cases.hpp>
#include <Microscale_Avx512_Vector.hpp>
#include <string.h>

#pragma GCC diagnostic ignored "-Wignored-attributes"  // vectors as template arguments lose an alignment that they have

namespace microscale::MICROSCALE_AVX512_NAMESPACE {
namespace {

template <class V>
V load_as(const std::uint8_t* from) {
  V v;
  memcpy(static_cast<void*>(&v), from, sizeof v);
  return v;
}

/// The operands of a case: x, y, z are vectors V, k is a mask.
template <class V>
struct Operands {
  V x, y, z;
  std::uint64_t k;
  explicit Operands(const IntrinsicsInput& in)
      : x(load_as<V>(in.a)), y(load_as<V>(in.b)), z(load_as<V>(in.c)), k(in.mask) {}
};

template <class R>
void put(std::uint8_t* to, R result) {
  memcpy(to, &result, sizeof result);
}

// clang-format off
#define CASE(NAME, COMPARED, V, ...)                                                                  \
  {NAME, Compared::COMPARED, [](const IntrinsicsInput& in, std::uint8_t* out) {                       \
     [[maybe_unused]] const auto [x, y, z, k] = Operands<V>(in);                                      \
     put(out, __VA_ARGS__);                                                                           \
   }},
#define I512(NAME, ...) CASE(NAME, bytes, __m512i, __VA_ARGS__)
#define I256(NAME, ...) CASE(NAME, bytes, __m256i, __VA_ARGS__)
#define I128(NAME, ...) CASE(NAME, bytes, __m128i, __VA_ARGS__)
#define F512(NAME, ...) CASE(NAME, floats, __m512, __VA_ARGS__)
#define F256(NAME, ...) CASE(NAME, floats, __m256, __VA_ARGS__)
#define F128(NAME, ...) CASE(NAME, floats, __m128, __VA_ARGS__)

// Without and with masks, of one width (M: the mask) and of all (BITS: of a lane).
#define BINARY(P, V, C, N, M)                                                                         \
  CASE(#P "_" #N, C, V, P##_##N(x, y))                                                                \
  CASE(#P "_mask_" #N, C, V, P##_mask_##N(z, static_cast<M>(k), x, y))                                \
  CASE(#P "_maskz_" #N, C, V, P##_maskz_##N(static_cast<M>(k), x, y))
#define UNARY(P, V, C, N, M)                                                                          \
  CASE(#P "_" #N, C, V, P##_##N(x))                                                                   \
  CASE(#P "_mask_" #N, C, V, P##_mask_##N(z, static_cast<M>(k), x))                                   \
  CASE(#P "_maskz_" #N, C, V, P##_maskz_##N(static_cast<M>(k), x))
#define SHIFT(P, V, C, N, M)                                                                          \
  CASE(#P "_" #N " 0", C, V, P##_##N(x, 0))                                                           \
  CASE(#P "_" #N " 5", C, V, P##_##N(x, 5))                                                           \
  CASE(#P "_" #N " 70", C, V, P##_##N(x, 70))                                                         \
  CASE(#P "_mask_" #N, C, V, P##_mask_##N(z, static_cast<M>(k), x, 3))                                \
  CASE(#P "_maskz_" #N, C, V, P##_maskz_##N(static_cast<M>(k), x, 15))
#define MASK8_512 __mmask64
#define MASK8_256 __mmask32
#define MASK8_128 __mmask16
#define MASK16_512 __mmask32
#define MASK16_256 __mmask16
#define MASK16_128 __mmask8
#define MASK32_512 __mmask16
#define MASK32_256 __mmask8
#define MASK32_128 __mmask8
#define MASK64_512 __mmask8
#define MASK64_256 __mmask8
#define MASK64_128 __mmask8
#define WIDTHS(KIND, N, BITS)                                                                         \
  KIND(_mm512, __m512i, bytes, N, MASK##BITS##_512)                                                   \
  KIND(_mm256, __m256i, bytes, N, MASK##BITS##_256)                                                   \
  KIND(_mm, __m128i, bytes, N, MASK##BITS##_128)
#define FLOAT_WIDTHS(KIND, C, N)                                                                      \
  KIND(_mm512, __m512, C, N, __mmask16)                                                               \
  KIND(_mm256, __m256, C, N, __mmask8)                                                                \
  KIND(_mm, __m128, C, N, __mmask8)
#define COMPARE(P, V, C, N, M)                                                                        \
  CASE(#P "_" #N, C, V, P##_##N##_mask(x, y))                                                         \
  CASE(#P "_mask_" #N, C, V, P##_mask_##N##_mask(static_cast<M>(k), x, y))
#define COMPARES(S, BITS)                                                                             \
  WIDTHS(COMPARE, cmpeq_##S, BITS) WIDTHS(COMPARE, cmpneq_##S, BITS) WIDTHS(COMPARE, cmplt_##S, BITS) \
  WIDTHS(COMPARE, cmple_##S, BITS) WIDTHS(COMPARE, cmpgt_##S, BITS) WIDTHS(COMPARE, cmpge_##S, BITS)  \
  I512("cmp_" #S " nlt", _mm512_cmp_##S##_mask(x, y, _MM_CMPINT_NLT))                                 \
  I512("cmp_" #S " le", _mm512_cmp_##S##_mask(x, y, _MM_CMPINT_LE))
#define COMPARE_FLOATS(HOW)                                                                           \
  F512("cmp_ps " #HOW, _mm512_cmp_ps_mask(x, y, HOW))                                                 \
  F512("mask_cmp_ps " #HOW, _mm512_mask_cmp_ps_mask(static_cast<__mmask16>(k), x, y, HOW))            \
  F256("256 cmp_ps " #HOW, _mm256_cmp_ps_mask(x, y, HOW))
#define BLEND(P, V, C, N, M)                                                                          \
  CASE(#P "_mask_blend_" #N, C, V, P##_mask_blend_##N(static_cast<M>(k), x, y))                       \
  CASE(#P "_mask_mov_" #N, C, V, P##_mask_mov_##N(x, static_cast<M>(k), y))                           \
  CASE(#P "_maskz_mov_" #N, C, V, P##_maskz_mov_##N(static_cast<M>(k), y))
#define FUSED(P, V, C, N, M)                                                                          \
  CASE(#P "_" #N, C, V, P##_##N(x, y, z))                                                             \
  CASE(#P "_mask_" #N, C, V, P##_mask_##N(x, static_cast<M>(k), y, z))                                \
  CASE(#P "_mask3_" #N, C, V, P##_mask3_##N(x, y, z, static_cast<M>(k)))                              \
  CASE(#P "_maskz_" #N, C, V, P##_maskz_##N(static_cast<M>(k), x, y, z))
#define DOT(P, V, C, N, M)                                                                            \
  CASE(#P "_" #N, C, V, P##_##N(x, y, z))                                                             \
  CASE(#P "_mask_" #N, C, V, P##_mask_##N(x, static_cast<M>(k), y, z))                                \
  CASE(#P "_maskz_" #N, C, V, P##_maskz_##N(static_cast<M>(k), x, y, z))
#define PERMUTE(P, V, C, N, M)                                                                        \
  CASE(#P "_permutexvar_" #N, C, V, P##_permutexvar_##N(x, y))                                        \
  CASE(#P "_mask_permutexvar_" #N, C, V, P##_mask_permutexvar_##N(z, static_cast<M>(k), x, y))        \
  CASE(#P "_permutex2var_" #N, C, V, P##_permutex2var_##N(x, y, z))                                   \
  CASE(#P "_maskz_permutex2var_" #N, C, V, P##_maskz_permutex2var_##N(static_cast<M>(k), x, y, z))
#define PERMUTE_LONG(P, V, C, N, M) PERMUTE_LONG_##P(V, C, N, M)
#define PERMUTE_LONG__mm512(V, C, N, M) PERMUTE(_mm512, V, C, N, M)
#define PERMUTE_LONG__mm256(V, C, N, M) PERMUTE(_mm256, V, C, N, M)
#define PERMUTE_LONG__mm(V, C, N, M)
#define LOADS_OF(P, C, N, M, T)                                                                       \
  {#P "_loadu_" #N, Compared::C, [](const IntrinsicsInput& in, std::uint8_t* out) {                   \
     const auto k = static_cast<M>(in.mask);                                                          \
     const T* from = reinterpret_cast<const T*>(in.a);                                                \
     T* to = reinterpret_cast<T*>(out);                                                               \
     const auto kept = P##_mask_loadu_##N(P##_maskz_loadu_##N(static_cast<M>(~k), from), k, in.b);    \
     P##_storeu_##N(to, P##_loadu_##N(from));                                                         \
     P##_mask_storeu_##N(to, static_cast<M>(k >> 1), kept);                                           \
   }},
#define LOADS(P, V, C, N, M) LOADS_OF(P, C, N, M, char)
#define FLOAT_LOADS(P, V, C, N, M) LOADS_OF(P, C, N, M, float)

const IntrinsicsCase cases[] = {
    WIDTHS(LOADS, epi8, 8) WIDTHS(LOADS, epi16, 16) WIDTHS(LOADS, epi32, 32) WIDTHS(LOADS, epi64, 64)
    FLOAT_WIDTHS(FLOAT_LOADS, bytes, ps)
    BINARY(_mm512, __m512i, bytes, and_epi32, __mmask16) BINARY(_mm512, __m512i, bytes, or_epi64, __mmask8)
    BINARY(_mm512, __m512i, bytes, andnot_epi32, __mmask16) BINARY(_mm512, __m512i, bytes, xor_epi32, __mmask16)
    I512("and", _mm512_and_si512(x, y)) I512("or", _mm512_or_si512(x, y)) I512("xor", _mm512_xor_si512(x, y))
    I512("andnot", _mm512_andnot_si512(x, y)) I256("and", _mm256_and_si256(x, y)) I128("or", _mm_or_si128(x, y))
    I512("ternarylogic ca", _mm512_ternarylogic_epi32(x, y, z, 0xca))
    I512("ternarylogic 2d", _mm512_ternarylogic_epi32(x, y, z, 0x2d))
    I512("ternarylogic f8", _mm512_ternarylogic_epi64(x, y, z, 0xf8))
    I512("mask ternarylogic", _mm512_mask_ternarylogic_epi32(x, static_cast<__mmask16>(k), y, z, 0x96))
    WIDTHS(SHIFT, slli_epi16, 16) WIDTHS(SHIFT, slli_epi32, 32) WIDTHS(SHIFT, slli_epi64, 64)
    WIDTHS(SHIFT, srli_epi16, 16) WIDTHS(SHIFT, srli_epi32, 32) WIDTHS(SHIFT, srli_epi64, 64)
    WIDTHS(SHIFT, srai_epi16, 16) WIDTHS(SHIFT, srai_epi32, 32) WIDTHS(SHIFT, srai_epi64, 64)
    I512("rol", _mm512_rol_epi32(x, 7)) I512("ror", _mm512_ror_epi32(x, 7)) I512("ror 64", _mm512_ror_epi64(x, 31))
    WIDTHS(BINARY, sllv_epi16, 16) WIDTHS(BINARY, sllv_epi32, 32) WIDTHS(BINARY, sllv_epi64, 64)
    WIDTHS(BINARY, srlv_epi16, 16) WIDTHS(BINARY, srlv_epi32, 32) WIDTHS(BINARY, srlv_epi64, 64)
    WIDTHS(BINARY, srav_epi16, 16) WIDTHS(BINARY, srav_epi32, 32)
    I512("srlv small", _mm512_srlv_epi32(x, _mm512_and_si512(y, _mm512_set1_epi32(31))))
    I512("sllv small", _mm512_sllv_epi16(x, _mm512_and_si512(y, _mm512_set1_epi16(15))))
    I512("srav small", _mm512_srav_epi16(x, _mm512_and_si512(y, _mm512_set1_epi16(15))))
    WIDTHS(BINARY, add_epi8, 8) WIDTHS(BINARY, add_epi16, 16) WIDTHS(BINARY, add_epi32, 32) WIDTHS(BINARY, add_epi64, 64)
    WIDTHS(BINARY, sub_epi8, 8) WIDTHS(BINARY, sub_epi16, 16) WIDTHS(BINARY, sub_epi32, 32) WIDTHS(BINARY, sub_epi64, 64)
    WIDTHS(BINARY, mullo_epi16, 16) WIDTHS(BINARY, mullo_epi32, 32) WIDTHS(BINARY, mulhi_epi16, 16)
    WIDTHS(BINARY, mulhi_epu16, 16) WIDTHS(BINARY, mulhrs_epi16, 16)
    WIDTHS(BINARY, mul_epu32, 64) WIDTHS(BINARY, mul_epi32, 64)
    WIDTHS(BINARY, adds_epi8, 8) WIDTHS(BINARY, adds_epu8, 8) WIDTHS(BINARY, adds_epi16, 16) WIDTHS(BINARY, adds_epu16, 16)
    WIDTHS(BINARY, subs_epi8, 8) WIDTHS(BINARY, subs_epu8, 8) WIDTHS(BINARY, subs_epi16, 16) WIDTHS(BINARY, subs_epu16, 16)
    WIDTHS(BINARY, avg_epu8, 8)
    WIDTHS(BINARY, min_epi8, 8) WIDTHS(BINARY, min_epu8, 8) WIDTHS(BINARY, min_epi16, 16) WIDTHS(BINARY, min_epu16, 16)
    WIDTHS(BINARY, min_epi32, 32) WIDTHS(BINARY, min_epu32, 32)
    WIDTHS(BINARY, max_epi8, 8) WIDTHS(BINARY, max_epu8, 8) WIDTHS(BINARY, max_epi16, 16) WIDTHS(BINARY, max_epu16, 16)
    WIDTHS(BINARY, max_epi32, 32) WIDTHS(BINARY, max_epu32, 32)
    WIDTHS(UNARY, abs_epi8, 8) WIDTHS(UNARY, abs_epi16, 16) WIDTHS(UNARY, abs_epi32, 32)
    I512("madd", _mm512_madd_epi16(x, y)) I512("maddubs", _mm512_maddubs_epi16(x, y))
    WIDTHS(BINARY, multishift_epi64_epi8, 8) I512("sad", _mm512_sad_epu8(x, y))
    I512("reduce_add", _mm512_reduce_add_epi32(x)) I512("reduce_add 64", _mm512_reduce_add_epi64(x))
    I512("mask_reduce_add", _mm512_mask_reduce_add_epi32(static_cast<__mmask16>(k), x))
    I512("reduce_max", _mm512_reduce_max_epi32(x)) I512("reduce_min", _mm512_reduce_min_epi32(x))
    I512("reduce_max u", _mm512_reduce_max_epu32(x)) I512("reduce_min u", _mm512_reduce_min_epu32(x))
    I512("reduce_or", _mm512_reduce_or_epi32(x)) I512("reduce_and", _mm512_reduce_and_epi32(x))
    I128("pext", _pext_u64(static_cast<std::uint64_t>(_mm_cvtsi128_si64(x)), k))
    I128("pdep", _pdep_u64(static_cast<std::uint64_t>(_mm_cvtsi128_si64(x)), k))
    COMPARES(epi8, 8) COMPARES(epu8, 8) COMPARES(epi16, 16) COMPARES(epu16, 16) COMPARES(epi32, 32) COMPARES(epu32, 32)
    COMPARES(epi64, 64) COMPARES(epu64, 64)
    WIDTHS(COMPARE, test_epi8, 8) WIDTHS(COMPARE, test_epi16, 16) WIDTHS(COMPARE, test_epi32, 32)
    WIDTHS(COMPARE, test_epi64, 64)
    WIDTHS(COMPARE, testn_epi8, 8) WIDTHS(COMPARE, testn_epi16, 16) WIDTHS(COMPARE, testn_epi32, 32)
    COMPARE_FLOATS(_CMP_EQ_OQ) COMPARE_FLOATS(_CMP_LT_OS) COMPARE_FLOATS(_CMP_LE_OQ) COMPARE_FLOATS(_CMP_UNORD_Q)
    COMPARE_FLOATS(_CMP_NEQ_UQ) COMPARE_FLOATS(_CMP_NLT_UQ) COMPARE_FLOATS(_CMP_NLE_UQ) COMPARE_FLOATS(_CMP_ORD_Q)
    COMPARE_FLOATS(_CMP_EQ_UQ) COMPARE_FLOATS(_CMP_NGE_UQ) COMPARE_FLOATS(_CMP_NGT_UQ) COMPARE_FLOATS(_CMP_FALSE_OQ)
    COMPARE_FLOATS(_CMP_NEQ_OQ) COMPARE_FLOATS(_CMP_GE_OQ) COMPARE_FLOATS(_CMP_GT_OQ) COMPARE_FLOATS(_CMP_TRUE_UQ)
    WIDTHS(BLEND, epi8, 8) WIDTHS(BLEND, epi16, 16) WIDTHS(BLEND, epi32, 32) WIDTHS(BLEND, epi64, 64)
    FLOAT_WIDTHS(BLEND, bytes, ps)
    I512("movepi8_mask", _mm512_movepi8_mask(x)) I512("movepi16_mask", _mm512_movepi16_mask(x))
    I512("movepi32_mask", _mm512_movepi32_mask(x)) I512("movm_epi8", _mm512_movm_epi8(k))
    I512("movm_epi16", _mm512_movm_epi16(static_cast<__mmask32>(k))) I256("movm_epi32", _mm256_movm_epi32(static_cast<__mmask8>(k)))
    FLOAT_WIDTHS(BINARY, floats, add_ps) FLOAT_WIDTHS(BINARY, floats, sub_ps) FLOAT_WIDTHS(BINARY, floats, mul_ps)
    FLOAT_WIDTHS(BINARY, floats, div_ps) FLOAT_WIDTHS(BINARY, floats, max_ps) FLOAT_WIDTHS(BINARY, floats, min_ps)
    FLOAT_WIDTHS(UNARY, floats, sqrt_ps) FLOAT_WIDTHS(BINARY, bytes, and_ps) FLOAT_WIDTHS(BINARY, bytes, or_ps)
    FLOAT_WIDTHS(BINARY, bytes, xor_ps) FLOAT_WIDTHS(BINARY, bytes, andnot_ps) F512("abs_ps", _mm512_abs_ps(x))
    FLOAT_WIDTHS(FUSED, floats, fmadd_ps) FLOAT_WIDTHS(FUSED, floats, fmsub_ps) FLOAT_WIDTHS(FUSED, floats, fnmadd_ps)
    FLOAT_WIDTHS(FUSED, floats, fnmsub_ps)
    FLOAT_WIDTHS(BINARY, floats, scalef_ps) FLOAT_WIDTHS(UNARY, floats, getexp_ps)
    F512("scalef small", _mm512_scalef_ps(x, _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_castps_si512(y), 24))))
    F512("roundscale nearest", _mm512_roundscale_ps(x, 0x08)) F512("roundscale floor", _mm512_roundscale_ps(x, 0x29))
    F512("roundscale ceil", _mm512_roundscale_ps(x, 0x5a)) F512("roundscale trunc", _mm512_roundscale_ps(x, 0xfb))
    F512("range min magnitude", _mm512_range_ps(x, y, 0x0a)) F512("range max magnitude", _mm512_range_ps(x, y, 0x0b))
    F512("range min", _mm512_range_ps(x, y, 0x04)) F512("range max", _mm512_range_ps(x, y, 0x05))
    F512("reduce_add_ps", _mm512_reduce_add_ps(x))
    // Between types; the masked forms where they differ in kind.
    I128("cvtepu8_epi16", _mm256_cvtepu8_epi16(x)) I256("cvtepu8_epi16", _mm512_cvtepu8_epi16(x))
    I256("cvtepi8_epi16", _mm512_cvtepi8_epi16(x)) I128("cvtepu8_epi32", _mm512_cvtepu8_epi32(x))
    I128("cvtepi8_epi32", _mm512_cvtepi8_epi32(x)) I128("cvtepu8_epi64", _mm512_cvtepu8_epi64(x))
    I256("cvtepu16_epi32", _mm512_cvtepu16_epi32(x)) I256("cvtepi16_epi32", _mm512_cvtepi16_epi32(x))
    I128("cvtepu16_epi64", _mm512_cvtepu16_epi64(x)) I256("cvtepu32_epi64", _mm512_cvtepu32_epi64(x))
    I256("cvtepi32_epi64", _mm512_cvtepi32_epi64(x)) I128("cvtepu8_epi32", _mm256_cvtepu8_epi32(x))
    I128("maskz_cvtepu8_epi32", _mm512_maskz_cvtepu8_epi32(static_cast<__mmask16>(k), x))
    I512("cvtepi32_epi8", _mm512_cvtepi32_epi8(x)) I512("cvtepi32_epi16", _mm512_cvtepi32_epi16(x))
    I512("cvtepi16_epi8", _mm512_cvtepi16_epi8(x)) I512("cvtepi64_epi32", _mm512_cvtepi64_epi32(x))
    I512("cvtepi64_epi16", _mm512_cvtepi64_epi16(x)) I512("cvtepi64_epi8", _mm512_cvtepi64_epi8(x))
    I512("cvtsepi32_epi8", _mm512_cvtsepi32_epi8(x)) I512("cvtsepi32_epi16", _mm512_cvtsepi32_epi16(x))
    I512("cvtsepi16_epi8", _mm512_cvtsepi16_epi8(x)) I512("cvtusepi32_epi8", _mm512_cvtusepi32_epi8(x))
    I512("cvtusepi32_epi16", _mm512_cvtusepi32_epi16(x)) I512("cvtusepi16_epi8", _mm512_cvtusepi16_epi8(x))
    I256("cvtepi16_epi8", _mm256_cvtepi16_epi8(x)) I256("cvtepi32_epi8", _mm256_cvtepi32_epi8(x))
    I512("maskz_cvtepi32_epi8", _mm512_maskz_cvtepi32_epi8(static_cast<__mmask16>(k), x))
    I512("mask_cvtepi32_epi8", _mm512_mask_cvtepi32_epi8(_mm512_castsi512_si128(z), static_cast<__mmask16>(k), x))
    {"cvtepi32_storeu_epi8", Compared::bytes, [](const IntrinsicsInput& in, std::uint8_t* out) {
       _mm512_mask_cvtepi32_storeu_epi8(out, static_cast<__mmask16>(in.mask), load_as<__m512i>(in.a));
       _mm512_mask_cvtepi16_storeu_epi8(out + 16, static_cast<__mmask32>(in.mask), load_as<__m512i>(in.b));
     }},
    I512("cvtepi32_ps", _mm512_cvtepi32_ps(x)) I512("cvtepu32_ps", _mm512_cvtepu32_ps(x))
    F512("cvtps_epi32", _mm512_cvtps_epi32(x)) F512("cvttps_epi32", _mm512_cvttps_epi32(x))
    F512("cvtps_epu32", _mm512_cvtps_epu32(x)) F512("cvttps_epu32", _mm512_cvttps_epu32(x))
    F512("maskz_cvtps_epi32", _mm512_maskz_cvtps_epi32(static_cast<__mmask16>(k), x))
    CASE("cvtph_ps", bytes, __m256i, _mm512_cvtph_ps(x))
    CASE("cvtps_ph", bytes, __m512, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
    CASE("cvtps_ph 256", bytes, __m256, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT))
    CASE("cvtneps_pbh", bytes, __m512, _mm512_cvtneps_pbh(x)) CASE("cvtne2ps_pbh", bytes, __m512, _mm512_cvtne2ps_pbh(x, y))
    CASE("cvtpbh_ps", bytes, __m256i, _mm512_cvtpbh_ps(as_bf16(x)))
    CASE("cvtps_pd", floats, __m256, _mm512_cvtpd_ps(_mm512_cvtps_pd(x)))
    I512("zext", _mm512_zextsi128_si512(_mm512_castsi512_si128(x))) I256("zext", _mm512_zextsi256_si512(x))
    // Lanes that move.
    WIDTHS(PERMUTE_LONG, epi8, 8) WIDTHS(PERMUTE_LONG, epi16, 16) WIDTHS(PERMUTE_LONG, epi32, 32)
    PERMUTE(_mm512, __m512i, bytes, epi64, __mmask8)
    F512("permutexvar_ps", _mm512_permutexvar_ps(_mm512_castps_si512(x), y))
    F512("permutex2var_ps", _mm512_permutex2var_ps(x, _mm512_castps_si512(y), z))
    WIDTHS(BINARY, shuffle_epi8, 8) I512("shuffle_epi32", _mm512_shuffle_epi32(x, _MM_PERM_CDAB))
    I512("alignr_epi8", _mm512_alignr_epi8(x, y, 5)) I512("alignr_epi8 20", _mm512_alignr_epi8(x, y, 20))
    I512("bslli", _mm512_bslli_epi128(x, 3)) I512("bsrli", _mm512_bsrli_epi128(x, 7))
    F512("permute_ps", _mm512_permute_ps(x, 0x1b)) F512("shuffle_ps", _mm512_shuffle_ps(x, y, 0x8d))
    F512("moveldup", _mm512_moveldup_ps(x)) F512("movehdup", _mm512_movehdup_ps(x))
    WIDTHS(BINARY, unpacklo_epi8, 8) WIDTHS(BINARY, unpacklo_epi16, 16) WIDTHS(BINARY, unpacklo_epi32, 32)
    WIDTHS(BINARY, unpacklo_epi64, 64) WIDTHS(BINARY, unpackhi_epi8, 8) WIDTHS(BINARY, unpackhi_epi16, 16)
    WIDTHS(BINARY, unpackhi_epi32, 32) WIDTHS(BINARY, unpackhi_epi64, 64)
    FLOAT_WIDTHS(BINARY, bytes, unpacklo_ps) FLOAT_WIDTHS(BINARY, bytes, unpackhi_ps)
    WIDTHS(BINARY, packs_epi32, 16) WIDTHS(BINARY, packus_epi32, 16) WIDTHS(BINARY, packs_epi16, 8)
    WIDTHS(BINARY, packus_epi16, 8)
    I512("shuffle_i32x4", _mm512_shuffle_i32x4(x, y, 0x8d)) I512("shuffle_i64x2", _mm512_shuffle_i64x2(x, y, 0x27))
    F512("shuffle_f32x4", _mm512_shuffle_f32x4(x, y, 0xd8)) I512("permutex_epi64", _mm512_permutex_epi64(x, 0x1e))
    I256("permute4x64", _mm256_permute4x64_epi64(x, 0x1e)) I256("permute2x128", _mm256_permute2x128_si256(x, y, 0x31))
    I256("permute2x128 zero", _mm256_permute2x128_si256(x, y, 0x82))
    I512("alignr_epi32", _mm512_alignr_epi32(x, y, 5)) I512("alignr_epi64", _mm512_alignr_epi64(x, y, 3))
    I512("extracti32x4", _mm512_extracti32x4_epi32(x, 2)) I512("extracti64x4", _mm512_extracti64x4_epi64(x, 1))
    I512("inserti32x4", _mm512_inserti32x4(x, _mm512_castsi512_si128(y), 3))
    I512("inserti64x4", _mm512_inserti64x4(x, _mm512_castsi512_si256(y), 1))
    I512("compress", _mm512_mask_compress_epi32(y, static_cast<__mmask16>(k), x))
    I512("expand", _mm512_maskz_expand_epi32(static_cast<__mmask16>(k), x))
    I128("broadcastb", _mm512_broadcastb_epi8(x)) I128("broadcastw", _mm512_broadcastw_epi16(x))
    I128("broadcastd", _mm512_broadcastd_epi32(x)) I128("broadcastq", _mm512_broadcastq_epi64(x))
    I128("broadcast_i32x4", _mm512_broadcast_i32x4(x)) I256("broadcast_i64x4", _mm512_broadcast_i64x4(x))
    {"i32gather_epi32", Compared::bytes, [](const IntrinsicsInput& in, std::uint8_t* out) {
       const __m512i at = _mm512_and_si512(load_as<__m512i>(in.a), _mm512_set1_epi32(15));
       put(out, _mm512_mask_i32gather_epi32(load_as<__m512i>(in.c), static_cast<__mmask16>(in.mask), at, in.b, 4));
     }},
    // Dot products.
    WIDTHS(DOT, dpbusd_epi32, 32) WIDTHS(DOT, dpbusds_epi32, 32) WIDTHS(DOT, dpwssd_epi32, 32)
    WIDTHS(DOT, dpwssds_epi32, 32)
    F512("dpbf16", _mm512_dpbf16_ps(x, as_bf16(_mm512_castps_si512(y)), as_bf16(_mm512_castps_si512(z))))
};
// clang-format on

}  // namespace

IntrinsicsCases intrinsics_cases() { return {cases, sizeof cases / sizeof cases[0]}; }

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
