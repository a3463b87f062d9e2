#ifndef MICROSCALE_SCALEMATRIX_HPP
#define MICROSCALE_SCALEMATRIX_HPP

#include <Microscale_Concepts.hpp>
#include <Microscale_Error.hpp>
#include <Microscale_ScaleLayout.hpp>

#include <cstdint>
#include <string>

namespace microscale {

/// Scale bytes of a matrix together with their layout, which is part of the object so that they cannot be taken for
/// another one (or be interleaved twice). rows() matrix rows x blocks() block columns; copies share the memory.
template <class MemorySpace>
class ScaleMatrix {
 public:
  using memory_space = MemorySpace;
  /// [rows of tiles, bytes of a row of tiles], columns contiguous, any pitch.
  using view_type = Kokkos::View<std::uint8_t**, Kokkos::LayoutStride, MemorySpace>;

  /// Allocates zeros (and fences, as View allocation does).
  ScaleMatrix(const std::string& label, std::int64_t rows, std::int64_t blocks, ScaleLayout layout)
      : m_map{layout, rows, blocks} {
    expects_extents();
    m_view = Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, MemorySpace>(label, m_map.tile_rows(),
                                                                            m_map.tile_row_bytes());
  }

  /// Wraps scales that exist. Throws std::invalid_argument if the View is too small or its columns are not contiguous.
  ScaleMatrix(const view_type& view, std::int64_t rows, std::int64_t blocks, ScaleLayout layout)
      : m_map{layout, rows, blocks}, m_view(view) {
    expects_extents();
    const auto e0 = static_cast<std::int64_t>(view.extent(0)), e1 = static_cast<std::int64_t>(view.extent(1));
    Impl::expects(
        e0 >= m_map.tile_rows() && e1 >= m_map.tile_row_bytes(), "ScaleMatrix", "view",
        [&] { return "has extents " + Impl::extents(e0, e1); },
        [&] {
          return "at least " + Impl::extents(m_map.tile_rows(), m_map.tile_row_bytes()) + " bytes for " +
                 Impl::extents(rows, blocks) + " scales in layout " + name(layout);
        });
    Impl::expects(e1 < 2 || view.stride(1) == 1, "ScaleMatrix", "view", "has strided columns", "contiguous columns");
    Impl::expects(
        m_map.tile_rows() < 2 || static_cast<std::int64_t>(view.stride(0)) >= m_map.tile_row_bytes(), "ScaleMatrix",
        "view", [&] { return "has row stride " + std::to_string(view.stride(0)); },
        [&] { return "rows that do not overlap: at least " + std::to_string(m_map.tile_row_bytes()); });
  }

  std::int64_t rows() const { return m_map.rows; }
  std::int64_t blocks() const { return m_map.cols; }
  ScaleLayout layout() const { return m_map.layout; }
  const ScaleMap& map() const { return m_map; }
  const view_type& view() const { return m_view; }

 private:
  void expects_extents() const {
    Impl::expects(
        rows() >= 0 && blocks() >= 0, "ScaleMatrix", "extents",
        [&] { return "are " + Impl::extents(rows(), blocks()); }, [] { return "0 or more"; });
  }

  ScaleMap m_map;
  view_type m_view;
};

}  // namespace microscale

#endif
