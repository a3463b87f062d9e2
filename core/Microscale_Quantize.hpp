#ifndef MICROSCALE_QUANTIZE_HPP
#define MICROSCALE_QUANTIZE_HPP

#include <Microscale_BatchedBlockScaledMatrix.hpp>
#include <Microscale_Operand.hpp>
#include <Microscale_Reference_Quantize.hpp>
#include <Microscale_TensorScale.hpp>

namespace microscale {

namespace Impl {

/// The compile-time rules of quantize and dequantize, one sentence each. (Used in static_assert, so that they are
/// checked before anything that would fail with a longer text.)
template <class Exec, class View, class Matrix>
consteval bool check_conversion_types() {
  static_assert(ExecutionSpace<Exec>, "microscale: the first argument must be a Kokkos execution-space instance");
  static_assert(RealView<View>,
                "microscale: the plain operand must be a Kokkos::View of float, double, half or bf16 with layout "
                "LayoutRight, LayoutLeft or LayoutStride");
  static_assert(can_access<Exec, typename View::memory_space> && can_access<Exec, typename Matrix::memory_space>,
                "microscale: the execution space must be able to access the memory of both operands");
  return true;
}

template <class Format, class T>
void check_quantize(const char* where, const StridedMatrix<const T>& source, std::int64_t rows, std::int64_t cols,
                    bool grouped, const QuantizeOptions& options) {
  expects_extents(where, options.axis == Axis::rows ? "src" : "src (transposed, as blocks run along columns)",
                  source.rows, source.cols, rows, cols);
  expects(!grouped, where, "dst", "has grouped scales", "a matrix that is not grouped (grouped_quantize fills those)");
  expects_options<Format>(where, options);
}

template <class View>
auto source_of(const View& view, Axis axis) {
  const auto s = strided(view);
  using T = std::remove_const_t<typename decltype(s)::value_type>;
  const StridedMatrix<const T> matrix{s.data, s.rows, s.cols, s.row_stride, s.col_stride};
  return axis == Axis::rows ? matrix : matrix.transposed();
}

/// Checks all arguments of quantize; returns the source as kernels see it.
template <class Exec, class Src, BlockFormat Format, class Space>
auto checked_quantize_source(const Src& src, const BlockScaledMatrix<Format, Space>& dst,
                             const QuantizeOptions& options) {
  static_assert(check_conversion_types<Exec, Src, BlockScaledMatrix<Format, Space>>());
  static_assert(Src::rank() == 1 || Src::rank() == 2, "microscale::quantize: src must be a View of rank 1 or 2");
  const auto source = source_of(src, options.axis);
  check_quantize<Format>("quantize", source, dst.rows(), dst.cols(), dst.has_grouped_scales(), options);
  return source;
}

}  // namespace Impl

namespace reference {

/// microscale::quantize by the portable kernels, whatever backends are enabled.
template <ExecutionSpace Exec, class Src, BlockFormat Format, class Space>
void quantize(const Exec& exec, const Src& src, const BlockScaledMatrix<Format, Space>& dst,
              const QuantizeOptions& options = {}) {
  const auto source = Impl::checked_quantize_source<Exec>(src, dst, options);
  Impl::quantize_source<Format>("microscale::quantize[reference]", exec, Impl::ViewSource(source), dst.handle(),
                                Impl::quantize_data(options));
}

}  // namespace reference

/// Quantizes src, a View [rows, cols] of float, double (rounded to float first), half or bf16 in any layout and stride
/// (a rank-1 View is one row), into dst of the same logical extents; with options.axis == Axis::columns dst has the
/// transposed extents. Codes, scales (in dst's layout, padding zeroed) and the tensor scale are written; src is only
/// read and must not overlap dst.
///
/// Asynchronous on exec; allocates nothing; safe to call from several threads for distinct dst. The bytes are the same
/// for every source layout, execution space and backend (docs/numerics.md); speed is best when blocks are contiguous in
/// memory. Throws std::invalid_argument for extents, options or tensor scales that do not fit, before anything is
/// written.
template <ExecutionSpace Exec, class Src, BlockFormat Format, class Space>
void quantize(const Exec& exec, const Src& src, const BlockScaledMatrix<Format, Space>& dst,
              const QuantizeOptions& options = {}) {
  const auto source = Impl::checked_quantize_source<Exec>(src, dst, options);
  Problem problem = Impl::problem_on(exec, Operation::quantize);
  problem.m = source.rows;
  problem.k = source.cols;
  problem.a = Impl::operand(source);
  problem.c = Impl::operand(dst);
  problem.quantize = Impl::quantize_data(options);
  if (!Impl::run_by_backend(exec, problem, options.dispatch)) reference::quantize(exec, src, dst, options);
}

/// quantize on the default instance of src's execution space.
template <class Src, BlockFormat Format, class Space>
requires(Kokkos::is_view_v<Src>) void quantize(const Src& src, const BlockScaledMatrix<Format, Space>& dst,
                                               const QuantizeOptions& options = {}) {
  quantize(typename Src::execution_space{}, src, dst, options);
}

/// Quantizes each matrix of a batch: src is a View [batch, rows, cols] in any layout. Every matrix gets its own tensor
/// scale (a given one is used for all). Otherwise as above; one set of launches a matrix.
template <ExecutionSpace Exec, class Src, BlockFormat Format, class Space>
void quantize(const Exec& exec, const Src& src, const BatchedBlockScaledMatrix<Format, Space>& dst,
              const QuantizeOptions& options = {}) {
  static_assert(Impl::check_conversion_types<Exec, Src, BatchedBlockScaledMatrix<Format, Space>>());
  static_assert(Src::rank() == 3, "microscale::quantize: the source of a batch must be a View of rank 3");
  Impl::expects(
      static_cast<std::int64_t>(src.extent(0)) == dst.batch(), "quantize", "src",
      [&] { return "has batch " + std::to_string(src.extent(0)); }, [&] { return std::to_string(dst.batch()); });
  const auto source = Impl::strided_batch(src).matrix;
  const bool along_rows = options.axis == Axis::rows;
  Impl::expects_extents("quantize", "src", source.rows, source.cols, along_rows ? dst.rows() : dst.cols(),
                        along_rows ? dst.cols() : dst.rows());
  Impl::expects_options<Format>("quantize", options);
  for (std::int64_t e = 0; e < dst.batch(); ++e)
    quantize(exec, Kokkos::subview(src, e, Kokkos::ALL, Kokkos::ALL), dst.matrix(e), options);
}

}  // namespace microscale

#endif
