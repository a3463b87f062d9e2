#ifndef MICROSCALE_FORMATID_HPP
#define MICROSCALE_FORMATID_HPP

#include <Microscale_Macros.hpp>

#include <cstdint>

// What a format is, as plain data: the description that travels to the backends. It is structural, so a new format
// needs no entry in any list.
namespace microscale {

/// Which codes of an element are no numbers: none (E2M1, E2M3, E3M2), only the all-ones magnitude, which is NaN (E4M3
/// "fn"), or a whole top exponent with Inf and NaN as in IEEE 754 (E5M2, bf16, half, float).
enum class Specials : std::uint8_t { none, nan_only, ieee };

/// How codes lie in memory. dense: one stream of bits, element i in bits [i*w, (i+1)*w) counted from the least
/// significant bit of byte 0 (so FP4 element 2i is the low nibble, and four FP6 elements fill three bytes). byte: one
/// code a byte.
enum class Packing : std::uint8_t { dense, byte };

/// Type of the block scale: none (an unquantized operand), E8M0 (power of two), UE4M3 (E4M3 without sign).
enum class ScaleType : std::uint8_t { none, e8m0, ue4m3 };

/// A floating-point type: 1 sign bit, then exponent, then mantissa.
struct ElementId {
  std::uint8_t exponent_bits = 0;
  std::uint8_t mantissa_bits = 0;
  Specials specials = Specials::none;
};

/// A matrix format. block_size is 0 for a plain (unquantized) operand.
struct FormatId {
  ElementId element{};
  std::int32_t block_size = 0;
  ScaleType scale = ScaleType::none;
  bool tensor_scale = false;
  Packing packing = Packing::dense;
};

inline namespace MICROSCALE_ISA {

MICROSCALE_FUNCTION constexpr bool operator==(ElementId a, ElementId b) {
  return a.exponent_bits == b.exponent_bits && a.mantissa_bits == b.mantissa_bits && a.specials == b.specials;
}
MICROSCALE_FUNCTION constexpr bool operator==(FormatId a, FormatId b) {
  return a.element == b.element && a.block_size == b.block_size && a.scale == b.scale &&
         a.tensor_scale == b.tensor_scale && a.packing == b.packing;
}

/// Bits that one element takes in memory.
MICROSCALE_FUNCTION constexpr int bits_per_code(FormatId f) {
  return f.packing == Packing::byte ? 8 : 1 + f.element.exponent_bits + f.element.mantissa_bits;
}

/// Bytes that `count` elements of a row take in memory; the unused bits of the last byte are zero.
MICROSCALE_FUNCTION constexpr std::int64_t packed_bytes(FormatId f, std::int64_t count) {
  const std::int64_t bits = bits_per_code(f);
  return (count / 8) * bits + ((count % 8) * bits + 7) / 8;
}

/// The plain types that a matmul takes beside block formats.
inline constexpr FormatId float32_id{{8, 23, Specials::ieee}, 0, ScaleType::none, false, Packing::dense};
inline constexpr FormatId float16_id{{5, 10, Specials::ieee}, 0, ScaleType::none, false, Packing::dense};
inline constexpr FormatId bfloat16_id{{8, 7, Specials::ieee}, 0, ScaleType::none, false, Packing::dense};
/// And what only quantize and dequantize take.
inline constexpr FormatId float64_id{{11, 52, Specials::ieee}, 0, ScaleType::none, false, Packing::dense};

}  // namespace MICROSCALE_ISA
}  // namespace microscale

#endif
