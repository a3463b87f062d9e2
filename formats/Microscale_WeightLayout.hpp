#ifndef MICROSCALE_WEIGHTLAYOUT_HPP
#define MICROSCALE_WEIGHTLAYOUT_HPP

#include <Microscale_Macros.hpp>

#include <cstdint>

namespace microscale {

/// Position of a data byte of stacked weights: expert, row n, byte column k.
struct WeightPosition {
  std::int64_t expert = 0;
  std::int64_t row = 0;
  std::int64_t byte = 0;
};

inline namespace MICROSCALE_ISA {

MICROSCALE_FUNCTION constexpr bool operator==(WeightPosition a, WeightPosition b) {
  return a.expert == b.expert && a.row == b.row && a.byte == b.byte;
}

/// The weight preshuffle of CDNA4 (the order of Composable Kernel's mx_flatmm example): [expert, rows/16, bytes/64]
/// cells of 1024 bytes, each [4 lane groups of K][16 rows][16 bytes], so that the 16-byte fragment of an MFMA lane is
/// contiguous. rows is a multiple of 16 and row_bytes of 64 (see can_preshuffle).
struct Cdna4WeightMap {
  std::int64_t rows;
  std::int64_t row_bytes;

  MICROSCALE_FUNCTION constexpr bool can_preshuffle() const { return rows % 16 == 0 && row_bytes % 64 == 0; }

  MICROSCALE_FUNCTION constexpr std::int64_t offset(WeightPosition p) const {
    return p.expert * rows * row_bytes + (p.row / 16) * (row_bytes / 64) * 1024 + (p.byte / 64) * 1024 +
           (p.byte % 64) / 16 * 256 + (p.row % 16) * 16 + p.byte % 16;
  }

  /// The inverse of offset.
  MICROSCALE_FUNCTION constexpr WeightPosition position(std::int64_t offset) const {
    const std::int64_t expert = offset / (rows * row_bytes);
    const std::int64_t cell = offset % (rows * row_bytes) / 1024;
    const std::int64_t within = offset % 1024;
    const std::int64_t cells = row_bytes / 64;
    return {expert, cell / cells * 16 + within / 16 % 16, cell % cells * 64 + within / 256 * 16 + within % 16};
  }
};

}  // namespace MICROSCALE_ISA
}  // namespace microscale

#endif
