#ifndef MICROSCALE_REFERENCE_PRODUCT_HPP
#define MICROSCALE_REFERENCE_PRODUCT_HPP

#include <Kokkos_Core.hpp>
#include <Microscale_Arithmetic.hpp>
#include <Microscale_Concepts.hpp>
#include <Microscale_MatrixHandle.hpp>

#include <cstdint>
#include <type_traits>

// One element of A B^T: the specification that every backend is held against (docs/numerics.md).
//
// An operand is a MatrixHandle<Format>, or a StridedMatrix<const T> of float, half or bf16 (A only). Blocks are taken
// in ascending k, cut where either operand's block ends. The dot product of a block is summed by fused multiply-adds in
// ascending k, in binary32; it is multiplied by the product of the UE4M3 scales (exact) and by 2 to the sum of the E8M0
// exponents (one more rounding, which only subnormal results and overflow can feel), and added to the accumulator.
// Elements past K do not exist: nothing is read or multiplied there.
namespace microscale::Impl {

template <class M>
struct OperandTraits {  // a StridedMatrix
  static constexpr bool scaled = false;
  static constexpr bool tensor_scale = false;
};
template <class F>
struct OperandTraits<MatrixHandle<F>> {
  using format = F;
  static constexpr bool scaled = true;
  static constexpr bool tensor_scale = F::tensor_scale;
  static constexpr bool e8m0 = F::scale::type == ScaleType::e8m0;
};

template <class F>
KOKKOS_FUNCTION float element(const MatrixHandle<F>& m, std::int64_t row, std::int64_t k) {
  return F::element::decode(read_code<F>(m.row(row), k));
}
template <class T>
KOKKOS_FUNCTION float element(const StridedMatrix<T>& m, std::int64_t row, std::int64_t k) {
  return static_cast<float>(m(row, k));
}

/// Where the block of m that holds element k ends.
template <class F>
KOKKOS_FUNCTION std::int64_t block_end(const MatrixHandle<F>& m, std::int64_t k) {
  const std::int64_t end = (k / F::block_size + 1) * F::block_size;
  return end < m.cols ? end : m.cols;
}
template <class T>
KOKKOS_FUNCTION std::int64_t block_end(const StridedMatrix<T>& m, std::int64_t) {
  return m.cols;
}

/// The scales that meet in a block.
struct ScaleProduct {
  float factor = 1.0f;  ///< product of the UE4M3 values; NaN if any scale is
  int exponent = 0;     ///< sum of the E8M0 exponents

  template <class Scale>
  KOKKOS_FUNCTION void multiply(std::uint8_t byte) {
    if (Scale::type == ScaleType::ue4m3 || Scale::is_nan(byte))
      factor = mul(factor, Scale::decode(byte));
    else
      exponent += static_cast<int>(byte) - E8M0::bias;
  }
  KOKKOS_FUNCTION float apply(float dot) const { return Bits::scale_by_pow2(mul(dot, factor), exponent); }
};

template <class F>
KOKKOS_FUNCTION void multiply_scale(ScaleProduct& product, const MatrixHandle<F>& m, std::int64_t scale_row,
                                    std::int64_t k) {
  product.multiply<typename F::scale>(m.scale(scale_row, k / F::block_size));
}
template <class T>
KOKKOS_FUNCTION void multiply_scale(ScaleProduct&, const StridedMatrix<T>&, std::int64_t, std::int64_t) {}

/// Sum over k of A(row, k) B(col, k), without tensor scales. scale_row: the row of A's scale buffer for this row.
template <class A, class B>
KOKKOS_FUNCTION float product_element(const A& a, std::int64_t row, std::int64_t scale_row, const B& b,
                                      std::int64_t col) {
  float sum = 0.0f;
  for (std::int64_t k = 0; k < a.cols;) {
    const std::int64_t end_a = block_end(a, k), end_b = block_end(b, k), end = end_a < end_b ? end_a : end_b;
    ScaleProduct scale;
    multiply_scale(scale, a, scale_row, k);
    multiply_scale(scale, b, col, k);
    float dot = 0.0f;
    for (; k < end; ++k) dot = fused_multiply_add(element(a, row, k), element(b, col, k), dot);
    sum = add(sum, scale.apply(dot));
  }
  return sum;
}

/// The tensor scale of an operand.
template <class F>
KOKKOS_FUNCTION float decode_factor(const MatrixHandle<F>& m) {
  return m.pair().decode;
}
template <class T>
KOKKOS_FUNCTION float decode_factor(const StridedMatrix<T>&) {
  return 1.0f;
}

}  // namespace microscale::Impl

#endif
