#ifndef MICROSCALE_MATRIXHANDLE_HPP
#define MICROSCALE_MATRIXHANDLE_HPP

#include <Kokkos_Core.hpp>
#include <Microscale_Block.hpp>
#include <Microscale_ScaleLayout.hpp>

#include <cstdint>

namespace microscale::Impl {

/// A block-scaled matrix as kernels see it: pointers, pitches (bytes) and the scale map. Trivially copyable.
template <BlockFormat Format>
struct MatrixHandle {
  using format = Format;

  std::uint8_t* data;
  std::int64_t row_pitch;
  std::uint8_t* scales;
  std::int64_t scale_pitch;  ///< bytes from one row of scale tiles to the next
  TensorScalePair* tensor_scale;
  std::int64_t rows, cols;
  ScaleMap map;
  std::int64_t tile_rows;  ///< rows of scale tiles in the buffer (more than map.tile_rows() if grouped)

  KOKKOS_FUNCTION std::uint8_t* row(std::int64_t r) const { return data + r * row_pitch; }
  /// First byte of block `b` of row r. (Whole blocks are whole bytes.)
  KOKKOS_FUNCTION std::uint8_t* block(std::int64_t r, std::int64_t b) const {
    return row(r) + b * packed_bytes<Format>(Format::block_size);
  }
  /// Elements of block b: block_size, or fewer in the last block of a row.
  KOKKOS_FUNCTION int block_length(std::int64_t b) const {
    const std::int64_t left = cols - b * Format::block_size;
    return left < Format::block_size ? static_cast<int>(left) : Format::block_size;
  }
  /// The scale byte at a row of the scale buffer (the matrix row, unless grouped) and a block column; padding included.
  KOKKOS_FUNCTION std::uint8_t& scale(std::int64_t scale_row, std::int64_t b) const {
    return scales[tile_row(map.layout, scale_row) * scale_pitch + map.offset_in_tile_row(scale_row, b)];
  }
  KOKKOS_FUNCTION TensorScalePair pair() const {
    return Format::tensor_scale && tensor_scale != nullptr ? *tensor_scale : TensorScalePair{};
  }
};

}  // namespace microscale::Impl

#endif
