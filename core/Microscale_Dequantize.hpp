#ifndef MICROSCALE_DEQUANTIZE_HPP
#define MICROSCALE_DEQUANTIZE_HPP

#include <Microscale_Quantize.hpp>

namespace microscale {

namespace Impl {

/// Checks all arguments of dequantize; returns the destination as kernels see it.
template <class Exec, BlockFormat Format, class Space, class Dst>
auto checked_dequantize_destination(const BlockScaledMatrix<Format, Space>& src, const Dst& dst) {
  static_assert(check_conversion_types<Exec, Dst, BlockScaledMatrix<Format, Space>>());
  static_assert(Dst::rank() == 1 || Dst::rank() == 2, "microscale::dequantize: dst must be a View of rank 1 or 2");
  static_assert(!std::is_const_v<typename Dst::value_type>, "microscale::dequantize: dst must not be const");
  const auto destination = strided(dst);
  expects_extents("dequantize", "dst", destination.rows, destination.cols, src.rows(), src.cols());
  expects(!src.has_grouped_scales(), "dequantize", "src", "has grouped scales", "a matrix that is not grouped");
  return destination;
}

}  // namespace Impl

namespace reference {

/// microscale::dequantize by the portable kernels, whatever backends are enabled.
template <ExecutionSpace Exec, BlockFormat Format, class Space, class Dst>
void dequantize(const Exec& exec, const BlockScaledMatrix<Format, Space>& src, const Dst& dst) {
  const auto destination = Impl::checked_dequantize_destination<Exec>(src, dst);
  Impl::dequantize_matrix("microscale::dequantize[reference]", exec, src.handle(), destination);
}

}  // namespace reference

/// Writes the values of src to dst, a View [rows, cols] of float, double, half or bf16 in any layout and stride (rank 1
/// for a matrix of one row): (code * block scale) * decode, each product rounded once to binary32, then rounded to
/// nearest even to dst's type. A value beyond that type's range becomes Inf; NaN scales give NaN.
///
/// Asynchronous on exec; allocates nothing; safe to call from several threads for distinct dst. Throws
/// std::invalid_argument if the extents differ, before anything is written.
template <ExecutionSpace Exec, BlockFormat Format, class Space, class Dst>
void dequantize(const Exec& exec, const BlockScaledMatrix<Format, Space>& src, const Dst& dst,
                const DispatchOptions& options = {}) {
  const auto destination = Impl::checked_dequantize_destination<Exec>(src, dst);
  Problem problem = Impl::problem_on(exec, Operation::dequantize);
  problem.m = src.rows();
  problem.k = src.cols();
  problem.a = Impl::operand(src);
  problem.c = Impl::operand(destination);
  if (!Impl::run_by_backend(exec, problem, options)) reference::dequantize(exec, src, dst);
}

/// dequantize on the default instance of dst's execution space.
template <BlockFormat Format, class Space, class Dst>
void dequantize(const BlockScaledMatrix<Format, Space>& src, const Dst& dst, const DispatchOptions& options = {}) {
  dequantize(typename Dst::execution_space{}, src, dst, options);
}

/// Each matrix of a batch into dst, a View [batch, rows, cols].
template <ExecutionSpace Exec, BlockFormat Format, class Space, class Dst>
void dequantize(const Exec& exec, const BatchedBlockScaledMatrix<Format, Space>& src, const Dst& dst,
                const DispatchOptions& options = {}) {
  static_assert(Dst::rank() == 3, "microscale::dequantize: the destination of a batch must be a View of rank 3");
  Impl::expects(
      static_cast<std::int64_t>(dst.extent(0)) == src.batch(), "dequantize", "dst",
      [&] { return "has batch " + std::to_string(dst.extent(0)); }, [&] { return std::to_string(src.batch()); });
  const auto destination = Impl::strided_batch(dst).matrix;
  Impl::expects_extents("dequantize", "dst", destination.rows, destination.cols, src.rows(), src.cols());
  for (std::int64_t e = 0; e < src.batch(); ++e)
    dequantize(exec, src.matrix(e), Kokkos::subview(dst, e, Kokkos::ALL, Kokkos::ALL), options);
}

}  // namespace microscale

#endif
