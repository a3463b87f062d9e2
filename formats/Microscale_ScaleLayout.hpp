#ifndef MICROSCALE_SCALELAYOUT_HPP
#define MICROSCALE_SCALELAYOUT_HPP

#include <Microscale_Macros.hpp>

#include <cstdint>

// Where the scale byte of (row, block column) lies. All layouts are tiles of `rows x cols` scales; tiles along K come
// first, then the next row of tiles. docs/layouts.md has the pictures. Padding up to whole tiles exists and is zero.
namespace microscale {

enum class ScaleLayout : std::uint8_t {
  linear,   ///< [rows, blocks], row-major, no padding
  tcgen,    ///< 128x4 tiles of 512 bytes: Blackwell tensor cores, cuBLASLt, and 5-D [rows/128, blocks/4, 32, 4, 4]
  cdna4,    ///< 32x8 cells of 256 bytes: preshuffled for the scaled MFMA of CDNA4
  tile_8x4  ///< 8x4 tiles of 32 bytes, for small M (TensorRT-LLM)
};

/// Logical position of a scale: the matrix row and the block column.
struct ScalePosition {
  std::int64_t row = 0;
  std::int64_t col = 0;
};

/// Rows and block columns of one tile.
struct ScaleTile {
  int rows;
  int cols;
};

inline namespace MICROSCALE_ISA {

MICROSCALE_FUNCTION constexpr bool operator==(ScalePosition a, ScalePosition b) {
  return a.row == b.row && a.col == b.col;
}

MICROSCALE_FUNCTION constexpr const char* name(ScaleLayout layout) {
  switch (layout) {
    case ScaleLayout::linear:
      return "linear";
    case ScaleLayout::tcgen:
      return "tcgen";
    case ScaleLayout::cdna4:
      return "cdna4";
    case ScaleLayout::tile_8x4:
      return "tile_8x4";
  }
  return "unknown";
}

MICROSCALE_FUNCTION constexpr ScaleTile scale_tile(ScaleLayout layout) {
  switch (layout) {
    case ScaleLayout::linear:
      return {1, 1};
    case ScaleLayout::tcgen:
      return {128, 4};
    case ScaleLayout::cdna4:
      return {32, 8};
    case ScaleLayout::tile_8x4:
      return {8, 4};
  }
  return {1, 1};
}

/// Byte offset inside a tile of the scale at (r, c), r < tile rows, c < tile cols.
///   tcgen      r = 32 q + l             ->  16 l + 4 q + c    (4 scales of a row are a word; rows l, l+32, .. a line)
///   cdna4      r = 16 h + l, c = 4 g + j  ->  64 j + 4 l + 2 g + h
///   tile_8x4   4 r + c
MICROSCALE_FUNCTION constexpr int offset_in_tile(ScaleLayout layout, int r, int c) {
  switch (layout) {
    case ScaleLayout::linear:
      return 0;
    case ScaleLayout::tcgen:
      return (r % 32) * 16 + (r / 32) * 4 + c;
    case ScaleLayout::cdna4:
      return (c % 4) * 64 + (r % 16) * 4 + (c / 4) * 2 + r / 16;
    case ScaleLayout::tile_8x4:
      return r * 4 + c;
  }
  return 0;
}

/// The inverse of offset_in_tile.
MICROSCALE_FUNCTION constexpr ScalePosition position_in_tile(ScaleLayout layout, int offset) {
  switch (layout) {
    case ScaleLayout::linear:
      return {0, 0};
    case ScaleLayout::tcgen:
      return {offset / 16 + (offset / 4 % 4) * 32, offset % 4};
    case ScaleLayout::cdna4:
      return {(offset / 4 % 16) + (offset % 2) * 16, offset / 64 + (offset / 2 % 2) * 4};
    case ScaleLayout::tile_8x4:
      return {offset / 4, offset % 4};
  }
  return {0, 0};
}

namespace Detail {

template <ScaleLayout L>
MICROSCALE_FUNCTION constexpr std::int64_t offset_in_tile_row(std::int64_t row, std::int64_t col) {
  constexpr ScaleTile tile = scale_tile(L);
  return col / tile.cols * (tile.rows * tile.cols) +
         offset_in_tile(L, static_cast<int>(row % tile.rows), static_cast<int>(col % tile.cols));
}

}  // namespace Detail

/// The row of tiles that holds a row.
MICROSCALE_FUNCTION constexpr std::int64_t tile_row(ScaleLayout layout, std::int64_t row) {
  // Each case has a constant divisor, so that this is a shift: kernels call it for every block.
  switch (layout) {
    case ScaleLayout::linear:
      return row;
    case ScaleLayout::tcgen:
      return row / scale_tile(ScaleLayout::tcgen).rows;
    case ScaleLayout::cdna4:
      return row / scale_tile(ScaleLayout::cdna4).rows;
    case ScaleLayout::tile_8x4:
      return row / scale_tile(ScaleLayout::tile_8x4).rows;
  }
  return row;
}

/// The index map of the scales of a matrix with `rows` rows and `cols` block columns, seen as [tile_rows,
/// tile_row_bytes]. All arithmetic is 64-bit.
struct ScaleMap {
  ScaleLayout layout;
  std::int64_t rows;
  std::int64_t cols;

  /// Rows of tiles: ceil(rows / tile rows).
  MICROSCALE_FUNCTION constexpr std::int64_t tile_rows() const {
    const int r = scale_tile(layout).rows;
    return (rows + r - 1) / r;
  }
  /// Block columns, padded to whole tiles.
  MICROSCALE_FUNCTION constexpr std::int64_t padded_cols() const {
    const int c = scale_tile(layout).cols;
    return (cols + c - 1) / c * c;
  }
  /// Bytes of one row of tiles.
  MICROSCALE_FUNCTION constexpr std::int64_t tile_row_bytes() const { return padded_cols() * scale_tile(layout).rows; }
  /// Bytes of the whole buffer, padding included.
  MICROSCALE_FUNCTION constexpr std::int64_t bytes() const { return tile_rows() * tile_row_bytes(); }

  /// Offset of (row, col) from the start of the row of tiles that holds `row`.
  MICROSCALE_FUNCTION constexpr std::int64_t offset_in_tile_row(std::int64_t row, std::int64_t col) const {
    switch (layout) {  // constant tiles, as in tile_row()
      case ScaleLayout::linear:
        return col;
      case ScaleLayout::tcgen:
        return Detail::offset_in_tile_row<ScaleLayout::tcgen>(row, col);
      case ScaleLayout::cdna4:
        return Detail::offset_in_tile_row<ScaleLayout::cdna4>(row, col);
      case ScaleLayout::tile_8x4:
        return Detail::offset_in_tile_row<ScaleLayout::tile_8x4>(row, col);
    }
    return col;
  }
  /// Offset of (row, col) from the start of a compact buffer. Defined for padding rows and columns too.
  MICROSCALE_FUNCTION constexpr std::int64_t offset(std::int64_t row, std::int64_t col) const {
    return tile_row(layout, row) * tile_row_bytes() + offset_in_tile_row(row, col);
  }
  /// The inverse of offset; the result may lie in the padding (row >= rows or col >= cols).
  MICROSCALE_FUNCTION constexpr ScalePosition position(std::int64_t byte_offset) const {
    const ScaleTile tile = scale_tile(layout);
    const std::int64_t tile_bytes = tile.rows * tile.cols;
    const std::int64_t in_row = byte_offset % tile_row_bytes();
    const ScalePosition p = position_in_tile(layout, static_cast<int>(in_row % tile_bytes));
    return {byte_offset / tile_row_bytes() * tile.rows + p.row, in_row / tile_bytes * tile.cols + p.col};
  }
};

// Grouped activations: the rows of each expert slot start on a fresh row of tiles.

/// Rows of tiles that a grouped buffer needs at most: ceil(total / tile rows) + groups (one partial tile more a group).
MICROSCALE_FUNCTION constexpr std::int64_t grouped_tile_rows_bound(ScaleLayout layout, std::int64_t total_rows,
                                                                   std::int64_t groups) {
  const int r = scale_tile(layout).rows;
  return r == 1 ? total_rows : (total_rows + r - 1) / r + groups;
}

/// a_scale_offsets of a slot whose first row is `row_begin` and whose first row of tiles is `tile_begin`: the
/// correction that is added to row_begin / tile rows. Never negative for slots laid out in order.
MICROSCALE_FUNCTION constexpr std::int64_t grouped_scale_offset(ScaleLayout layout, std::int64_t row_begin,
                                                                std::int64_t tile_begin) {
  return tile_begin - row_begin / scale_tile(layout).rows;
}

/// The row of the scale buffer (tile row * tile rows + row in tile) of matrix row `row` of a slot.
MICROSCALE_FUNCTION constexpr std::int64_t grouped_scale_row(ScaleLayout layout, std::int64_t row,
                                                             std::int64_t row_begin, std::int64_t scale_offset) {
  const int r = scale_tile(layout).rows;
  return (row_begin / r + scale_offset) * r + (row - row_begin);
}

}  // namespace MICROSCALE_ISA
}  // namespace microscale

#endif
