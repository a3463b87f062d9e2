#ifndef MICROSCALE_SCALE_HPP
#define MICROSCALE_SCALE_HPP

#include <Microscale_Element.hpp>

#include <cstdint>

namespace microscale {

/// How the E8M0 scale of a block follows from its amax a, with M the element's largest value and m its mantissa bits.
/// Exponents are exact functions of the binary32 a (OCP MX v1.0 section 6.3 for floor; see docs/numerics.md for users
/// of each).
enum class ScaleRule : std::uint8_t {
  floor,  ///< floor(log2 a) - emax: the OCP minimum; values above M clip
  rceil,  ///< ceil(log2(a / M)): never clips (cuBLAS, Transformer Engine); the default
  ceil,   ///< ceil(log2 a) - emax: never clips, one binade coarser for part of the range
  even    ///< floor(log2(a rounded half up to m + 1 significant bits)) - emax
};

inline namespace MICROSCALE_ISA {

/// Power-of-two scale: byte b is 2^(b-127), 0..254 (00 is 2^-127, a binary32 subnormal, not zero); FF is NaN.
struct E8M0 {
  static constexpr const char* name = "e8m0";
  static constexpr ScaleType type = ScaleType::e8m0;
  static constexpr std::uint8_t nan_byte = 0xff;
  static constexpr int bias = 127;

  MICROSCALE_FUNCTION static constexpr bool is_nan(std::uint8_t byte) { return byte == nan_byte; }

  MICROSCALE_FUNCTION static constexpr float decode(std::uint8_t byte) {
    return byte == nan_byte ? Bits::to_float(Bits::quiet_nan) : Bits::pow2(byte - bias);
  }

  /// 1 / decode(byte), exact for every byte (FF gives NaN).
  MICROSCALE_FUNCTION static constexpr float reciprocal(std::uint8_t byte) {
    return byte == nan_byte ? Bits::to_float(Bits::quiet_nan) : Bits::pow2(bias - byte);
  }

  /// The smallest power of two not below |x|, at most 2^127 (satfinite) and at least 2^-127; Inf and NaN give FF.
  MICROSCALE_FUNCTION static constexpr std::uint8_t encode_up(float x) {
    const std::uint32_t mag = Bits::from_float(x) & Bits::magnitude;
    if (mag >= Bits::infinity) return nan_byte;
    if (mag <= 0x00400000u) return 0;  // 2^-127
    const std::uint32_t byte = (mag + 0x007fffffu) >> 23;
    return static_cast<std::uint8_t>(byte > 254 ? 254 : byte);
  }

  /// The largest power of two not above |x|, at least 2^-127; Inf and NaN give FF.
  MICROSCALE_FUNCTION static constexpr std::uint8_t encode_down(float x) {
    const std::uint32_t mag = Bits::from_float(x) & Bits::magnitude;
    return static_cast<std::uint8_t>(mag >= Bits::infinity ? nan_byte : mag >> 23);
  }
};

/// E4M3 without a sign: 00..7E, 7F is NaN. Bit 7 of a byte is ignored (as cuBLAS does).
struct UE4M3 {
  static constexpr const char* name = "ue4m3";
  static constexpr ScaleType type = ScaleType::ue4m3;
  static constexpr std::uint8_t nan_byte = 0x7f;
  static constexpr float max = E4M3::max;

  MICROSCALE_FUNCTION static constexpr bool is_nan(std::uint8_t byte) { return (byte & 0x7f) == nan_byte; }
  MICROSCALE_FUNCTION static constexpr float decode(std::uint8_t byte) {
    return E4M3::decode(static_cast<std::uint8_t>(byte & 0x7f));
  }
  /// Round to nearest even, saturating at 448; NaN gives 7F. The sign of x is dropped.
  MICROSCALE_FUNCTION static constexpr std::uint8_t encode(float x) {
    // A block has one scale: branches, which are easy to predict here, are faster than the masks of E4M3::encode.
    constexpr int shift = 23 - E4M3::mantissa_bits;
    constexpr std::uint32_t rebias = (127u - E4M3::bias) << 23;
    constexpr float grid = Bits::pow2(E4M3::min_exponent + 23);
    const std::uint32_t mag = Bits::from_float(x) & Bits::magnitude;
    if (mag > Bits::infinity) return nan_byte;
    if (mag >= Bits::from_float(max)) return E4M3::max_code;
    if (mag < Bits::from_float(Bits::pow2(1 - E4M3::bias)))
      return static_cast<std::uint8_t>(Bits::from_float(Bits::to_float(mag) + grid) - Bits::from_float(grid));
    return static_cast<std::uint8_t>((mag - rebias + ((1u << (shift - 1)) - 1) + ((mag >> shift) & 1u)) >> shift);
  }
};

/// E8M0 scale byte of a block with the given amax (>= 0) under a rule: 0..254 for finite amax (clamped), FF for Inf or
/// NaN.
template <class Element>
MICROSCALE_FUNCTION constexpr std::uint8_t e8m0_from_amax(float amax, ScaleRule rule) {
  const std::uint32_t bits = Bits::from_float(amax) & Bits::magnitude;
  if (bits >= Bits::infinity) return E8M0::nan_byte;
  // The biased exponent of a subnormal amax reads as 0; its true, smaller one would be clamped to byte 0 just the same.
  const int exponent = static_cast<int>(bits >> 23);
  const std::uint32_t mantissa = bits & 0x007fffffu;
  constexpr std::uint32_t max_mantissa = Bits::from_float(Element::max) & 0x007fffffu;
  constexpr std::uint32_t even_mantissa = 0x00800000u - (0x00800000u >> (Element::mantissa_bits + 1));
  bool up = false;
  switch (rule) {
    case ScaleRule::floor:
      break;
    case ScaleRule::rceil:
      up = mantissa > max_mantissa;
      break;
    case ScaleRule::ceil:
      up = mantissa != 0;
      break;
    case ScaleRule::even:
      up = mantissa >= even_mantissa;
      break;
  }
  const int byte = exponent - Element::emax + (up ? 1 : 0);
  return static_cast<std::uint8_t>(byte < 0 ? 0 : byte);  // at most 254 + 1 - 2
}

}  // namespace MICROSCALE_ISA
}  // namespace microscale

#endif
