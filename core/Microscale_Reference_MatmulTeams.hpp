#ifndef MICROSCALE_REFERENCE_MATMULTEAMS_HPP
#define MICROSCALE_REFERENCE_MATMULTEAMS_HPP

#include <Microscale_Reference_Epilogue.hpp>
#include <Microscale_Reference_ProductTeam.hpp>
#include <Microscale_Reference_QuantizeTiles.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

// Matmul by the teams of a device: one team is one tile of C. Its sums go through team scratch to threads that take units
// of C (an element or a block) with neighbours in memory beside each other, gates and quantized outputs included.
namespace microscale::Impl {

template <class Exec>
using MatmulTeamPolicy = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<256, 1>>;

template <class Exec>
MatmulTeamPolicy<Exec> matmul_teams(const Exec& exec, std::int64_t count, std::size_t scratch_bytes) {
  return MatmulTeamPolicy<Exec>(exec, static_cast<int>(count), team_threads<Exec>, 1)
      .set_scratch_size(scratch_level<Exec>, Kokkos::PerTeam(static_cast<int>(scratch_bytes)));
}

template <class T>
KOKKOS_FUNCTION bool has_fast_rows(const StridedMatrix<T>& c) {
  return c.row_stride < c.col_stride;
}
template <class F>
KOKKOS_FUNCTION bool has_fast_rows(const MatrixHandle<F>&) {
  return false;
}

/// How C is cut into tiles. Neighbours share rows of A.
template <class C, class Shape>
struct TeamGrid {
  static constexpr int unit_cols = OutputTraits<C>::unit_cols;
  /// A gate takes half of a tile's columns for each of its operands.
  static constexpr bool fits = Shape::cols / 2 % unit_cols == 0;

  struct Tile {
    std::int64_t matrix, row, unit;
  };

  std::int64_t batch, padded_rows, padded_units;
  int units;  ///< of a tile
  std::int64_t row_tiles, unit_tiles;

  TeamGrid(std::int64_t matrices, std::int64_t rows, std::int64_t all_units, Gate gate)
      : batch(matrices),
        padded_rows(rows),
        padded_units(all_units),
        units((gate == Gate::none ? Shape::cols : Shape::cols / 2) / unit_cols),
        row_tiles((rows + Shape::rows - 1) / Shape::rows),
        unit_tiles((all_units + units - 1) / units) {}

  std::int64_t count() const { return batch * row_tiles * unit_tiles; }
  KOKKOS_FUNCTION Tile operator[](std::int64_t index) const {
    return {index / unit_tiles / row_tiles, index / unit_tiles % row_tiles * Shape::rows, index % unit_tiles * units};
  }
};

/// Rows [first, last) of a tile of C, padding included, for one MatmulSlice. The shifts are what is added to a row to get
/// that of the scale buffers.
template <class Shape, class Team, class Slice, class Grid>
KOKKOS_INLINE_FUNCTION void multiply_tile(const Team& team, float* scratch, const Slice& slice, const Grid& grid,
                                          std::int64_t row, int first, int last, std::int64_t a_scale_shift,
                                          std::int64_t c_scale_shift, std::int64_t first_unit) {
  using Product = TeamProduct<decltype(slice.a), decltype(slice.b), Shape>;
  const auto& c = slice.c;
  const std::int64_t col = first_unit * Grid::unit_cols;
  const bool gated = slice.epilogue.data.gate != Gate::none;
  const bool halved = gated && slice.epilogue.data.gate_columns == GateColumns::halved;
  constexpr int half = Shape::cols / 2;
  // Column n of A B^T is in column n - base of the tile; halved ups follow in its second half.
  const std::int64_t base = gated && !halved ? 2 * col : col, end = gated && !halved ? 2 * c.cols : c.cols;
  const std::int64_t ups = halved ? c.cols : end, to_ups = half - c.cols;
  const auto column = [&](int j) -> std::int64_t {
    const std::int64_t n = base + (halved ? j % half : j);
    return n >= end ? -1 : halved && j >= half ? n + c.cols : n;
  };
  const int used = c.rows - row < last ? static_cast<int>(c.rows - row) : last;
  Product product;
  product.multiply(team, scratch, slice.a, row, first, used, a_scale_shift, slice.b, column);
  product.for_each_row_group(team, scratch, [&](int group_row, const float* sums) {
    const bool fast_rows = has_fast_rows(c);
    const int units = grid.units;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, Shape::group_rows * units), [&](int index) {
      const int i = fast_rows ? index % Shape::group_rows : index / units;
      const int r = group_row + i;
      const std::int64_t u = first_unit + (fast_rows ? index / Shape::group_rows : index % units);
      if (r < first || r >= last || row + r >= grid.padded_rows || u >= grid.padded_units) return;
      if (is_padding(c, row + r, u))
        clear_padding(c, row + r + c_scale_shift, u);
      else
        store_unit(c, slice.epilogue, slice.functor, slice.scaling, row + r, row + r + c_scale_shift, u,
                   [&](std::int64_t n) { return sums[i * Product::out_pitch + n - base + (n < ups ? 0 : to_ups)]; });
    });
  });
}

/// One team is one tile of C.
template <class Call, class Shape>
struct MatmulTeams {
  using Slice = decltype(std::declval<const Call&>().slice(0));
  using Product = TeamProduct<decltype(Slice::a), decltype(Slice::b), Shape>;
  using Grid = TeamGrid<decltype(Slice::c), Shape>;
  static constexpr std::size_t scratch_bytes = scratch_array_bytes(Product::scratch_values * sizeof(float));

  Call call;
  Grid grid;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto tile = grid[team.league_rank()];
    float* scratch = scratch_array<float>(team, Product::scratch_values);
    multiply_tile<Shape>(team, scratch, call.slice(tile.matrix), grid, tile.row, 0, Shape::rows, 0, 0, tile.unit);
  }
};

/// One team is one tile of C, which is cut into runs of rows of the same slot.
template <class Call, class Shape>
struct GroupedMatmulTeams {
  using Slice = typename Call::Slice;
  using Product = TeamProduct<decltype(Slice::a), decltype(Slice::b), Shape>;
  using Grid = TeamGrid<decltype(Slice::c), Shape>;
  using Row = decltype(std::declval<const Call&>().find(0));
  static constexpr std::size_t scratch_bytes =
      scratch_array_bytes(Product::scratch_values * sizeof(float)) + scratch_array_bytes(Shape::rows * sizeof(Row));

  Call call;
  Grid grid;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto tile = grid[team.league_rank()];
    float* scratch = scratch_array<float>(team, Product::scratch_values);
    Row* at = scratch_array<Row>(team, Shape::rows);
    const std::int64_t left = grid.padded_rows - tile.row;
    const int rows = left < Shape::rows ? static_cast<int>(left) : Shape::rows;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int i) { at[i] = call.find(tile.row + i); });
    team.team_barrier();
    for (int first = 0, last = 0; first < rows; first = last) {
      const Row run = at[first];
      for (last = first + 1; last < rows && run.expert >= 0 && at[last].slot == run.slot;) ++last;
      if (run.expert >= 0) {
        multiply_tile<Shape>(team, scratch, call.slice(run.expert), grid, tile.row, first, last,
                             run.a_scale_row - (tile.row + first), run.c_scale_row - (tile.row + first), tile.unit);
      } else {
        const std::int64_t units = grid.padded_units - tile.unit;
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, units < grid.units ? static_cast<int>(units) : grid.units),
                             [&](int u) { call.skip(tile.row + first, run.c_scale_row, tile.unit + u); });
      }
    }
  }
};

/// Runs the kernel Teams<call, shape> over C.
template <template <class, class> class Kernel, class Exec, class Call>
void run_by_teams(const std::string& label, const Exec& exec, const Call& call, std::int64_t batch,
                  std::int64_t padded_rows) {
  using Teams = Kernel<Call, TeamShapeOf<Exec>>;
  const Teams kernel{call, {batch, padded_rows, call.padded_units, call.epilogue.gate}};
  Kokkos::parallel_for(label, matmul_teams(exec, kernel.grid.count(), Teams::scratch_bytes), kernel);
}

}  // namespace microscale::Impl

#endif
