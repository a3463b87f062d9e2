#ifndef MICROSCALE_BLOCKSCALEDMATRIX_HPP
#define MICROSCALE_BLOCKSCALEDMATRIX_HPP

#include <Microscale_Concepts.hpp>
#include <Microscale_Error.hpp>
#include <Microscale_MatrixHandle.hpp>
#include <Microscale_ScaleLayout.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace microscale {

template <class Format, class MemorySpace>
class BatchedBlockScaledMatrix;

/// A quantized matrix: packed codes, block scales in a layout, and (for formats that have one) the tensor-scale pair.
///
/// rows() x cols() counts elements; blocks run along a row. Copies share the memory, as Views do. Constructors allocate
/// and fill with zeros on the default instance (and fence); everything else here is host-side bookkeeping. Distinct
/// objects may be used by several threads at once; const members of one object too.
template <class Format, class MemorySpace>
class BlockScaledMatrix {
  static_assert(
      BlockFormat<Format>,
      "microscale::BlockScaledMatrix<Format, MemorySpace>: the first argument must be a block format: a struct "
      "with element, scale, block_size, tensor_scale, packing and name (see Microscale_BlockFormat.hpp)");
  static_assert(
      Kokkos::is_memory_space_v<MemorySpace>,
      "microscale::BlockScaledMatrix<Format, MemorySpace>: the second argument must be a Kokkos memory space");

 public:
  using format = Format;
  using memory_space = MemorySpace;
  /// [rows, packed_bytes<Format>(cols)], columns contiguous, any row pitch.
  using data_type = Kokkos::View<std::uint8_t**, Kokkos::LayoutStride, MemorySpace>;
  /// [rows of scale tiles, bytes of a row of tiles], columns contiguous, any pitch. Linear layout: [rows, blocks].
  using scales_type = Kokkos::View<std::uint8_t**, Kokkos::LayoutStride, MemorySpace>;
  /// The pair on the memory space; empty (null) for formats without a tensor scale.
  using tensor_scale_type = Kokkos::View<TensorScalePair, MemorySpace>;

  /// An empty 0 x 0 matrix without memory.
  BlockScaledMatrix() = default;

  /// Allocates zeros: every value decodes to 0 (E8M0 scales to 2^-127), the tensor scale is 1.
  BlockScaledMatrix(const std::string& label, std::int64_t rows, std::int64_t cols,
                    ScaleLayout layout = ScaleLayout::linear)
      : BlockScaledMatrix(label, rows, cols, layout, checked_map(rows, cols, layout).tile_rows(), false) {}

  /// Allocates activations of a grouped operation: `rows` rows in at most `groups` slots. In tiled scale layouts each
  /// slot starts on a fresh row of tiles, so the scales have grouped_tile_rows_bound(layout, rows, groups) rows of
  /// tiles.
  static BlockScaledMatrix grouped(const std::string& label, std::int64_t rows, std::int64_t cols, std::int64_t groups,
                                   ScaleLayout layout = ScaleLayout::linear) {
    Impl::expects(
        groups >= 0, "BlockScaledMatrix::grouped", "groups", [&] { return "is " + std::to_string(groups); },
        [] { return "0 or more"; });
    checked_map(rows, cols, layout);
    return BlockScaledMatrix(label, rows, cols, layout, grouped_tile_rows_bound(layout, rows, groups),
                             layout != ScaleLayout::linear);
  }

  /// Allocates a matrix of the extents, scale layout and groups of another one, perhaps of another memory space.
  template <class OtherSpace>
  static BlockScaledMatrix like(const std::string& label, const BlockScaledMatrix<Format, OtherSpace>& other) {
    return BlockScaledMatrix(label, other.rows(), other.cols(), other.scale_layout(),
                             static_cast<std::int64_t>(other.scales().extent(0)), other.has_grouped_scales());
  }

  /// Allocates `batch` equal matrices (the weights of all experts, say).
  static BatchedBlockScaledMatrix<Format, MemorySpace> batched(const std::string& label, std::int64_t batch,
                                                               std::int64_t rows, std::int64_t cols,
                                                               ScaleLayout layout = ScaleLayout::linear) {
    return {label, batch, rows, cols, layout};
  }

  /// Wraps memory that exists, without copying. data: rank 2 of bytes, extents at least [rows, packed bytes of cols].
  /// scales: rank 2, extents at least [rows of tiles, bytes of a row of tiles] of the layout. Both contiguous along
  /// columns. tensor_scale: rank 0, absent exactly for formats without one (an absent one for NVFP4 throws: allocate
  /// one with (1, 1) to say that there is none). Throws std::invalid_argument naming what does not fit. Bits past
  /// `cols` must be zero, and padding scales too; validate() checks that.
  template <class DataView, class ScalesView>
  static BlockScaledMatrix wrap(const DataView& data, const ScalesView& scales, const tensor_scale_type& tensor_scale,
                                std::int64_t rows, std::int64_t cols, ScaleLayout layout = ScaleLayout::linear,
                                bool grouped = false) {
    constexpr const char* where = "BlockScaledMatrix::wrap";
    const ScaleMap map = checked_map(rows, cols, layout);
    BlockScaledMatrix result;
    result.m_rows = rows;
    result.m_cols = cols;
    result.m_layout = layout;
    result.m_grouped = grouped && layout != ScaleLayout::linear;
    const std::int64_t tile_rows = result.m_grouped ? static_cast<std::int64_t>(scales.extent(0)) : map.tile_rows();
    result.m_data = checked_bytes(where, "data", data, rows, packed_bytes<Format>(cols));
    result.m_scales = checked_bytes(where, "scales", scales, tile_rows, map.tile_row_bytes());
    Impl::expects((tensor_scale.data() != nullptr) == Format::tensor_scale, where, "tensor_scale",
                  Format::tensor_scale ? "is absent" : "is present",
                  Format::tensor_scale ? "a View of one TensorScalePair" : "none: this format has no tensor scale");
    result.m_tensor_scale = tensor_scale;
    return result;
  }

  /// wrap() for formats without a tensor scale.
  template <class DataView, class ScalesView>
  static BlockScaledMatrix wrap(const DataView& data, const ScalesView& scales, std::int64_t rows, std::int64_t cols,
                                ScaleLayout layout = ScaleLayout::linear, bool grouped = false) {
    return wrap(data, scales, tensor_scale_type(), rows, cols, layout, grouped);
  }

  std::int64_t rows() const { return m_rows; }
  std::int64_t cols() const { return m_cols; }
  /// Blocks in a row.
  std::int64_t blocks() const { return block_count<Format>(m_cols); }
  const data_type& data() const { return m_data; }
  const scales_type& scales() const { return m_scales; }
  const tensor_scale_type& tensor_scale() const { return m_tensor_scale; }
  ScaleLayout scale_layout() const { return m_layout; }
  /// Whether the scales are those of a grouped operation (rows of tiles are found through a_scale_offsets).
  bool has_grouped_scales() const { return m_grouped; }
  /// The index map of scales(), for a matrix that is not grouped.
  ScaleMap scale_map() const { return {m_layout, m_rows, blocks()}; }

  /// Rows [begin, end) as a matrix that shares this one's memory and tensor scale. In a tiled scale layout `begin` is a
  /// multiple of the tile's rows (128 for tcgen), and so is `end` unless it is rows(); otherwise std::invalid_argument.
  BlockScaledMatrix row_range(std::int64_t begin, std::int64_t end) const {
    constexpr const char* where = "BlockScaledMatrix::row_range";
    const auto range = [&] { return "is [" + std::to_string(begin) + ", " + std::to_string(end) + ")"; };
    Impl::expects(0 <= begin && begin <= end && end <= m_rows, where, "range", range,
                  [&] { return "0 <= begin <= end <= " + std::to_string(m_rows); });
    Impl::expects(!m_grouped, where, "matrix", "has grouped scales", "a matrix that is not grouped");
    const std::int64_t tile = scale_tile(m_layout).rows;
    Impl::expects(begin % tile == 0 && (end % tile == 0 || end == m_rows), where, "range", range, [&] {
      return "bounds at multiples of " + std::to_string(tile) + " rows in layout " + name(m_layout);
    });
    BlockScaledMatrix result = *this;
    result.m_rows = end - begin;
    result.m_data = Kokkos::subview(m_data, Kokkos::pair(begin, end), Kokkos::ALL);
    result.m_scales = Kokkos::subview(m_scales, Kokkos::pair(begin / tile, (end + tile - 1) / tile), Kokkos::ALL);
    return result;
  }

  /// The matrix as bytes for files and networks, the same on every machine: rows of packed codes without gaps, then
  /// scales in the linear layout, then (if the format has one) the decode and the encode scale as little-endian
  /// binary32. from_bytes() is the inverse. Synchronizes and allocates. Defined in Microscale_MatrixCopy.hpp.
  std::vector<std::uint8_t> bytes() const;

  /// What kernels see.
  Impl::MatrixHandle<Format> handle() const {
    return {m_data.data(),
            static_cast<std::int64_t>(m_data.stride(0)),
            m_scales.data(),
            static_cast<std::int64_t>(m_scales.stride(0)),
            m_tensor_scale.data(),
            m_rows,
            m_cols,
            scale_map(),
            static_cast<std::int64_t>(m_scales.extent(0))};
  }

 private:
  template <class, class>
  friend class BatchedBlockScaledMatrix;

  BlockScaledMatrix(const std::string& label, std::int64_t rows, std::int64_t cols, ScaleLayout layout,
                    std::int64_t tile_rows, bool grouped)
      : m_rows(rows), m_cols(cols), m_layout(layout), m_grouped(grouped) {
    using Bytes = Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, MemorySpace>;
    m_data = Bytes(label + "::data", rows, packed_bytes<Format>(cols));
    m_scales = Bytes(label + "::scales", tile_rows, scale_map().tile_row_bytes());
    if constexpr (Format::tensor_scale) m_tensor_scale = tensor_scale_type(label + "::tensor_scale");
  }

  static ScaleMap checked_map(std::int64_t rows, std::int64_t cols, ScaleLayout layout) {
    Impl::expects(
        rows >= 0 && cols >= 0, "BlockScaledMatrix", "extents", [&] { return "are " + Impl::extents(rows, cols); },
        [] { return "0 or more"; });
    // Nothing below may overflow, so sizes beyond what a machine can address are refused first.
    constexpr std::int64_t most = std::int64_t{1} << 62;
    const std::int64_t row_bytes = cols > most / 16 ? most : packed_bytes<Format>(cols) + 2 * block_count<Format>(cols);
    Impl::expects(
        row_bytes < most && rows <= most / (row_bytes + 128), "BlockScaledMatrix", "extents",
        [&] { return "are " + Impl::extents(rows, cols); }, [] { return "a matrix of less than 2^62 bytes"; });
    return {layout, rows, block_count<Format>(cols)};
  }

  template <class V>
  static data_type checked_bytes(const char* where, const char* argument, const V& view, std::int64_t rows,
                                 std::int64_t cols) {
    static_assert(Kokkos::is_view_v<V> && V::rank() == 2 && std::is_same_v<typename V::value_type, std::uint8_t>,
                  "microscale::BlockScaledMatrix::wrap: data and scales must be rank-2 Views of std::uint8_t");
    static_assert(std::is_same_v<typename V::memory_space, MemorySpace>,
                  "microscale::BlockScaledMatrix::wrap: the Views must be in the matrix's memory space");
    const auto e0 = static_cast<std::int64_t>(view.extent(0)), e1 = static_cast<std::int64_t>(view.extent(1));
    Impl::expects(
        e0 >= rows && e1 >= cols, where, argument, [&] { return "has extents " + Impl::extents(e0, e1); },
        [&] { return "at least " + Impl::extents(rows, cols); });
    Impl::expects(
        e1 < 2 || view.stride(1) == 1, where, argument,
        [&] { return "has column stride " + std::to_string(view.stride(1)); }, [] { return "contiguous columns"; });
    Impl::expects(
        e0 < 2 || static_cast<std::int64_t>(view.stride(0)) >= cols, where, argument,
        [&] { return "has row stride " + std::to_string(view.stride(0)); },
        [&] { return "rows that do not overlap: at least " + std::to_string(cols); });
    return Kokkos::subview(data_type(view), Kokkos::pair(std::int64_t{0}, rows), Kokkos::pair(std::int64_t{0}, cols));
  }

  std::int64_t m_rows = 0;
  std::int64_t m_cols = 0;
  ScaleLayout m_layout = ScaleLayout::linear;
  bool m_grouped = false;
  data_type m_data;
  scales_type m_scales;
  tensor_scale_type m_tensor_scale;
};

template <class T>
struct is_block_scaled_matrix : std::false_type {};
template <class F, class S>
struct is_block_scaled_matrix<BlockScaledMatrix<F, S>> : std::true_type {};
template <class T>
inline constexpr bool is_block_scaled_matrix_v = is_block_scaled_matrix<T>::value;

}  // namespace microscale

#endif
