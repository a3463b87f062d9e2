#ifndef MICROSCALE_ELEMENT_HPP
#define MICROSCALE_ELEMENT_HPP

#include <Microscale_Bits.hpp>
#include <Microscale_FormatId.hpp>

#include <cstdint>

namespace microscale::inline MICROSCALE_ISA {

/// A floating-point element of at most 8 bits: sign, ExponentBits, MantissaBits, with subnormals (OCP OFP8 and MX v1.0;
/// E4M3 is the "fn" kind, not FNUZ). A code keeps its bits at the low end of a byte.
template <int ExponentBits, int MantissaBits, Specials S>
struct MiniFloat {
  static_assert(ExponentBits >= 2 && MantissaBits >= 1 && ExponentBits + MantissaBits <= 7,
                "an element has at least 2 exponent bits, at least 1 mantissa bit and at most 8 bits in all");

  static constexpr int exponent_bits = ExponentBits;
  static constexpr int mantissa_bits = MantissaBits;
  static constexpr int bits = 1 + ExponentBits + MantissaBits;
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  static constexpr Specials specials = S;
  static constexpr ElementId id = {ExponentBits, MantissaBits, S};
  static constexpr std::uint8_t sign_bit = 1u << (ExponentBits + MantissaBits);
  /// Code of the largest finite value.
  static constexpr std::uint8_t max_code = S == Specials::none       ? sign_bit - 1
                                           : S == Specials::nan_only ? sign_bit - 2
                                                                     : sign_bit - 1 - (1 << MantissaBits);
  /// What NaN encodes to: the NaN with the quiet bit set, or the largest value where there is no NaN (as PTX `cvt`
  /// does).
  static constexpr std::uint8_t nan_code = S == Specials::none       ? max_code
                                           : S == Specials::nan_only ? sign_bit - 1
                                                                     : max_code + 1 + (1 << (MantissaBits - 1));
  /// floor(log2(max)).
  static constexpr int emax = (max_code >> MantissaBits) - bias;
  /// The smallest positive value is 2^min_exponent.
  static constexpr int min_exponent = 1 - bias - MantissaBits;

  /// The value of a code, exactly. Bits above the element's own are ignored.
  MICROSCALE_FORCEINLINE_FUNCTION static constexpr float decode(std::uint8_t code) {
    if constexpr (MICROSCALE_DEVICE_CODE != 0) return decode_by_lane(code);
    const std::uint32_t sign = static_cast<std::uint32_t>(code & sign_bit) << (31 - ExponentBits - MantissaBits);
    const auto mag = static_cast<std::int32_t>(code & (sign_bit - 1u));
    // Branch-free by masks of sign bits, as encode() and for the same reason.
    const std::int32_t is_small = (mag - (1 << MantissaBits)) >> 31;
    const std::int32_t normal = (mag << mantissa_shift) + static_cast<std::int32_t>(rebias);
    const auto subnormal =
        static_cast<std::int32_t>(Bits::from_float(static_cast<float>(mag) * Bits::pow2(min_exponent)));
    std::int32_t result = (subnormal & is_small) | (normal & ~is_small);
    if constexpr (S != Specials::none) {
      constexpr std::int32_t last_number = S == Specials::ieee ? max_code + 1 : max_code;
      const std::int32_t not_finite = (max_code - mag) >> 31;
      const std::int32_t not_number = (last_number - mag) >> 31;
      result = (result & ~not_finite) | (static_cast<std::int32_t>(Bits::infinity) & not_finite) |
               (static_cast<std::int32_t>(Bits::quiet_nan) & not_number);
    }
    return Bits::to_float(sign | static_cast<std::uint32_t>(result));
  }

  /// Largest finite value.
  static constexpr float max = Bits::to_float((std::uint32_t{max_code} << (23 - MantissaBits)) + ((127u - bias) << 23));

  /// Round to nearest, ties to even, saturating at +-max (Inf too); the sign of zero is kept. NaN gives nan_code.
  MICROSCALE_FORCEINLINE_FUNCTION static constexpr std::uint8_t encode(float x) {
    if constexpr (MICROSCALE_DEVICE_CODE != 0) return encode_by_lane(x);
    // Branch-free, on signed integers, so that a loop over a block vectorizes even with SSE2. Conditions are masks made
    // of sign bits, because the compiler would turn ?: into a branch.
    const auto u = Bits::from_float(x);
    const auto mag = static_cast<std::int32_t>(u & Bits::magnitude);
    constexpr auto largest = static_cast<std::int32_t>(Bits::from_float(max));
    const std::int32_t m = largest + ((mag - largest) & ((mag - largest) >> 31));  // min(mag, largest)
    const std::int32_t moved = m - static_cast<std::int32_t>(rebias);
    const std::int32_t normal =
        (moved + ((1 << (mantissa_shift - 1)) - 1) + ((moved >> mantissa_shift) & 1)) >> mantissa_shift;
    // One ulp of this constant is the smallest element value, so the addition itself rounds to the subnormal grid.
    constexpr float grid = Bits::pow2(min_exponent + 23);
    const auto subnormal = static_cast<std::int32_t>(
        Bits::from_float(Bits::to_float(static_cast<std::uint32_t>(m)) + grid) - Bits::from_float(grid));
    constexpr auto least_normal = static_cast<std::int32_t>(Bits::from_float(Bits::pow2(1 - bias)));
    const auto sign = static_cast<std::int32_t>(u >> (31 - ExponentBits - MantissaBits)) & sign_bit;
    const std::int32_t is_small = (m - least_normal) >> 31;
    const std::int32_t not_number = (static_cast<std::int32_t>(Bits::infinity) - mag) >> 31;
    const std::int32_t code = (subnormal & is_small) | (normal & ~is_small) | sign;
    return static_cast<std::uint8_t>((nan_code & not_number) | (code & ~not_number));
  }

  /// double is rounded to float first.
  MICROSCALE_FUNCTION static constexpr std::uint8_t encode(double x) { return encode(static_cast<float>(x)); }

  /// decode() and encode() in the fewest operations for processors that take one element a lane, as GPUs do: half as many
  /// integer operations as the forms above, which CPUs vectorize better. The results are the same.
  MICROSCALE_FORCEINLINE_FUNCTION static constexpr float decode_by_lane(std::uint8_t code) {
    const std::uint32_t mag = code & (sign_bit - 1u);
    const std::uint32_t sign = static_cast<std::uint32_t>(code & sign_bit) << (31 - ExponentBits - MantissaBits);
    // Read as binary32, exponent and mantissa are the value times 2^(bias - 127), of subnormal codes too.
    const float value = Bits::to_float(sign | mag << mantissa_shift) * Bits::pow2(127 - bias);
    if constexpr (S == Specials::none) return value;
    if constexpr (S == Specials::nan_only)
      return mag > max_code ? Bits::to_float(sign | Bits::quiet_nan) : value;
    else
      return mag > max_code ? Bits::to_float(sign | (mag > max_code + 1u ? Bits::quiet_nan : Bits::infinity)) : value;
  }
  MICROSCALE_FORCEINLINE_FUNCTION static constexpr std::uint8_t encode_by_lane(float x) {
    const std::uint32_t u = Bits::from_float(x), mag = u & Bits::magnitude;
    std::uint32_t code = 0;
    if constexpr (ExponentBits == 2) {
      // Three grids, each twice as coarse as the one before: the code is the least of what they and the largest give,
      // because each grid has its own codes right and gives more than the right one elsewhere. An ulp of `one` is 1.
      constexpr float one = 0x1.8p23f;
      constexpr std::uint32_t zero = Bits::from_float(one), step = 1u << MantissaBits;
      const float y = Bits::to_float(mag);
      const std::uint32_t fine = Bits::from_float(y * Bits::pow2(-min_exponent) + one);
      const std::uint32_t middle = Bits::from_float(y * Bits::pow2(-min_exponent - 1) + (one + step));
      const std::uint32_t coarse = Bits::from_float(y * Bits::pow2(-min_exponent - 2) + (one + 2 * step));
      code = fine < middle ? fine : middle;
      code = coarse < code ? coarse : code;
      code = (code < zero + max_code ? code : zero + max_code) & (sign_bit - 1u);
    } else {
      constexpr std::uint32_t largest = Bits::from_float(max), least_normal = Bits::from_float(Bits::pow2(1 - bias));
      const std::uint32_t m = mag < largest ? mag : largest, exponent = m & Bits::infinity;
      const std::uint32_t binade = exponent > least_normal ? exponent : least_normal;
      // One ulp of this is the distance of elements in the binade, so that the addition rounds to them.
      const std::uint32_t grid = binade + (static_cast<std::uint32_t>(mantissa_shift) << 23);
      code = Bits::from_float(Bits::to_float(m) + Bits::to_float(grid)) - grid +
             ((binade - least_normal) >> mantissa_shift);
    }
    const std::uint32_t sign = (u >> (31 - ExponentBits - MantissaBits)) & sign_bit;
    return static_cast<std::uint8_t>(mag > Bits::infinity ? nan_code : sign | code);
  }

  MICROSCALE_FUNCTION static constexpr bool is_nan(std::uint8_t code) {
    const int mag = code & (sign_bit - 1);
    return S == Specials::ieee ? mag > max_code + 1 : mag > max_code;
  }
  MICROSCALE_FUNCTION static constexpr bool is_inf(std::uint8_t code) {
    return S == Specials::ieee && (code & (sign_bit - 1)) == max_code + 1;
  }

 private:
  static constexpr int mantissa_shift = 23 - MantissaBits;
  static constexpr std::uint32_t rebias = (127u - bias) << 23;
};

struct E2M1 : MiniFloat<2, 1, Specials::none> {
  static constexpr const char* name = "e2m1";
};
struct E2M3 : MiniFloat<2, 3, Specials::none> {
  static constexpr const char* name = "e2m3";
};
struct E3M2 : MiniFloat<3, 2, Specials::none> {
  static constexpr const char* name = "e3m2";
};
struct E4M3 : MiniFloat<4, 3, Specials::nan_only> {
  static constexpr const char* name = "e4m3";
};
struct E5M2 : MiniFloat<5, 2, Specials::ieee> {
  static constexpr const char* name = "e5m2";
};

}  // namespace microscale::inline MICROSCALE_ISA

#endif
