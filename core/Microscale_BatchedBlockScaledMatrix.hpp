#ifndef MICROSCALE_BATCHEDBLOCKSCALEDMATRIX_HPP
#define MICROSCALE_BATCHEDBLOCKSCALEDMATRIX_HPP

#include <Microscale_BlockScaledMatrix.hpp>

#include <cstdint>
#include <string>

namespace microscale {

/// `batch` equal matrices in one allocation, each with its own tensor scale: the weights of all experts. In tiled scale
/// layouts every matrix is padded on its own (the 6-D form of tcgen). Copies share the memory.
template <class Format, class MemorySpace>
class BatchedBlockScaledMatrix {
 public:
  using format = Format;
  using memory_space = MemorySpace;
  using matrix_type = BlockScaledMatrix<Format, MemorySpace>;
  /// [batch, rows, packed_bytes<Format>(cols)]
  using data_type = Kokkos::View<std::uint8_t***, Kokkos::LayoutStride, MemorySpace>;
  /// [batch, rows of scale tiles, bytes of a row of tiles]
  using scales_type = Kokkos::View<std::uint8_t***, Kokkos::LayoutStride, MemorySpace>;
  /// [batch], or empty for formats without a tensor scale
  using tensor_scale_type = Kokkos::View<TensorScalePair*, MemorySpace>;

  BatchedBlockScaledMatrix() = default;

  /// Allocates zeros, as BlockScaledMatrix does.
  BatchedBlockScaledMatrix(const std::string& label, std::int64_t batch, std::int64_t rows, std::int64_t cols,
                           ScaleLayout layout = ScaleLayout::linear)
      : m_rows(rows), m_cols(cols), m_layout(layout) {
    Impl::expects(
        batch >= 0, "BatchedBlockScaledMatrix", "batch", [&] { return "is " + std::to_string(batch); },
        [] { return "0 or more"; });
    using Bytes = Kokkos::View<std::uint8_t***, Kokkos::LayoutRight, MemorySpace>;
    const ScaleMap map = matrix_type::checked_map(rows, cols, layout);
    m_data = Bytes(label + "::data", batch, rows, packed_bytes<Format>(cols));
    m_scales = Bytes(label + "::scales", batch, map.tile_rows(), map.tile_row_bytes());
    if constexpr (Format::tensor_scale) m_tensor_scale = tensor_scale_type(label + "::tensor_scale", batch);
  }

  /// Wraps memory that exists: rank-3 Views with the extents given above (or larger), columns contiguous; tensor_scale
  /// of extent `batch`, or empty for formats without one. Throws std::invalid_argument naming what does not fit.
  template <class DataView, class ScalesView>
  static BatchedBlockScaledMatrix wrap(const DataView& data, const ScalesView& scales,
                                       const tensor_scale_type& tensor_scale, std::int64_t rows, std::int64_t cols,
                                       ScaleLayout layout = ScaleLayout::linear) {
    static_assert(Kokkos::is_view_v<DataView> && Kokkos::is_view_v<ScalesView> && DataView::rank() == 3 &&
                      ScalesView::rank() == 3,
                  "microscale::BatchedBlockScaledMatrix::wrap: data and scales must be rank-3 Views of std::uint8_t");
    constexpr const char* where = "BatchedBlockScaledMatrix::wrap";
    const ScaleMap map = matrix_type::checked_map(rows, cols, layout);
    const auto batch = static_cast<std::int64_t>(data.extent(0));
    Impl::expects(
        static_cast<std::int64_t>(scales.extent(0)) == batch, where, "scales",
        [&] { return "has batch " + std::to_string(scales.extent(0)); }, [&] { return std::to_string(batch); });
    Impl::expects(
        static_cast<std::int64_t>(tensor_scale.extent(0)) == (Format::tensor_scale ? batch : 0), where, "tensor_scale",
        [&] { return "has extent " + std::to_string(tensor_scale.extent(0)); },
        [&] { return std::to_string(Format::tensor_scale ? batch : 0); });
    for (std::int64_t e = 0; e < (batch < 1 ? batch : 1); ++e) {
      matrix_type::checked_bytes(where, "data", Kokkos::subview(data, e, Kokkos::ALL, Kokkos::ALL), rows,
                                 packed_bytes<Format>(cols));
      matrix_type::checked_bytes(where, "scales", Kokkos::subview(scales, e, Kokkos::ALL, Kokkos::ALL), map.tile_rows(),
                                 map.tile_row_bytes());
    }
    const auto expects_apart = [&](const char* argument, const auto& view, std::int64_t bytes) {
      Impl::expects(
          batch < 2 || bytes == 0 || static_cast<std::int64_t>(view.stride(0)) >= bytes, where, argument,
          [&] { return "has batch stride " + std::to_string(view.stride(0)); },
          [&] { return "matrices that do not overlap: at least " + std::to_string(bytes); });
    };
    const auto span = [](const auto& view, std::int64_t tile_rows, std::int64_t row_bytes) {
      return tile_rows == 0 ? 0 : (tile_rows - 1) * static_cast<std::int64_t>(view.stride(1)) + row_bytes;
    };
    expects_apart("data", data, span(data, rows, packed_bytes<Format>(cols)));
    expects_apart("scales", scales, span(scales, map.tile_rows(), map.tile_row_bytes()));
    const auto upto = [](std::int64_t n) { return Kokkos::pair(std::int64_t{0}, n); };
    BatchedBlockScaledMatrix result;
    result.m_rows = rows;
    result.m_cols = cols;
    result.m_layout = layout;
    result.m_data = Kokkos::subview(data_type(data), Kokkos::ALL, upto(rows), upto(packed_bytes<Format>(cols)));
    result.m_scales =
        Kokkos::subview(scales_type(scales), Kokkos::ALL, upto(map.tile_rows()), upto(map.tile_row_bytes()));
    result.m_tensor_scale = tensor_scale;
    return result;
  }

  std::int64_t batch() const { return static_cast<std::int64_t>(m_data.extent(0)); }
  std::int64_t rows() const { return m_rows; }
  std::int64_t cols() const { return m_cols; }
  std::int64_t blocks() const { return block_count<Format>(m_cols); }
  const data_type& data() const { return m_data; }
  const scales_type& scales() const { return m_scales; }
  const tensor_scale_type& tensor_scale() const { return m_tensor_scale; }
  ScaleLayout scale_layout() const { return m_layout; }
  ScaleMap scale_map() const { return {m_layout, m_rows, blocks()}; }

  /// Matrix e as a BlockScaledMatrix that shares the memory. Throws std::invalid_argument if e is out of range.
  matrix_type matrix(std::int64_t e) const {
    Impl::expects(
        0 <= e && e < batch(), "BatchedBlockScaledMatrix::matrix", "index", [&] { return "is " + std::to_string(e); },
        [&] { return "0 to " + std::to_string(batch() - 1); });
    matrix_type result;
    result.m_rows = m_rows;
    result.m_cols = m_cols;
    result.m_layout = m_layout;
    result.m_data = Kokkos::subview(m_data, e, Kokkos::ALL, Kokkos::ALL);
    result.m_scales = Kokkos::subview(m_scales, e, Kokkos::ALL, Kokkos::ALL);
    if constexpr (Format::tensor_scale) result.m_tensor_scale = Kokkos::subview(m_tensor_scale, e);
    return result;
  }

  /// What kernels see of matrix 0; matrix e lies data_stride() and scale_stride() bytes and one pair further.
  Impl::MatrixHandle<Format> handle() const {
    return {m_data.data(),
            static_cast<std::int64_t>(m_data.stride(1)),
            m_scales.data(),
            static_cast<std::int64_t>(m_scales.stride(1)),
            m_tensor_scale.data(),
            m_rows,
            m_cols,
            scale_map(),
            static_cast<std::int64_t>(m_scales.extent(1))};
  }
  std::int64_t data_stride() const { return static_cast<std::int64_t>(m_data.stride(0)); }
  std::int64_t scale_stride() const { return static_cast<std::int64_t>(m_scales.stride(0)); }

 private:
  std::int64_t m_rows = 0;
  std::int64_t m_cols = 0;
  ScaleLayout m_layout = ScaleLayout::linear;
  data_type m_data;
  scales_type m_scales;
  tensor_scale_type m_tensor_scale;
};

template <class T>
struct is_batched_block_scaled_matrix : std::false_type {};
template <class F, class S>
struct is_batched_block_scaled_matrix<BatchedBlockScaledMatrix<F, S>> : std::true_type {};
template <class T>
inline constexpr bool is_batched_block_scaled_matrix_v = is_batched_block_scaled_matrix<T>::value;

}  // namespace microscale

#endif
