#ifndef MICROSCALE_HALF_HPP
#define MICROSCALE_HALF_HPP

#include <Microscale_Bits.hpp>

#include <cstdint>

// The two 16-bit storage types. They are our own because a host-only Kokkos has no 2-byte bhalf_t (it is a float
// there). Both convert from binary32 by round-to-nearest-even (overflow gives Inf, NaN stays NaN with its sign) and to
// it exactly. Arithmetic is done in float.
namespace microscale::inline MICROSCALE_ISA {

/// bfloat16: the upper half of a binary32.
struct bf16 {
  std::uint16_t bits;

  bf16() = default;
  MICROSCALE_FUNCTION constexpr explicit bf16(float x) : bits(round(x)) {}
  MICROSCALE_FUNCTION static constexpr bf16 from_bits(std::uint16_t b) {
    bf16 result(0.0f);
    result.bits = b;
    return result;
  }
  MICROSCALE_FUNCTION constexpr explicit operator float() const {
    return Bits::to_float(static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  MICROSCALE_FUNCTION static constexpr std::uint16_t round(float x) {
    const std::uint32_t u = Bits::from_float(x);
    if ((u & Bits::magnitude) > Bits::infinity) return static_cast<std::uint16_t>((u >> 16) | 0x0040u);
    return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};

/// IEEE binary16.
struct half {
  std::uint16_t bits;

  half() = default;
  MICROSCALE_FUNCTION constexpr explicit half(float x) : bits(round(x)) {}
  MICROSCALE_FUNCTION static constexpr half from_bits(std::uint16_t b) {
    half result(0.0f);
    result.bits = b;
    return result;
  }
  MICROSCALE_FUNCTION constexpr explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t mag = bits & 0x7fffu;
    if constexpr (MICROSCALE_DEVICE_CODE != 0) {  // without branches; exact, of subnormals too
      const std::uint32_t value = Bits::from_float(Bits::to_float(mag << 13) * 0x1p112f);
      return Bits::to_float(sign | value | (mag >= 0x7c00u ? Bits::infinity : 0u));
    }
    if (mag < 0x0400u) return Bits::to_float(sign | Bits::from_float(static_cast<float>(mag) * 0x1p-24f));
    if (mag >= 0x7c00u) return Bits::to_float(sign | Bits::infinity | ((mag & 0x03ffu) << 13));
    return Bits::to_float(sign | ((mag << 13) + ((127u - 15u) << 23)));
  }

 private:
  MICROSCALE_FUNCTION static constexpr std::uint16_t round(float x) {
    const std::uint32_t u = Bits::from_float(x);
    const std::uint32_t sign = (u >> 16) & 0x8000u;
    const std::uint32_t mag = u & Bits::magnitude;
    std::uint32_t result = 0;
    if (mag > Bits::infinity) {
      result = 0x7e00u | ((mag >> 13) & 0x03ffu);
    } else if (mag >= Bits::from_float(65520.0f)) {  // the midpoint above 65504 rounds away, to even: Inf
      result = 0x7c00u;
    } else if (mag < Bits::from_float(0x1p-14f)) {
      result = Bits::from_float(Bits::to_float(mag) + 0.5f) - Bits::from_float(0.5f);  // ulp(0.5) = 2^-24
    } else {
      const std::uint32_t m = mag - ((127u - 15u) << 23);
      result = (m + 0x0fffu + ((m >> 13) & 1u)) >> 13;
    }
    return static_cast<std::uint16_t>(sign | result);
  }
};

static_assert(sizeof(bf16) == 2 && sizeof(half) == 2, "16-bit storage types take 2 bytes");

}  // namespace microscale::inline MICROSCALE_ISA

#endif
