#ifndef MICROSCALE_BLOCK_HPP
#define MICROSCALE_BLOCK_HPP

#include <Microscale_Packing.hpp>
#include <Microscale_TensorScalePair.hpp>

#include <cstdint>

// Quantization of one block: the whole numerics contract (docs/numerics.md) in one place. The library's own kernels
// call these functions, and an application may call them inside its kernels. All are pure functions of their arguments.
namespace microscale {

/// What a NaN or Inf in a block does.
/// strict: the scale becomes NaN and all codes 0, so the whole block decodes to NaN.
/// saturate: Inf counts as FLT_MAX; NaN does not count in amax and becomes the element's NaN, or +max where there is
/// none.
enum class NonFinite : std::uint8_t { strict, saturate };

/// How blocks are scaled. scale_rule is for E8M0 scales; UE4M3 scales have the one rule given at quantize_block.
struct BlockScaling {
  ScaleRule scale_rule = ScaleRule::rceil;
  NonFinite non_finite = NonFinite::strict;
  TensorScalePair tensor_scale{};
};

inline namespace MICROSCALE_ISA {

/// The bits of the largest magnitude among `count` values: above Bits::infinity if there is a NaN, equal to it if there
/// is an Inf but no NaN. Under `saturate` NaN is skipped and Inf counts as FLT_MAX.
MICROSCALE_FUNCTION constexpr std::uint32_t block_amax_bits(const float* values, int count, NonFinite policy) {
  std::int32_t amax = 0;
  if (policy == NonFinite::strict) {
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC unroll 1  // a loop that was unrolled as a whole is no longer vectorized
#endif
    for (int i = 0; i < count; ++i) {
      const auto mag = static_cast<std::int32_t>(Bits::from_float(values[i]) & Bits::magnitude);
      amax = mag > amax ? mag : amax;
    }
  } else {
    for (int i = 0; i < count; ++i) {
      auto mag = Bits::from_float(values[i]) & Bits::magnitude;
      if (mag > Bits::infinity) mag = 0;
      if (mag == Bits::infinity) mag = Bits::infinity - 1;
      amax = static_cast<std::int32_t>(mag) > amax ? static_cast<std::int32_t>(mag) : amax;
    }
  }
  return static_cast<std::uint32_t>(amax);
}

/// A block's scale byte and what its values are multiplied by before they are rounded to elements.
struct BlockScale {
  std::uint8_t byte;
  float multiplier;  ///< meaningless when byte is the NaN of the scale type
};

/// The scale of a block from the bits of its amax (block_amax_bits).
///
/// E8M0: byte = e8m0_from_amax(amax, rule), multiplier = 2^(127 - byte), exact.
/// UE4M3, each step one binary32 operation (the order of Transformer Engine's NVFP4; M is the largest element value,
/// 6):
///   byte = E4M3(amax * (encode * fl(1/M))), multiplier = 0 if byte is 00, else min(1 / (byte * decode), FLT_MAX).
/// A non-finite amax, or an invalid tensor-scale pair, gives the NaN byte.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr BlockScale block_scale(std::uint32_t amax_bits, const BlockScaling& scaling) {
  if constexpr (F::scale::type == ScaleType::e8m0) {
    const std::uint8_t byte = e8m0_from_amax<typename F::element>(Bits::to_float(amax_bits), scaling.scale_rule);
    return {byte, E8M0::reciprocal(byte)};
  } else {
    const TensorScalePair pair = F::tensor_scale ? scaling.tensor_scale : TensorScalePair{};
    if (amax_bits >= Bits::infinity || !is_valid(pair)) return {F::scale::nan_byte, 0.0f};
    constexpr float inverse_max = 1.0f / F::element::max;
    const float factor = pair.encode * inverse_max;
    const std::uint8_t byte = F::scale::encode(Bits::to_float(amax_bits) * factor);
    if (byte == 0) return {0, 0.0f};
    const float scale = F::scale::decode(byte) * pair.decode;
    // 1/scale would exceed FLT_MAX for scale <= 2^-128.
    return {byte, Bits::from_float(scale) <= Bits::from_float(0x1p-128f) ? float_max : 1.0f / scale};
  }
}

/// Codes of `count` values of a block whose scale is known, one code a byte. The multiplication by the scale and the
/// rounding are one binary32 operation each. Under a NaN scale all codes are 0.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr void encode_elements(const float* values, int count, std::uint8_t* codes,
                                                   const BlockScale& scale, NonFinite policy) {
  if (F::scale::is_nan(scale.byte)) {
    for (int i = 0; i < count; ++i) codes[i] = 0;
  } else if (policy == NonFinite::strict) {
    for (int i = 0; i < count; ++i) codes[i] = F::element::encode(values[i] * scale.multiplier);
  } else {
    for (int i = 0; i < count; ++i) {
      const std::uint32_t bits = Bits::from_float(values[i]);
      const bool inf = (bits & Bits::magnitude) == Bits::infinity;
      codes[i] = F::element::encode((inf ? Bits::to_float(bits - 1) : values[i]) * scale.multiplier);
    }
  }
}

/// Codes of one block of `count` <= F::block_size values, one code a byte; returns the scale byte.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr std::uint8_t encode_block(const float* values, int count, std::uint8_t* codes,
                                                        const BlockScaling& scaling = {}) {
  const BlockScale scale = block_scale<F>(block_amax_bits(values, count, scaling.non_finite), scaling);
  encode_elements<F>(values, count, codes, scale, scaling.non_finite);
  return scale.byte;
}

/// Quantizes `Blocks` full blocks, neighbours in a row, into Blocks * packed_bytes<F>(F::block_size) bytes and Blocks
/// scale bytes. The bytes are those of quantize_block one by one; small blocks are faster together, because the steps to
/// a scale, each of which waits for the one before, are then taken for all of them at once.
template <BlockFormat F, int Blocks>
MICROSCALE_FUNCTION constexpr void quantize_full_blocks(const float* values, std::uint8_t* bytes,
                                                        std::uint8_t* scale_bytes, const BlockScaling& scaling = {}) {
  constexpr int size = F::block_size;
  BlockScale scales[Blocks] = {};
  std::uint8_t codes[Blocks * size] = {};
  for (int b = 0; b < Blocks; ++b)
    scales[b] = block_scale<F>(block_amax_bits(values + b * size, size, scaling.non_finite), scaling);
  for (int b = 0; b < Blocks; ++b)
    encode_elements<F>(values + b * size, size, codes + b * size, scales[b], scaling.non_finite);
  pack_codes<F>(codes, Blocks * size, bytes);
  for (int b = 0; b < Blocks; ++b) scale_bytes[b] = scales[b].byte;
}

/// Quantizes one block of `count` <= F::block_size values (the last block of a row may be short) into
/// packed_bytes<F>(count) bytes and returns the scale byte. One thread does the whole block.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr std::uint8_t quantize_block(const float* values, int count, std::uint8_t* bytes,
                                                          const BlockScaling& scaling = {}) {
  std::uint8_t scale = 0;
  if (count == F::block_size) {
    quantize_full_blocks<F, 1>(values, bytes, &scale, scaling);
    return scale;
  }
  // Filled up with zeros, which change neither the scale nor a code.
  float filled[F::block_size] = {};
  for (int i = 0; i < count; ++i) filled[i] = values[i];
  std::uint8_t packed[packed_bytes<F>(F::block_size)] = {};
  quantize_full_blocks<F, 1>(filled, packed, &scale, scaling);
  for (int i = 0; i < packed_bytes<F>(count); ++i) bytes[i] = packed[i];
  return scale;
}

/// The value of one code: (code * block scale), rounded once (only subnormals and overflow to Inf can be inexact), then
/// times decode, rounded once. `scale` is F::scale::decode(byte). NaN scales give NaN.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr float dequantize_code(std::uint8_t code, float scale, float decode) {
  const float value = F::element::decode(code) * scale;
  if constexpr (F::tensor_scale)
    return value * decode;
  else
    return value;
}

/// The inverse of quantize_block: `count` values from packed codes and the scale byte. `decode` is the decode half of
/// the tensor scale and is not used by formats without one.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr void dequantize_block(const std::uint8_t* bytes, int count, std::uint8_t scale_byte,
                                                    float* values, float decode = 1.0f) {
  const float scale = F::scale::decode(scale_byte);
  std::uint8_t codes[F::block_size] = {};
  unpack_codes<F>(bytes, count, codes);
  for (int i = 0; i < count; ++i) values[i] = dequantize_code<F>(codes[i], scale, decode);
}

}  // namespace MICROSCALE_ISA
}  // namespace microscale

#endif
