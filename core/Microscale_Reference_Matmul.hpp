#ifndef MICROSCALE_REFERENCE_MATMUL_HPP
#define MICROSCALE_REFERENCE_MATMUL_HPP

#include <Microscale_Reference_Epilogue.hpp>
#include <Microscale_Reference_MatmulTeams.hpp>
#include <Microscale_Reference_ProductTile.hpp>
#include <Microscale_Reference_Quantize.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

// The portable matmul kernels. They know formats and types of values, not Views. What one call needs is gathered in a
// MatmulSlice for each matrix of a batch or each expert of a group. A tile of C is one index on the host and one team
// elsewhere; only where C has blocks that tiles cannot be cut into, an index is one unit of C (an element or a block).
namespace microscale::Impl {

/// Equal matrices at equal distances.
template <class T>
struct OperandBatch {};
template <class T>
struct OperandBatch<StridedMatrix<T>> {
  StridedMatrix<T> first;
  std::int64_t stride = 0;  ///< elements
  KOKKOS_FUNCTION StridedMatrix<T> operator[](std::int64_t e) const {
    StridedMatrix<T> result = first;
    result.data += e * stride;
    return result;
  }
};
template <class F>
struct OperandBatch<MatrixHandle<F>> {
  MatrixHandle<F> first;
  std::int64_t stride = 0;        ///< bytes of data
  std::int64_t scale_stride = 0;  ///< bytes of scales
  KOKKOS_FUNCTION MatrixHandle<F> operator[](std::int64_t e) const {
    MatrixHandle<F> result = first;
    result.data += e * stride;
    result.scales += e * scale_stride;
    if (F::tensor_scale) result.tensor_scale += e;
    return result;
  }
};

template <class C>
KOKKOS_FUNCTION BlockScaling output_scaling(const StridedMatrix<C>&, const QuantizeData&) {
  return {};
}
template <class F>
KOKKOS_FUNCTION BlockScaling output_scaling(const MatrixHandle<F>& c, const QuantizeData& options) {
  return {options.scale_rule, options.non_finite, c.pair()};
}

/// One product C = epilogue(A B^T). Rows of A and C have the same numbers; those of their scale buffers are shifted.
template <class A, class B, class C, class Functor>
struct MatmulSlice {
  static constexpr int unit_cols = OutputTraits<C>::unit_cols;
  static constexpr int tile_rows = ProductTile<A, B>::max_rows;
  static constexpr int tile_units = std::max(1, ProductTile<A, B>::max_cols / unit_cols);

  A a;
  B b;
  C c;
  ElementEpilogue epilogue;
  Functor functor;
  BlockScaling scaling;

  KOKKOS_FUNCTION MatmulSlice(const A& a_, const B& b_, const C& c_, const EpilogueData& data, const Functor& f,
                              const QuantizeData& quantize, std::int64_t expert)
      : a(a_),
        b(b_),
        c(c_),
        epilogue{data, decode_factor(a_), decode_factor(b_), expert},
        functor(f),
        scaling(output_scaling(c_, quantize)) {}

  /// One unit of C, padding included.
  KOKKOS_FUNCTION void unit(std::int64_t row, std::int64_t a_scale_row, std::int64_t c_scale_row,
                            std::int64_t unit) const {
    if (is_padding(c, row, unit))
      clear_padding(c, c_scale_row, unit);
    else
      store_unit(c, epilogue, functor, scaling, row, c_scale_row, unit,
                 [&](std::int64_t col) { return product_element(a, row, a_scale_row, b, col); });
  }

  /// A tile of at most tile_rows x tile_units units of C, padding included. Host only.
  void tile(std::int64_t row, int rows, std::int64_t a_scale_shift, std::int64_t c_scale_shift, std::int64_t first_unit,
            int units) const {
    constexpr int width = tile_units * unit_cols, pitch = 2 * width;
    static_assert(width % 8 == 0);
    alignas(64) float sums[tile_rows * pitch];

    const std::int64_t col = first_unit * unit_cols, cols = std::min<std::int64_t>(units * unit_cols, c.cols - col);
    const int used_rows = static_cast<int>(std::min<std::int64_t>(rows, c.rows - row));
    const bool gated = epilogue.data.gate != Gate::none;
    const bool halved = gated && epilogue.data.gate_columns == GateColumns::halved;
    const auto compute = [&](std::int64_t begin, std::int64_t count, float* out) {
      for (std::int64_t done = 0; done < count; done += ProductTile<A, B>::max_cols)
        ProductTile<A, B>::compute(a, row, used_rows, a_scale_shift, b, begin + done,
                                   static_cast<int>(std::min<std::int64_t>(count - done, ProductTile<A, B>::max_cols)),
                                   out + done, pitch);
    };
    // Column n of A B^T is in column n - base of `sums`; halved ups follow at `width`.
    const std::int64_t base = gated && !halved ? 2 * col : col;
    if (used_rows > 0 && cols > 0) {
      compute(base, gated && !halved ? 2 * cols : cols, sums);
      if (halved) compute(c.cols + col, cols, sums + width);
    }
    const std::int64_t ups = halved ? c.cols : b.rows, to_ups = width - c.cols;
    for (int i = 0; i < rows; ++i) {
      for (std::int64_t u = first_unit; u < first_unit + units; ++u)
        if (is_padding(c, row + i, u))
          clear_padding(c, row + i + c_scale_shift, u);
        else
          store_unit(c, epilogue, functor, scaling, row + i, row + i + c_scale_shift, u,
                     [&](std::int64_t n) { return sums[i * pitch + n - base + (n < ups ? 0 : to_ups)]; });
    }
  }
};

/// How C is cut into tiles on the host. Never changes a result.
struct TileGrid {
  struct Tile {
    std::int64_t matrix, row, unit;
    int rows, units;
  };

  std::int64_t batch, padded_rows, padded_units;
  int rows, units;  ///< of a tile

  template <class A, class B, class C>
  static TileGrid make(std::int64_t batch, std::int64_t padded_rows, std::int64_t padded_units, int threads) {
    using Slice = MatmulSlice<A, B, C, NoFunctor>;
    TileGrid grid{batch, padded_rows, padded_units, Slice::tile_rows, Slice::tile_units};
    // Narrower tiles where there would be too few for all threads.
    while (grid.units * Slice::unit_cols >= 64 && grid.units > 1 && grid.size() < 4 * threads) grid.units /= 2;
    return grid;
  }

  std::int64_t row_tiles() const { return (padded_rows + rows - 1) / rows; }
  std::int64_t unit_tiles() const { return (padded_units + units - 1) / units; }
  std::int64_t size() const { return batch * row_tiles() * unit_tiles(); }

  Tile operator[](std::int64_t index) const {
    const std::int64_t unit = index % unit_tiles() * units, row = index / unit_tiles() % row_tiles() * rows;
    return {index / unit_tiles() / row_tiles(), row, unit,
            static_cast<int>(std::min<std::int64_t>(rows, padded_rows - row)),
            static_cast<int>(std::min<std::int64_t>(units, padded_units - unit))};
  }
};

/// Calls of matmul and batched_matmul (whose functors get the number of the matrix first).
template <class A, class B, class C, class Functor, bool Batched>
struct MatmulKernel {
  OperandBatch<A> a;
  OperandBatch<B> b;
  OperandBatch<C> c;
  std::int64_t batch;
  EpilogueData epilogue;
  Functor functor;
  QuantizeData quantize;
  std::int64_t padded_rows = OutputTraits<C>::padded_rows(c.first);
  std::int64_t padded_units = OutputTraits<C>::padded_units(c.first);

  KOKKOS_FUNCTION auto slice(std::int64_t e) const {
    const auto bound = bind<Batched>(functor, e);
    return MatmulSlice<A, B, C, std::remove_const_t<decltype(bound)>>(a[e], b[e], c[e], epilogue, bound, quantize, e);
  }
};

/// One index is one unit of C.
template <class Kernel>
struct MatmulUnits {
  Kernel call;
  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t unit = index % call.padded_units;
    const std::int64_t row = index / call.padded_units % call.padded_rows;
    call.slice(index / call.padded_units / call.padded_rows).unit(row, row, row, unit);
  }
};

/// One index is one tile of C.
template <class Kernel>
struct MatmulTiles {
  Kernel call;
  TileGrid grid;
  void operator()(std::int64_t index) const {
    const TileGrid::Tile tile = grid[index];
    call.slice(tile.matrix).tile(tile.row, tile.rows, 0, 0, tile.unit, tile.units);
  }
};

template <class Exec>
using TileRange = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>, Kokkos::Schedule<Kokkos::Dynamic>>;

/// Brings the tensor scale of a quantized C to what the options ask for, unless it is to stay.
template <class Exec, class T>
void resolve_output_scale(const std::string&, const Exec&, const OperandBatch<StridedMatrix<T>>&, std::int64_t,
                          const QuantizeData&) {}
template <class Exec, class F>
void resolve_output_scale(const std::string& label, const Exec& exec, const OperandBatch<MatrixHandle<F>>& c,
                          std::int64_t batch, const QuantizeData& options) {
  if constexpr (F::tensor_scale)
    if (options.source == TensorScaleSource::given && c.first.tensor_scale != nullptr)  // null: an empty matrix
      for (std::int64_t e = 0; e < batch; ++e) run_once(label, exec, ResolveTensorScale<F>{c[e].tensor_scale, options});
}

template <class Exec, class A, class B, class C, class Functor, bool Batched>
void run_matmul(const std::string& label, const Exec& exec, const MatmulKernel<A, B, C, Functor, Batched>& call) {
  using Kernel = MatmulKernel<A, B, C, Functor, Batched>;
  resolve_output_scale(label, exec, call.c, call.batch, call.quantize);
  if constexpr (is_host<Exec>) {
    const auto grid = TileGrid::make<A, B, C>(call.batch, call.padded_rows, call.padded_units, exec.concurrency());
    Kokkos::parallel_for(label, TileRange<Exec>(exec, 0, grid.size(), Kokkos::ChunkSize(1)),
                         MatmulTiles<Kernel>{call, grid});
  } else if constexpr (TeamGrid<C, TeamShapeOf<Exec>>::fits) {
    run_by_teams<MatmulTeams>(label, exec, call, call.batch, call.padded_rows);
  } else {
    Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, call.batch * call.padded_rows * call.padded_units),
                         MatmulUnits<Kernel>{call});
  }
}

/// A user's functor as a pass of its own over a C that holds the value without it.
template <class C, class Functor, bool Batched>
struct FunctorPass {
  OperandBatch<C> c;
  Functor functor;
  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t col = index % c.first.cols, row = index / c.first.cols % c.first.rows;
    const std::int64_t e = index / c.first.cols / c.first.rows;
    auto& target = c[e](row, col);
    target = typename C::value_type(call_functor(bind<Batched>(functor, e), row, col, static_cast<float>(target)));
  }
};

}  // namespace microscale::Impl

#endif
