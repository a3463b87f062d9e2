#ifndef MICROSCALE_REFERENCE_GROUPEDQUANTIZE_HPP
#define MICROSCALE_REFERENCE_GROUPEDQUANTIZE_HPP

#include <Microscale_Reference_Quantize.hpp>
#include <Microscale_SlotTable.hpp>

#include <cstdint>
#include <string>

namespace microscale::Impl {

/// A source that is read row by row, whatever its layout.
template <class Source>
struct RowByRow : Source {
  bool rows_fastest() const { return false; }
};

/// AmaxKernel over the rows of slots that are not skipped.
template <class Source>
struct GroupedAmaxKernel {
  AmaxKernel<RowByRow<Source>> amax;
  SlotTable slots;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    if (slots.find(index / amax.chunks).expert >= 0) amax(index);
  }
};

/// One index is up to `chunk` blocks of a row, padding columns included.
template <class Format, class Source>
struct GroupedQuantizeKernel {
  static constexpr int chunk = 64;
  static_assert(chunk % blocks_at_once<Format> == 0);

  Source source;
  MatrixHandle<Format> destination;
  QuantizeData options;
  SlotTable slots;

  KOKKOS_FUNCTION std::int64_t chunks() const { return (destination.map.padded_cols() + chunk - 1) / chunk; }

  KOKKOS_FUNCTION TensorScalePair pair(std::int64_t expert) const {
    const VectorOperand& scales = options.expert_tensor_scale;
    return scales.data == nullptr ? destination.pair()
                                  : pair_from_decode(static_cast<const float*>(scales.data)[expert * scales.stride]);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t row = index / chunks(), begin = index % chunks() * chunk;
    const std::int64_t padded = destination.map.padded_cols();
    const std::int64_t end = begin + chunk < padded ? begin + chunk : padded;
    const SlotRow at = slots.find(row);
    if (at.expert < 0) {
      skip(row, at, begin, end);
      return;
    }
    const BlockScaling scaling{options.scale_rule, options.non_finite, pair(at.expert)};
    for (std::int64_t b = begin; b < end; b += blocks_at_once<Format>)
      quantize_source_blocks<Format>(source, destination, scaling, row, b, at.scale_row);
  }

  /// Zeroes what a row that is not quantized has among these blocks; if it is to stay untouched, only the padding.
  KOKKOS_FUNCTION void skip(std::int64_t row, const SlotRow& at, std::int64_t begin, std::int64_t end) const {
    const bool linear = destination.map.layout == ScaleLayout::linear;
    for (std::int64_t b = begin; b < end; ++b) {
      const bool padding = b >= destination.map.cols;
      if (!padding && slots.groups.skipped_rows == SkippedRows::untouched) continue;
      if (linear || at.slot >= 0) destination.scale(linear ? row : at.scale_row, b) = 0;
      if (padding) continue;
      std::uint8_t* bytes = destination.block(row, b);
      for (std::int64_t i = 0; i < packed_bytes<Format>(destination.block_length(b)); ++i) bytes[i] = 0;
    }
  }
};

/// One index is one row of a tiled scale buffer: zeroes it if it belongs to no row of the matrix.
template <class Format>
struct ClearScalePadding {
  MatrixHandle<Format> destination;
  SlotTable slots;

  KOKKOS_FUNCTION void operator()(std::int64_t scale_row) const {
    if (slots.row_of(scale_row) >= 0) return;
    // As destination.scale() does, without a division a byte.
    const ScaleTile tile = scale_tile(destination.map.layout);
    std::uint8_t* bytes = destination.scales + scale_row / tile.rows * destination.scale_pitch;
    const int r = static_cast<int>(scale_row % tile.rows);
    for (std::int64_t b = 0; b < destination.map.padded_cols(); b += tile.cols, bytes += tile.rows * tile.cols)
      for (int c = 0; c < tile.cols; ++c) bytes[offset_in_tile(destination.map.layout, r, c)] = 0;
  }
};

/// Quantizes the rows of a source slot by slot: tensor scale first, then all blocks, then the padding of the scales.
template <class Format, class Exec, class Source>
void grouped_quantize_source(const std::string& label, const Exec& exec, const Source& source,
                             const MatrixHandle<Format>& destination, const QuantizeData& options,
                             const SlotTable& slots) {
  resolve_tensor_scale<Format>(label, exec, destination.tensor_scale, options, [&](float* amax) {
    const GroupedAmaxKernel<Source> kernel{{RowByRow<Source>{source}, amax}, slots};
    Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, kernel.amax.lines * kernel.amax.chunks), kernel);
  });
  const GroupedQuantizeKernel<Format, Source> kernel{source, destination, options, slots};
  Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, destination.rows * kernel.chunks()), kernel);
  if (destination.map.layout != ScaleLayout::linear)
    Kokkos::parallel_for(label,
                         IndexRange<Exec>(exec, 0, destination.tile_rows * scale_tile(destination.map.layout).rows),
                         ClearScalePadding<Format>{destination, slots});
}

}  // namespace microscale::Impl

#endif
