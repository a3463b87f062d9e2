#ifndef MICROSCALE_REFERENCE_VALIDATE_HPP
#define MICROSCALE_REFERENCE_VALIDATE_HPP

#include <Microscale_MatrixHandle.hpp>
#include <Microscale_Reference_Quantize.hpp>
#include <Microscale_SlotTable.hpp>

#include <cstdint>

namespace microscale::Impl {

/// What the validation kernels count, as a Kokkos reduction.
struct ValidationCounts {
  std::int64_t nan_scales = 0;
  std::int64_t signed_scales = 0;
  std::int64_t padding_scales = 0;
  std::int64_t stray_bytes = 0;
  std::int64_t nan_codes = 0;
  std::int64_t inf_codes = 0;
  std::int32_t min_scale = 256;
  std::int32_t max_scale = -1;

  KOKKOS_FUNCTION void add(const ValidationCounts& other) {
    nan_scales += other.nan_scales;
    signed_scales += other.signed_scales;
    padding_scales += other.padding_scales;
    stray_bytes += other.stray_bytes;
    nan_codes += other.nan_codes;
    inf_codes += other.inf_codes;
    min_scale = other.min_scale < min_scale ? other.min_scale : min_scale;
    max_scale = other.max_scale > max_scale ? other.max_scale : max_scale;
  }
};

template <class Derived>
struct ValidationReduction {
  using value_type = ValidationCounts;
  KOKKOS_FUNCTION void init(ValidationCounts& counts) const { counts = ValidationCounts(); }
  KOKKOS_FUNCTION void join(ValidationCounts& counts, const ValidationCounts& other) const { counts.add(other); }
};

/// One index is one row of the scale buffer, padding included. With slots, rows are those of a grouped operation.
template <class Format>
struct ValidateScales : ValidationReduction<ValidateScales<Format>> {
  MatrixHandle<Format> matrix;
  SlotTable slots;
  bool grouped;

  ValidateScales(const MatrixHandle<Format>& m, const SlotTable& s, bool g) : matrix(m), slots(s), grouped(g) {}

  KOKKOS_FUNCTION void operator()(std::int64_t scale_row, ValidationCounts& counts) const {
    const bool real_row = grouped ? slots.row_of(scale_row) >= 0 : scale_row < matrix.rows;
    for (std::int64_t b = 0; b < matrix.map.padded_cols(); ++b) {
      const std::uint8_t byte = matrix.scale(scale_row, b);
      if (!real_row || b >= matrix.map.cols) {
        counts.padding_scales += byte != 0 ? 1 : 0;
        continue;
      }
      constexpr bool has_spare_bit = Format::scale::type == ScaleType::ue4m3;
      const std::int32_t scale = has_spare_bit ? byte & 0x7f : byte;
      counts.signed_scales += scale != byte ? 1 : 0;
      if (Format::scale::is_nan(byte)) {
        ++counts.nan_scales;
      } else {
        counts.min_scale = scale < counts.min_scale ? scale : counts.min_scale;
        counts.max_scale = scale > counts.max_scale ? scale : counts.max_scale;
      }
    }
  }
};

/// One index is one block.
template <class Format>
struct ValidateCodes : ValidationReduction<ValidateCodes<Format>> {
  MatrixHandle<Format> matrix;

  explicit ValidateCodes(const MatrixHandle<Format>& m) : matrix(m) {}

  KOKKOS_FUNCTION void operator()(std::int64_t index, ValidationCounts& counts) const {
    const std::int64_t r = index / matrix.map.cols, b = index % matrix.map.cols;
    const int count = matrix.block_length(b);
    const std::uint8_t* bytes = matrix.block(r, b);
    for (int i = 0; i < count; ++i) {
      const std::uint8_t code = read_code<Format>(bytes, i);
      counts.nan_codes += Format::element::is_nan(code) ? 1 : 0;
      counts.inf_codes += Format::element::is_inf(code) ? 1 : 0;
      if (code_bits<Format> == 8) counts.stray_bytes += (code >> Format::element::bits) != 0 ? 1 : 0;
    }
    const int used = count * code_bits<Format> % 8;  // bits of the last byte
    if (used != 0) counts.stray_bytes += (bytes[packed_bytes<Format>(count) - 1] >> used) != 0 ? 1 : 0;
  }
};

}  // namespace microscale::Impl

#endif
