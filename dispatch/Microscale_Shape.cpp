#include <Microscale_Shape.hpp>

#include <initializer_list>

namespace microscale {
namespace {

constexpr std::uintptr_t alignment = 256;  // the largest that a plan knows

template <class T>
T* somewhere() {
  return reinterpret_cast<T*>(alignment);
}

}  // namespace

Operand shaped_operand(FormatId format, std::int64_t rows, std::int64_t cols, std::int64_t batch, ScaleLayout layout) {
  Operand result;
  result.format = format;
  result.rows = rows;
  result.cols = cols;
  result.batch = batch;
  result.data = somewhere<void>();
  result.row_stride = format.block_size > 0 ? packed_bytes(format, cols) : cols;
  if (batch != 1) result.batch_stride = rows * result.row_stride;
  if (format.block_size > 0) {
    const ScaleMap map{layout, rows, (cols + format.block_size - 1) / format.block_size};
    result.scales = somewhere<std::uint8_t>();
    result.scale_layout = layout;
    result.scale_pitch = map.tile_row_bytes();
    result.scale_tile_rows = map.tile_rows();
    if (batch != 1) result.scale_batch_stride = map.bytes();
    if (format.tensor_scale) result.tensor_scale = somewhere<TensorScalePair>();
  }
  return result;
}

Problem shaped_problem(const Shape& shape) {
  Problem p;
  p.operation = shape.operation;
  p.hints = shape.hints;
  p.a = shaped_operand(shape.a, shape.m, shape.k, 1, shape.scale_layout);
  p.m = shape.m;
  p.k = shape.k;
  if (shape.operation == Operation::quantize) {
    p.c = shaped_operand(shape.c, shape.m, shape.k, 1, shape.scale_layout);
    return p;
  }
  p.n = shape.n;
  p.c = shaped_operand(shape.c, shape.m, shape.n, 1, shape.scale_layout);
  // The largest value of a product is not known before all of it is, so that its tensor scale must be given.
  if (shape.c.tensor_scale) p.quantize.source = TensorScaleSource::given;
  const bool grouped = shape.operation == Operation::grouped_matmul;
  p.b = shaped_operand(shape.b, shape.n, shape.k, grouped ? shape.groups : 1, shape.scale_layout);
  if (grouped) {
    p.groups.slots = shape.groups;
    p.groups.row_offsets = somewhere<std::int32_t>();
    p.groups.expert_ids = somewhere<std::int32_t>();
    const auto tiled = [](const Operand& o) {
      return o.format.block_size > 0 && o.scale_layout != ScaleLayout::linear;
    };
    for (Operand* const o : {&p.a, &p.c}) {
      o->grouped_scales = tiled(*o);
      if (o->grouped_scales) o->scale_tile_rows = grouped_tile_rows_bound(o->scale_layout, o->rows, p.groups.slots);
    }
    if (p.a.grouped_scales || p.c.grouped_scales) p.groups.a_scale_offsets = somewhere<std::int32_t>();
  }
  return p;
}

}  // namespace microscale
