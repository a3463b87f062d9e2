#ifndef MICROSCALE_AVX512_VECTOR_HPP
#define MICROSCALE_AVX512_VECTOR_HPP

#include <Microscale_Avx512_Kernels.hpp>

// The intrinsics: those of the compiler, or, for tests on any machine, the model of them in plain C++.
#if defined(MICROSCALE_AVX512_MODEL)
#include <Microscale_Avx512_Model.hpp>
#else
// GCC 12 takes its own undefined vectors for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

#if defined(MICROSCALE_AVX512_MODEL)
using namespace avx512_model;
#endif

// Vectors of bf16 and of integers as one another; there is no intrinsic for it.
inline __m512bh as_bf16(__m512i v) { return __builtin_bit_cast(__m512bh, v); }
inline __m256bh as_bf16(__m256i v) { return __builtin_bit_cast(__m256bh, v); }
inline __m512i as_integers(__m512bh v) { return __builtin_bit_cast(__m512i, v); }
inline __m256i as_integers(__m256bh v) { return __builtin_bit_cast(__m256i, v); }

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
