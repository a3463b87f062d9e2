#ifndef MICROSCALE_REFERENCE_EPILOGUE_HPP
#define MICROSCALE_REFERENCE_EPILOGUE_HPP

#include <Microscale_Activation.hpp>
#include <Microscale_Epilogue.hpp>
#include <Microscale_MatrixHandle.hpp>

#include <cstdint>
#include <type_traits>

// What happens to an element of A B^T on its way to C: the epilogue in the order of Epilogue's comment, each step one
// binary32 operation, then rounding to C's type or quantization.
namespace microscale::Impl {

KOKKOS_FUNCTION inline float read(const VectorOperand& v, std::int64_t expert, std::int64_t i) {
  const std::int64_t index = (v.experts >= 0 ? expert * v.expert_stride : 0) + i * v.stride;
  if (v.type == float16_id.element) return static_cast<float>(static_cast<const half*>(v.data)[index]);
  if (v.type == bfloat16_id.element) return static_cast<float>(static_cast<const bf16*>(v.data)[index]);
  return static_cast<const float*>(v.data)[index];
}

/// The epilogue of one matrix (or one expert), without the functor.
struct ElementEpilogue {
  EpilogueData data;
  float decode_a = 1.0f;
  float decode_b = 1.0f;
  std::int64_t expert = 0;

  /// Everything before the activation: row of C, column of A B^T. C is read through `old` if beta is not 0.
  template <class Old>
  KOKKOS_FUNCTION float linear(float sum, std::int64_t row, std::int64_t col, const Old& old) const {
    float v = mul(mul(sum, decode_a), decode_b);
    v = mul(v, data.alpha_device != nullptr ? *data.alpha_device : data.alpha);
    if (data.row_scale.data != nullptr) v = mul(v, read(data.row_scale, expert, row));
    if (data.expert_scale.data != nullptr) v = mul(v, read(data.expert_scale, 0, expert));
    if (data.bias.data != nullptr) v = add(v, read(data.bias, expert, col));
    if (data.beta != 0.0f) v = add(v, mul(data.beta, old()));
    return v;
  }

  /// Sign and payload of a NaN depend on the processor and on the order of operands; results must not.
  KOKKOS_FUNCTION static float canonical(float v) { return v == v ? v : Bits::to_float(Bits::quiet_nan); }

  KOKKOS_FUNCTION float activate(float v) const {
    switch (data.activation) {
      case Activation::none:
        break;
      case Activation::relu:
        return relu(v);
      case Activation::gelu_tanh:
        return gelu_tanh(v);
      case Activation::gelu_erf:
        return gelu_erf(v);
      case Activation::silu:
        return silu(v);
    }
    return v;
  }

  KOKKOS_FUNCTION float gate(float g, float u) const {
    return data.gate == Gate::silu ? silu_gate(g, u) : clamped_swiglu(g, u, data.gate_limit, data.gate_slope);
  }

  /// The value of C(row, col), `cols` being the columns of C; sums(n) is the element of A B^T in this row and column n.
  template <class Sums, class Old>
  KOKKOS_FUNCTION float value(std::int64_t row, std::int64_t col, std::int64_t cols, const Sums& sums,
                              const Old& old) const {
    if (data.gate == Gate::none) return canonical(activate(linear(sums(col), row, col, old)));
    const bool interleaved = data.gate_columns == GateColumns::interleaved;
    const std::int64_t g = interleaved ? 2 * col : col, u = interleaved ? 2 * col + 1 : cols + col;
    return canonical(gate(linear(sums(g), row, g, old), linear(sums(u), row, u, old)));
  }
};

/// A functor of batched_matmul for one matrix.
template <class Functor>
struct BoundFunctor {
  Functor functor;
  std::int64_t batch;
  KOKKOS_FUNCTION auto operator()(std::int64_t m, std::int64_t n, float v) const { return functor(batch, m, n, v); }
};
template <bool Batched, class Functor>
KOKKOS_FUNCTION auto bind(const Functor& functor, std::int64_t batch) {
  if constexpr (Batched && !std::is_same_v<Functor, NoFunctor>)
    return BoundFunctor<Functor>{functor, batch};
  else
    return functor;
}

/// The value to store where the epilogue without functor gave v (rounded to C's type already).
template <class Functor>
KOKKOS_FUNCTION float call_functor(const Functor& functor, std::int64_t m, std::int64_t n, float v) {
  if constexpr (std::is_same_v<Functor, NoFunctor>) {
    return v;
  } else if constexpr (std::is_void_v<decltype(functor(m, n, v))>) {
    functor(m, n, v);
    return v;
  } else {
    return static_cast<float>(functor(m, n, v));
  }
}

// C is written in units: an element of a plain matrix, a block of a block-scaled one. The grid of units has padding:
// scales that belong to no block, which are written as zeros.

template <class C>
struct OutputTraits {  // a StridedMatrix
  static constexpr int unit_cols = 1;
  KOKKOS_FUNCTION static std::int64_t padded_rows(const C& c) { return c.rows; }
  KOKKOS_FUNCTION static std::int64_t padded_units(const C& c) { return c.cols; }
};
template <class F>
struct OutputTraits<MatrixHandle<F>> {
  static constexpr int unit_cols = F::block_size;
  KOKKOS_FUNCTION static std::int64_t padded_rows(const MatrixHandle<F>& c) {
    return c.map.tile_rows() * scale_tile(c.map.layout).rows;
  }
  KOKKOS_FUNCTION static std::int64_t padded_units(const MatrixHandle<F>& c) { return c.map.padded_cols(); }
};

template <class T, class Functor, class Sums>
KOKKOS_FUNCTION void store_unit(const StridedMatrix<T>& c, const ElementEpilogue& epilogue, const Functor& functor,
                                const BlockScaling&, std::int64_t row, std::int64_t, std::int64_t col,
                                const Sums& sums) {
  T& target = c(row, col);
  const T rounded(epilogue.value(row, col, c.cols, sums, [&] { return static_cast<float>(target); }));
  if constexpr (std::is_same_v<Functor, NoFunctor>)
    target = rounded;
  else
    target = T(call_functor(functor, row, col, static_cast<float>(rounded)));
}

template <class F, class Functor, class Sums>
KOKKOS_FUNCTION void store_unit(const MatrixHandle<F>& c, const ElementEpilogue& epilogue, const Functor& functor,
                                const BlockScaling& scaling, std::int64_t row, std::int64_t scale_row,
                                std::int64_t block, const Sums& sums) {
  float values[F::block_size];
  const int count = c.block_length(block);
  for (int i = 0; i < count; ++i) {
    const std::int64_t col = block * F::block_size + i;
    values[i] = call_functor(functor, row, col, epilogue.value(row, col, c.cols, sums, [] { return 0.0f; }));
  }
  c.scale(scale_row, block) = quantize_block<F>(values, count, c.block(row, block), scaling);
}

/// Zeros: rows that a grouped operation skips.
template <class T>
KOKKOS_FUNCTION void clear_unit(const StridedMatrix<T>& c, std::int64_t row, std::int64_t, std::int64_t col) {
  c(row, col) = T(0.0f);
}
/// scale_row is negative if the row has no place among the scales.
template <class F>
KOKKOS_FUNCTION void clear_unit(const MatrixHandle<F>& c, std::int64_t row, std::int64_t scale_row,
                                std::int64_t block) {
  if (scale_row >= 0) c.scale(scale_row, block) = 0;
  if (block >= c.map.cols) return;
  const std::int64_t bytes = packed_bytes<F>(c.block_length(block));
  for (std::int64_t i = 0; i < bytes; ++i) c.block(row, block)[i] = 0;
}

template <class T>
KOKKOS_FUNCTION bool is_padding(const StridedMatrix<T>&, std::int64_t, std::int64_t) {
  return false;
}
template <class F>
KOKKOS_FUNCTION bool is_padding(const MatrixHandle<F>& c, std::int64_t row, std::int64_t block) {
  return row >= c.rows || block >= c.map.cols;
}
template <class T>
KOKKOS_FUNCTION void clear_padding(const StridedMatrix<T>&, std::int64_t, std::int64_t) {}
template <class F>
KOKKOS_FUNCTION void clear_padding(const MatrixHandle<F>& c, std::int64_t scale_row, std::int64_t block) {
  c.scale(scale_row, block) = 0;
}

}  // namespace microscale::Impl

#endif
