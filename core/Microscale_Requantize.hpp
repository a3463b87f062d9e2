#ifndef MICROSCALE_REQUANTIZE_HPP
#define MICROSCALE_REQUANTIZE_HPP

#include <Microscale_Quantize.hpp>

#include <cstdint>

namespace microscale {

namespace Impl {

/// The values of a quantized matrix as a source, each as dequantize_code gives it.
template <class Format>
struct DequantizedSource {
  MatrixHandle<Format> matrix;
  std::int64_t rows, cols;

  explicit DequantizedSource(const MatrixHandle<Format>& m) : matrix(m), rows(m.rows), cols(m.cols) {}

  bool rows_fastest() const { return false; }
  KOKKOS_FUNCTION float operator()(std::int64_t r, std::int64_t c) const {
    float value;
    load(r, c, 1, &value);
    return value;
  }
  /// Values of columns [begin, begin + count) of row r, block by block.
  KOKKOS_FUNCTION void load(std::int64_t r, std::int64_t begin, int count, float* values) const {
    const float decode = matrix.pair().decode;
    const std::int64_t end = begin + count;
    for (std::int64_t c = begin; c < end;) {
      const std::int64_t b = c / Format::block_size, first = b * Format::block_size;
      const int length = matrix.block_length(b);
      const std::uint8_t byte = matrix.scale(r, b);
      if (c == first && first + length <= end) {
        dequantize_block<Format>(matrix.block(r, b), length, byte, values + (c - begin), decode);
        c += length;
      } else {  // blocks of the destination that do not fit those of the source
        const float scale = Format::scale::decode(byte);
        for (; c < end && c < first + length; ++c)
          values[c - begin] = dequantize_code<Format>(read_code<Format>(matrix.row(r), c), scale, decode);
      }
    }
  }
};

template <class Exec, BlockFormat From, class FromSpace, BlockFormat To, class ToSpace>
void check_requantize(const BlockScaledMatrix<From, FromSpace>& src, const BlockScaledMatrix<To, ToSpace>& dst,
                      const QuantizeOptions& options) {
  constexpr const char* where = "requantize";
  static_assert(can_access<Exec, FromSpace> && can_access<Exec, ToSpace>,
                "microscale::requantize: the execution space must be able to access the memory of both matrices");
  expects_extents(where, "src", src.rows(), src.cols(), dst.rows(), dst.cols());
  expects(!src.has_grouped_scales(), where, "src", "has grouped scales", "a matrix that is not grouped");
  expects(!dst.has_grouped_scales(), where, "dst", "has grouped scales", "a matrix that is not grouped");
  expects(options.axis == Axis::rows, where, "axis", "is columns", "rows");
  expects_options<To>(where, options);
  const bool empty = dst.rows() == 0 || dst.cols() == 0;
  expects(empty || (src.data().data() != dst.data().data() && src.scales().data() != dst.scales().data()), where, "dst",
          "shares the memory of src", "memory of its own");
  const bool shared_scale =
      dst.tensor_scale().data() != nullptr && src.tensor_scale().data() == dst.tensor_scale().data();
  expects(!shared_scale || options.tensor_scale.source() == TensorScaleSource::stored, where, "dst",
          "shares the tensor scale of src", "one of its own, or the option TensorScale::stored()");
}

}  // namespace Impl

namespace reference {

/// microscale::requantize by the portable kernels, whatever backends are enabled.
template <ExecutionSpace Exec, BlockFormat From, class FromSpace, BlockFormat To, class ToSpace>
void requantize(const Exec& exec, const BlockScaledMatrix<From, FromSpace>& src,
                const BlockScaledMatrix<To, ToSpace>& dst, const QuantizeOptions& options = {}) {
  Impl::check_requantize<Exec>(src, dst, options);
  Impl::quantize_source<To>("microscale::requantize[reference]", exec, Impl::DequantizedSource<From>(src.handle()),
                            dst.handle(), Impl::quantize_data(options));
}

}  // namespace reference

/// Quantizes the values of src again into dst, a matrix of the same extents in any format and scale layout: each value
/// is what dequantize() to float gives, and what is then done with it is what quantize() does under the options (of a
/// dynamic tensor scale, for a dst that has one, too). A block of src with a NaN scale makes the blocks of dst that it
/// touches NaN.
///
/// Asynchronous on exec; allocates nothing; safe to call from several threads for distinct dst. src and dst must not
/// overlap (equal pointers are refused). Throws std::invalid_argument for different extents, grouped scales or options
/// that do not fit dst, before anything is written.
template <ExecutionSpace Exec, BlockFormat From, class FromSpace, BlockFormat To, class ToSpace>
void requantize(const Exec& exec, const BlockScaledMatrix<From, FromSpace>& src,
                const BlockScaledMatrix<To, ToSpace>& dst, const QuantizeOptions& options = {}) {
  Impl::check_requantize<Exec>(src, dst, options);
  Problem problem = Impl::problem_on(exec, Operation::requantize);
  problem.m = src.rows();
  problem.k = src.cols();
  problem.a = Impl::operand(src);
  problem.c = Impl::operand(dst);
  problem.quantize = Impl::quantize_data(options);
  if (!Impl::run_by_backend(exec, problem, options.dispatch)) reference::requantize(exec, src, dst, options);
}

/// requantize on the default instance of the execution space of dst's memory.
template <BlockFormat From, class FromSpace, BlockFormat To, class ToSpace>
void requantize(const BlockScaledMatrix<From, FromSpace>& src, const BlockScaledMatrix<To, ToSpace>& dst,
                const QuantizeOptions& options = {}) {
  requantize(typename ToSpace::execution_space{}, src, dst, options);
}

}  // namespace microscale

#endif
