// Compiled without the flags of the kernels: this runs before anybody knows whether the processor has AVX-512.
#include <Microscale_Avx512_Kernels.hpp>
#include <stdlib.h>
#include <string.h>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

Support cpu_support() {
  const char* wish = getenv("MICROSCALE_AVX512");
  if (wish != nullptr && strcmp(wish, "off") == 0) return {false, "MICROSCALE_AVX512=off"};
#if !defined(MICROSCALE_AVX512_MODEL)
  // These also ask whether the system saves the registers (XCR0).
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512f")) return {false, "the processor has no AVX-512"};
  if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
    return {false, "the processor lacks AVX-512 BW, DQ or VL"};
  if (!__builtin_cpu_supports("avx512vbmi")) return {false, "the processor lacks AVX-512 VBMI"};
  if (!__builtin_cpu_supports("avx512vnni")) return {false, "the processor lacks AVX-512 VNNI"};
  if (!__builtin_cpu_supports("avx512bf16")) return {false, "the processor lacks AVX-512 BF16"};
  if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
    return {false, "the processor lacks FMA, AVX2 or BMI2"};
#endif
  return {true, ""};
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
