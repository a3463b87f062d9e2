#ifndef MICROSCALE_REFERENCE_QUANTIZE_HPP
#define MICROSCALE_REFERENCE_QUANTIZE_HPP

#include <Kokkos_Core.hpp>
#include <Microscale_Concepts.hpp>
#include <Microscale_Interface.hpp>
#include <Microscale_MatrixHandle.hpp>
#include <Microscale_Reference_QuantizeTiles.hpp>

#include <cstdint>
#include <string>

// The portable quantization kernels. A source is any trivially copyable functor with rows, cols, rows_fastest() and
// operator()(row, col) -> float; what it reads (a View, another quantized matrix) is its own business. It may have
// load(row, first column, count, values) where neighbours are cheaper together.
namespace microscale::Impl {

template <class Exec>
using IndexRange = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;

/// A strided View as a source.
template <class T>
struct ViewSource {
  StridedMatrix<const T> matrix;
  std::int64_t rows = matrix.rows, cols = matrix.cols;

  explicit ViewSource(const StridedMatrix<const T>& m) : matrix(m) {}
  KOKKOS_FUNCTION float operator()(std::int64_t r, std::int64_t c) const { return static_cast<float>(matrix(r, c)); }
  KOKKOS_FUNCTION void load(std::int64_t r, std::int64_t begin, int count, float* values) const {
    const T* from = &matrix(r, begin);
    if (matrix.col_stride == 1)  // a constant stride is what compilers vectorize
      for (int i = 0; i < count; ++i) values[i] = static_cast<float>(from[i]);
    else
      for (int i = 0; i < count; ++i) values[i] = static_cast<float>(from[i * matrix.col_stride]);
  }
  /// Neighbouring rows are nearer in memory than neighbouring columns.
  bool rows_fastest() const { return matrix.row_stride < matrix.col_stride; }
};

/// `count` values of row r of a source from column `begin` on.
template <class Source>
KOKKOS_INLINE_FUNCTION void load_values(const Source& source, std::int64_t r, std::int64_t begin, int count,
                                        float* values) {
  if constexpr (requires { source.load(r, begin, count, values); })
    source.load(r, begin, count, values);
  else
    for (int i = 0; i < count; ++i) values[i] = source(r, begin + i);
}

/// Largest finite magnitude of a source, as a running maximum in *amax (0 or more beforehand).
template <class Source>
struct AmaxKernel {
  static constexpr int chunk = 512;  // elements of a row that one index covers
  static constexpr int piece = 32;   // of them, loaded at a time

  Source source;
  float* amax;
  bool rows_fastest;
  std::int64_t lines, length, chunks;

  AmaxKernel(const Source& s, float* result)
      : source(s),
        amax(result),
        rows_fastest(s.rows_fastest()),
        lines(rows_fastest ? s.cols : s.rows),
        length(rows_fastest ? s.rows : s.cols),
        chunks((length + chunk - 1) / chunk) {}

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t line = index / chunks, begin = index % chunks * chunk;
    const std::int64_t end = begin + chunk < length ? begin + chunk : length;
    std::int32_t largest = 0;
    for (std::int64_t first = begin; first < end; first += piece) {
      float values[piece];
      const int count = first + piece < end ? piece : static_cast<int>(end - first);
      if (rows_fastest)
        for (int i = 0; i < count; ++i) values[i] = source(first + i, line);
      else
        load_values(source, line, first, count, values);
      for (int i = 0; i < count; ++i) {
        const auto mag = static_cast<std::int32_t>(Bits::from_float(values[i]) & Bits::magnitude);
        const std::int32_t finite = mag < static_cast<std::int32_t>(Bits::infinity) ? mag : 0;
        largest = finite > largest ? finite : largest;
      }
    }
    raise_maximum(amax, Bits::to_float(static_cast<std::uint32_t>(largest)));
  }
};

/// Runs f once on the instance.
template <class Exec, class F>
void run_once(const std::string& label, const Exec& exec, const F& f) {
  Kokkos::parallel_for(
      label, IndexRange<Exec>(exec, 0, 1), KOKKOS_LAMBDA(std::int64_t) { f(); });
}

template <class Format>
struct ResolveTensorScale {
  TensorScalePair* pair;
  QuantizeData options;

  KOKKOS_FUNCTION void operator()() const {
    if (options.source == TensorScaleSource::dynamic)
      *pair = pair_from_amax<Format>(pair->encode);
    else if (options.device == nullptr)
      *pair = options.tensor_scale;
    else
      *pair = options.device_is_encode ? pair_from_encode(*options.device) : pair_from_decode(*options.device);
  }
};

struct ClearAmax {
  TensorScalePair* pair;
  KOKKOS_FUNCTION void operator()() const { pair->encode = 0.0f; }
};

/// Brings *pair to what the options ask for. find_amax(p) launches the kernels that raise *p to the largest finite
/// magnitude; until the pair is resolved, its encode half serves as this running maximum.
template <class Format, class Exec, class FindAmax>
void resolve_tensor_scale(const std::string& label, const Exec& exec, TensorScalePair* pair,
                          const QuantizeData& options, const FindAmax& find_amax) {
  if constexpr (Format::tensor_scale) {
    if (options.source == TensorScaleSource::stored || pair == nullptr) return;  // null: an empty matrix
    if (options.source == TensorScaleSource::dynamic) {
      run_once(label, exec, ClearAmax{pair});
      find_amax(&pair->encode);
    }
    run_once(label, exec, ResolveTensorScale<Format>{pair, options});
  }
}

/// How many neighbouring blocks a kernel quantizes at once: 32 elements, or one block.
template <class Format>
inline constexpr int blocks_at_once = Format::block_size < 32 ? 32 / Format::block_size : 1;

/// Quantizes blocks [first, first + blocks_at_once) of row r of a source, as far as they exist, into row r of the
/// destination and row `scale_row` of its scales; zeroes the scales of those that are padding.
template <class Format, class Source>
KOKKOS_FUNCTION void quantize_source_blocks(const Source& source, const MatrixHandle<Format>& destination,
                                            const BlockScaling& scaling, std::int64_t r, std::int64_t first,
                                            std::int64_t scale_row) {
  constexpr int size = Format::block_size, blocks = blocks_at_once<Format>;
  float values[blocks * size];
  std::uint8_t scales[blocks] = {};
  const std::int64_t begin = first * size;
  if (begin + blocks * size <= destination.cols) {
    load_values(source, r, begin, blocks * size, values);
    quantize_full_blocks<Format, blocks>(values, destination.block(r, first), scales, scaling);
  } else {
    for (int b = 0; b < blocks && begin + b * size < destination.cols; ++b) {
      const int count = destination.block_length(first + b);
      load_values(source, r, begin + b * size, count, values);
      scales[b] = quantize_block<Format>(values, count, destination.block(r, first + b), scaling);
    }
  }
  for (int b = 0; b < blocks && first + b < destination.map.padded_cols(); ++b)
    destination.scale(scale_row, first + b) = scales[b];
}

/// One index is blocks_at_once blocks of a row, padding included (its scales are 0 and it has no codes).
template <class Format, class Source>
struct QuantizeKernel {
  Source source;
  MatrixHandle<Format> destination;
  QuantizeData options;
  bool rows_fastest;
  std::int64_t padded_rows, units;

  QuantizeKernel(const Source& s, const MatrixHandle<Format>& d, const QuantizeData& o)
      : source(s),
        destination(d),
        options(o),
        rows_fastest(s.rows_fastest()),
        padded_rows(d.map.tile_rows() * scale_tile(d.map.layout).rows),
        units((d.map.padded_cols() + blocks_at_once<Format> - 1) / blocks_at_once<Format>) {}

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t r = rows_fastest ? index % padded_rows : index / units;
    const std::int64_t first = (rows_fastest ? index / padded_rows : index % units) * blocks_at_once<Format>;
    if (r < destination.rows)
      quantize_source_blocks<Format>(source, destination, {options.scale_rule, options.non_finite, destination.pair()},
                                     r, first, r);
    else
      for (std::int64_t b = first; b < first + blocks_at_once<Format> && b < destination.map.padded_cols(); ++b)
        destination.scale(r, b) = 0;
  }
};

/// Quantizes a source into a matrix of the same logical extents: tensor scale first, then all blocks.
template <class Format, class Exec, class Source>
void quantize_source(const std::string& label, const Exec& exec, const Source& source,
                     const MatrixHandle<Format>& destination, const QuantizeData& options) {
  resolve_tensor_scale<Format>(label, exec, destination.tensor_scale, options, [&](float* amax) {
    if constexpr (is_host<Exec>) {
      const AmaxKernel<Source> kernel(source, amax);
      Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, kernel.lines * kernel.chunks), kernel);
    } else {
      find_amax_by_tiles(label, exec, source, amax);
    }
  });
  if constexpr (is_host<Exec> || !fits_element_tiles<Format>) {
    const QuantizeKernel<Format, Source> kernel(source, destination, options);
    Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, kernel.padded_rows * kernel.units), kernel);
  } else {
    quantize_by_tiles<Format>(label, exec, source, destination, options);
  }
}

/// One index is one block of the source.
template <class Format, class T>
struct DequantizeKernel {
  MatrixHandle<Format> source;
  StridedMatrix<T> destination;
  bool rows_fastest;
  std::int64_t blocks;

  DequantizeKernel(const MatrixHandle<Format>& s, const StridedMatrix<T>& d)
      : source(s), destination(d), rows_fastest(d.row_stride < d.col_stride), blocks(s.map.cols) {}

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t r = rows_fastest ? index % source.rows : index / blocks;
    const std::int64_t b = rows_fastest ? index / source.rows : index % blocks;
    float values[Format::block_size];
    const int count = source.block_length(b);
    dequantize_block<Format>(source.block(r, b), count, source.scale(r, b), values, source.pair().decode);
    T* to = &destination(r, b * Format::block_size);
    if (destination.col_stride == 1)
      for (int i = 0; i < count; ++i) to[i] = static_cast<T>(values[i]);
    else
      for (int i = 0; i < count; ++i) to[i * destination.col_stride] = static_cast<T>(values[i]);
  }
};

/// Writes the values of a matrix to a destination of the same extents.
template <class Format, class Exec, class T>
void dequantize_matrix(const std::string& label, const Exec& exec, const MatrixHandle<Format>& source,
                       const StridedMatrix<T>& destination) {
  if constexpr (is_host<Exec> || !fits_element_tiles<Format>)
    Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, source.rows * source.map.cols),
                         DequantizeKernel(source, destination));
  else
    dequantize_by_tiles(label, exec, source, destination);
}

}  // namespace microscale::Impl

#endif
