#ifndef MICROSCALE_BLOCKFORMAT_HPP
#define MICROSCALE_BLOCKFORMAT_HPP

#include <Microscale_Element.hpp>
#include <Microscale_FormatId.hpp>
#include <Microscale_Scale.hpp>

#include <concepts>
#include <cstdint>

// A block format is one struct: to add one, write one like those below (in this file or in an application).
// Along a row, each block of `block_size` elements (the last may be shorter) shares one scale byte; with `tensor_scale`
// one more binary32 factor is shared by the whole matrix.
namespace microscale::inline MICROSCALE_ISA {

/// NVFP4: E2M1 in blocks of 16 with UE4M3 scales and a tensor scale.
struct NVFP4 {
  using element = E2M1;
  using scale = UE4M3;
  static constexpr int block_size = 16;
  static constexpr bool tensor_scale = true;
  static constexpr Packing packing = Packing::dense;
  static constexpr const char* name = "nvfp4";
};

/// MXFP4 (OCP MX v1.0): E2M1 in blocks of 32 with E8M0 scales.
struct MXFP4 {
  using element = E2M1;
  using scale = E8M0;
  static constexpr int block_size = 32;
  static constexpr bool tensor_scale = false;
  static constexpr Packing packing = Packing::dense;
  static constexpr const char* name = "mxfp4";
};

/// MXFP8 (OCP MX v1.0) with E4M3 elements.
struct MXFP8_E4M3 {
  using element = E4M3;
  using scale = E8M0;
  static constexpr int block_size = 32;
  static constexpr bool tensor_scale = false;
  static constexpr Packing packing = Packing::dense;
  static constexpr const char* name = "mxfp8_e4m3";
};

/// MXFP8 (OCP MX v1.0) with E5M2 elements.
struct MXFP8_E5M2 {
  using element = E5M2;
  using scale = E8M0;
  static constexpr int block_size = 32;
  static constexpr bool tensor_scale = false;
  static constexpr Packing packing = Packing::dense;
  static constexpr const char* name = "mxfp8_e5m2";
};

/// MXFP6 (OCP MX v1.0) with E2M3 elements, four codes in three bytes.
struct MXFP6_E2M3 {
  using element = E2M3;
  using scale = E8M0;
  static constexpr int block_size = 32;
  static constexpr bool tensor_scale = false;
  static constexpr Packing packing = Packing::dense;
  static constexpr const char* name = "mxfp6_e2m3";
};

/// MXFP6 (OCP MX v1.0) with E3M2 elements, four codes in three bytes.
struct MXFP6_E3M2 {
  using element = E3M2;
  using scale = E8M0;
  static constexpr int block_size = 32;
  static constexpr bool tensor_scale = false;
  static constexpr Packing packing = Packing::dense;
  static constexpr const char* name = "mxfp6_e3m2";
};

/// MXFP6 with one code a byte (the two upper bits are zero), as several tools keep it.
struct MXFP6_E2M3_Bytes : MXFP6_E2M3 {
  static constexpr Packing packing = Packing::byte;
  static constexpr const char* name = "mxfp6_e2m3_bytes";
};
struct MXFP6_E3M2_Bytes : MXFP6_E3M2 {
  static constexpr Packing packing = Packing::byte;
  static constexpr const char* name = "mxfp6_e3m2_bytes";
};

/// A struct that describes a block format: element, scale, block_size (a multiple of 8 up to 512), tensor_scale,
/// packing, name. A tensor scale goes with UE4M3 scales only: E8M0 already reaches every binary32 exponent.
template <class F>
concept BlockFormat = requires {
  typename F::element;
  typename F::scale;
  { F::element::encode(0.0f) } -> std::same_as<std::uint8_t>;
  { F::element::decode(std::uint8_t{}) } -> std::same_as<float>;
  { F::scale::type } -> std::convertible_to<ScaleType>;
  { F::block_size } -> std::convertible_to<int>;
  { F::tensor_scale } -> std::convertible_to<bool>;
  { F::packing } -> std::convertible_to<Packing>;
  { F::name } -> std::convertible_to<const char*>;
  requires(F::block_size > 0 && F::block_size <= 512 && F::block_size % 8 == 0);
  requires(!F::tensor_scale || F::scale::type == ScaleType::ue4m3);
};

/// The structural description of a block format.
template <BlockFormat F>
inline constexpr FormatId format_id = {F::element::id, F::block_size, F::scale::type, F::tensor_scale, F::packing};

/// Number of blocks (scale bytes) of a row of `cols` elements.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr std::int64_t block_count(std::int64_t cols) {
  return (cols + F::block_size - 1) / F::block_size;
}

}  // namespace microscale::inline MICROSCALE_ISA

#endif
