#ifndef MICROSCALE_AVX512_MODEL_HPP
#define MICROSCALE_AVX512_MODEL_HPP

// AVX-512 in plain C++: the types and intrinsics of <immintrin.h> that the kernels in backends/avx512 use, under the
// same names, each written from the operation that Intel documents (Intrinsics Guide; Software Developer's Manual,
// volume 2). Kernels compiled with it run on any machine and under any sanitizer. One header a family; to add an
// intrinsic, add it to its family and a line to tests/backends/avx512/Intrinsics_Cases.cpp.
#include <Microscale_Avx512_Model_Compare.hpp>
#include <Microscale_Avx512_Model_Convert.hpp>
#include <Microscale_Avx512_Model_Dot.hpp>
#include <Microscale_Avx512_Model_Float.hpp>
#include <Microscale_Avx512_Model_Integer.hpp>
#include <Microscale_Avx512_Model_Memory.hpp>
#include <Microscale_Avx512_Model_Permute.hpp>
#include <Microscale_Avx512_Model_Types.hpp>

#endif
