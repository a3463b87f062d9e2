#ifndef MICROSCALE_REFERENCE_GROUPEDMATMUL_HPP
#define MICROSCALE_REFERENCE_GROUPEDMATMUL_HPP

#include <Microscale_Reference_Matmul.hpp>
#include <Microscale_SlotTable.hpp>

#include <cstdint>
#include <string>

// The portable grouped matmul. Each row finds its slot by itself (SlotTable says what every content of the groups
// means), and rows that follow one another in a slot are multiplied together.
namespace microscale::Impl {

/// Where a row of A and C lies. slot is -1 for rows in none, expert -1 for skipped ones; c_scale_row is -1 if the row
/// has no place among C's scales.
struct GroupedRow {
  std::int64_t slot, expert, a_scale_row, c_scale_row;
};

template <class A, class B, class C, class Functor>
struct GroupedMatmulKernel {
  using Slice = MatmulSlice<A, B, C, Functor>;

  A a;
  OperandBatch<B> b;
  C c;
  SlotTable a_slots, c_slots;  ///< the same groups with the scales of A and of C
  EpilogueData epilogue;
  Functor functor;
  QuantizeData quantize;
  std::int64_t padded_units = OutputTraits<C>::padded_units(c);

  KOKKOS_FUNCTION GroupedRow find(std::int64_t row) const {
    const bool linear = c_slots.layout == ScaleLayout::linear;
    const SlotRow in_a = a_slots.find(row), in_c = linear ? in_a : c_slots.find(row);
    const std::int64_t c_scale_row = linear ? row : (in_c.slot >= 0 ? in_c.scale_row : -1);
    if (in_a.slot < 0 || in_a.slot != in_c.slot) return {-1, -1, 0, c_scale_row};
    return {in_a.slot, in_a.expert, in_a.scale_row, c_scale_row};
  }
  KOKKOS_FUNCTION Slice slice(std::int64_t expert) const {
    return Slice(a, b[expert], c, epilogue, functor, quantize, expert);
  }
  /// A unit of a row that is not multiplied: zeroed, or left as it is unless it is padding.
  KOKKOS_FUNCTION void skip(std::int64_t row, std::int64_t c_scale_row, std::int64_t unit) const {
    if (a_slots.groups.skipped_rows == SkippedRows::zero || is_padding(c, row, unit))
      clear_unit(c, row, c_scale_row, unit);
  }
};

/// One index is one unit of C.
template <class Kernel>
struct GroupedMatmulUnits {
  Kernel call;
  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t unit = index % call.padded_units, row = index / call.padded_units;
    const GroupedRow at = call.find(row);
    if (at.expert >= 0)
      call.slice(at.expert).unit(row, at.a_scale_row, at.c_scale_row, unit);
    else
      call.skip(row, at.c_scale_row, unit);
  }
};

/// One index is one tile of C, which is cut into runs of rows of the same slot.
template <class Kernel>
struct GroupedMatmulTiles {
  Kernel call;
  TileGrid grid;
  void operator()(std::int64_t index) const {
    const TileGrid::Tile tile = grid[index];
    GroupedRow next = call.find(tile.row);
    for (int i = 0; i < tile.rows;) {
      const GroupedRow run = next;
      const std::int64_t row = tile.row + i;
      int rows = 0;
      do {
        ++rows;
        if (i + rows < tile.rows) next = call.find(row + rows);
      } while (i + rows < tile.rows && run.expert >= 0 && next.slot == run.slot);
      if (run.expert >= 0)
        call.slice(run.expert).tile(row, rows, run.a_scale_row - row, run.c_scale_row - row, tile.unit, tile.units);
      else
        for (std::int64_t u = tile.unit; u < tile.unit + tile.units; ++u) call.skip(row, run.c_scale_row, u);
      i += rows;
    }
  }
};

/// Zeros the scales of C that belong to no row. One index is a row of the scale buffer.
template <class F>
struct ClearUnownedScales {
  MatrixHandle<F> c;
  SlotTable slots;
  KOKKOS_FUNCTION void operator()(std::int64_t scale_row) const {
    if (slots.row_of(scale_row) >= 0) return;
    const std::int64_t blocks = c.map.padded_cols();
    for (std::int64_t b = 0; b < blocks; ++b) c.scale(scale_row, b) = 0;
  }
};

template <class Exec, class T>
void clear_unowned_scales(const std::string&, const Exec&, const StridedMatrix<T>&, const SlotTable&) {}
template <class Exec, class F>
void clear_unowned_scales(const std::string& label, const Exec& exec, const MatrixHandle<F>& c,
                          const SlotTable& slots) {
  if (slots.layout == ScaleLayout::linear) return;
  Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, c.tile_rows * scale_tile(slots.layout).rows),
                       ClearUnownedScales<F>{c, slots});
}

template <class Exec, class A, class B, class C, class Functor>
void run_grouped_matmul(const std::string& label, const Exec& exec, const GroupedMatmulKernel<A, B, C, Functor>& call) {
  using Kernel = GroupedMatmulKernel<A, B, C, Functor>;
  resolve_output_scale(label, exec, OperandBatch<C>{call.c}, 1, call.quantize);
  clear_unowned_scales(label, exec, call.c, call.c_slots);
  if constexpr (is_host<Exec>) {
    const auto grid = TileGrid::make<A, B, C>(1, call.c.rows, call.padded_units, exec.concurrency());
    Kokkos::parallel_for(label, TileRange<Exec>(exec, 0, grid.size(), Kokkos::ChunkSize(1)),
                         GroupedMatmulTiles<Kernel>{call, grid});
  } else if constexpr (TeamGrid<C, TeamShapeOf<Exec>>::fits) {
    run_by_teams<GroupedMatmulTeams>(label, exec, call, 1, call.c.rows);
  } else {
    Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, call.c.rows * call.padded_units),
                         GroupedMatmulUnits<Kernel>{call});
  }
}

/// A user's functor as a pass of its own over the rows that are not skipped.
template <class C, class Functor>
struct GroupedFunctorPass {
  FunctorPass<C, Functor, false> pass;
  SlotTable slots;
  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    if (slots.find(row).expert < 0) return;
    const std::int64_t cols = pass.c.first.cols;
    for (std::int64_t i = row * cols; i < (row + 1) * cols; ++i) pass(i);
  }
};

}  // namespace microscale::Impl

#endif
