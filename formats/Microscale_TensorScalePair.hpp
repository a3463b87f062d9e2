#ifndef MICROSCALE_TENSORSCALEPAIR_HPP
#define MICROSCALE_TENSORSCALEPAIR_HPP

#include <Microscale_BlockFormat.hpp>

namespace microscale {

/// The tensor scale as a matrix keeps it: both halves, so that quantizing again gives the same bytes and each file
/// style is written from the half that it wants. value = code * block scale * decode; encode is its reciprocal up to
/// rounding.
struct TensorScalePair {
  float decode = 1.0f;
  float encode = 1.0f;
};

inline namespace MICROSCALE_ISA {

/// Whether both halves are positive and finite. Blocks quantized under any other pair become NaN blocks.
MICROSCALE_FUNCTION constexpr bool is_valid(TensorScalePair pair) {
  return pair.decode > 0.0f && pair.decode <= float_max && pair.encode > 0.0f && pair.encode <= float_max;
}

/// The pair of a decode scale s (multiply by it to get values back): decode = s, encode = min(1/s, FLT_MAX).
MICROSCALE_FUNCTION constexpr TensorScalePair pair_from_decode(float s) {
  if (!(s > 0.0f) || s > float_max) return {s, 1.0f};  // invalid, whatever the other half
  // 1/s overflows for s below 2^-128. (The division is not attempted: it would be no constant expression.)
  const float encode = s < 0x1p-128f || Bits::from_float(s) == Bits::from_float(0x1p-128f) ? float_max : 1.0f / s;
  return {s, encode};
}

/// The pair of an encode scale g (values are multiplied by it before block scaling): encode = g, decode = 1/g. A
/// subnormal g whose reciprocal is not finite gives an invalid pair.
MICROSCALE_FUNCTION constexpr TensorScalePair pair_from_encode(float g) {
  if (!(g > 0.0f) || g > float_max) return {1.0f, g};
  if (Bits::from_float(g) <= Bits::from_float(0x1p-128f)) return {Bits::to_float(Bits::infinity), g};
  return {1.0f / g, g};
}

/// The dynamic pair of a tensor whose largest finite magnitude is amax: encode = min(largest scale * largest element /
/// amax, FLT_MAX), that is 2688/amax for NVFP4, and decode = 1/encode. amax = 0 gives (1, 1).
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr TensorScalePair pair_from_amax(float amax) {
  if constexpr (!F::tensor_scale)
    return {};
  else {
    if (amax == 0.0f) return {};
    constexpr float largest = F::scale::max * F::element::max;
    // largest/amax overflows just for amax <= largest * 2^-128 (an exact product).
    const float encode = amax <= largest * 0x1p-128f ? float_max : largest / amax;
    return {1.0f / encode, encode};
  }
}

}  // namespace MICROSCALE_ISA
}  // namespace microscale

#endif
