#ifndef MICROSCALE_ARITHMETIC_HPP
#define MICROSCALE_ARITHMETIC_HPP

#include <math.h>
#include <Microscale_Macros.hpp>

// One binary32 operation each, rounded to nearest even. Host code is compiled with -ffp-contract=off; device compilers
// contract a * b + c by default, and these functions keep them from it wherever a rounding is part of the contract.
namespace microscale::inline MICROSCALE_ISA {

MICROSCALE_FUNCTION inline float mul(float a, float b) {
#if MICROSCALE_DEVICE_CODE
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

MICROSCALE_FUNCTION inline float add(float a, float b) {
#if MICROSCALE_DEVICE_CODE
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

/// a * b + c, rounded once.
MICROSCALE_FUNCTION inline float fused_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }

}  // namespace microscale::inline MICROSCALE_ISA

#endif
