#ifndef MICROSCALE_OPERAND_HPP
#define MICROSCALE_OPERAND_HPP

#include <Microscale_BatchedBlockScaledMatrix.hpp>
#include <Microscale_Interface.hpp>

#include <cstdint>
#include <type_traits>

// Arguments of operations as plain data for dispatch.
namespace microscale::Impl {

template <class T>
inline constexpr FormatId plain_format_id{element_id<T>, 0, ScaleType::none, false, Packing::dense};

template <class T>
Operand operand(const StridedMatrix<T>& m) {
  Operand result;
  result.format = plain_format_id<std::remove_const_t<T>>;
  result.rows = m.rows;
  result.cols = m.cols;
  result.data = const_cast<std::remove_const_t<T>*>(m.data);
  result.row_stride = m.row_stride;
  result.col_stride = m.col_stride;
  return result;
}

template <class F>
Operand operand(const MatrixHandle<F>& m) {
  Operand result;
  result.format = format_id<F>;
  result.rows = m.rows;
  result.cols = m.cols;
  result.data = m.data;
  result.row_stride = m.row_pitch;
  result.scales = m.scales;
  result.scale_layout = m.map.layout;
  result.scale_pitch = m.scale_pitch;
  result.scale_tile_rows = m.tile_rows;
  result.tensor_scale = m.tensor_scale;
  return result;
}

template <RealView V>
requires(V::rank() == 1 || V::rank() == 2) Operand operand(const V& v) { return operand(strided(v)); }

template <RealView V>
requires(V::rank() == 3) Operand operand(const V& v) {
  const auto batch = strided_batch(v);
  Operand result = operand(batch.matrix);
  result.batch = batch.batch;
  result.batch_stride = batch.batch_stride;
  return result;
}

template <class F, class Space>
Operand operand(const BlockScaledMatrix<F, Space>& m) {
  Operand result = operand(m.handle());
  result.grouped_scales = m.has_grouped_scales();
  return result;
}

template <class F, class Space>
Operand operand(const BatchedBlockScaledMatrix<F, Space>& m) {
  Operand result = operand(m.handle());
  result.batch = m.batch();
  result.batch_stride = m.data_stride();
  result.scale_batch_stride = m.scale_stride();
  return result;
}

}  // namespace microscale::Impl

#endif
