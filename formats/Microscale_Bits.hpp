#ifndef MICROSCALE_BITS_HPP
#define MICROSCALE_BITS_HPP

#include <Microscale_Macros.hpp>

#include <cstdint>

namespace microscale::inline MICROSCALE_ISA {

/// Largest finite binary32 value.
inline constexpr float float_max = 0x1.fffffep127f;

namespace Bits {

inline constexpr std::uint32_t sign = 0x80000000u;
inline constexpr std::uint32_t magnitude = 0x7fffffffu;
inline constexpr std::uint32_t infinity = 0x7f800000u;
inline constexpr std::uint32_t quiet_nan = 0x7fc00000u;

/// The bits of a binary32 value. (std::bit_cast is not callable from device code without extra compiler flags.)
MICROSCALE_FUNCTION constexpr std::uint32_t from_float(float x) { return __builtin_bit_cast(std::uint32_t, x); }
MICROSCALE_FUNCTION constexpr float to_float(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// 2^exponent for exponent in -149..127, exact (binary32 subnormals included).
MICROSCALE_FUNCTION constexpr float pow2(int exponent) {
  return exponent >= -126 ? to_float(static_cast<std::uint32_t>(exponent + 127) << 23)
                          : to_float(std::uint32_t{1} << (exponent + 149));
}

/// x * 2^exponent rounded once to binary32 (subnormal results included), for any int exponent.
MICROSCALE_FUNCTION constexpr float scale_by_pow2(float x, int exponent) {
  // Downwards each step keeps 24 bits of headroom above the subnormals, so only the last multiplication can round.
  constexpr int step_down = -102;
  for (int i = 0; i < 3 && exponent > 127; ++i, exponent -= 127) x *= pow2(127);
  for (int i = 0; i < 3 && exponent < -126; ++i, exponent -= step_down) x *= pow2(step_down);
  if (exponent > 127) exponent = 127;
  if (exponent < -126) exponent = -126;
  return x * pow2(exponent);
}

}  // namespace Bits
}  // namespace microscale::inline MICROSCALE_ISA

#endif
