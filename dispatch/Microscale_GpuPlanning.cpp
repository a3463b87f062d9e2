#include <Microscale_GpuPlanning.hpp>
#include <Microscale_Roofline.hpp>

#include <algorithm>
#include <cstring>

namespace microscale::Impl {

bool is_aligned_16(const Operand& o) {
  const std::int64_t bytes = o.format.block_size > 0 ? 1 : bits_per_code(o.format) / 8;
  return reinterpret_cast<std::uintptr_t>(o.data) % 16 == 0 && o.row_stride * bytes % 16 == 0 &&
         o.batch_stride * bytes % 16 == 0;
}

const char* unsupported_output(const Problem& p, bool (*is_written)(FormatId), ScaleLayout layout) {
  const Operand& c = p.c;
  if (c.format.block_size == 0) {
    if (!is_plain(c.format)) return "c is float, half, bf16 or a block format";
    if (c.col_stride != 1) return "rows of c are not contiguous";
  } else {
    if (!is_written(c.format)) return "no kernel quantizes to this format of c";
    if (c.format.tensor_scale && p.quantize.source == TensorScaleSource::dynamic)
      return "a dynamic tensor scale of c is not known before all of c is";
    if (c.scale_layout != layout && c.scale_layout != ScaleLayout::linear)
      return "no kernel writes this scale layout of c";
  }
  if (p.epilogue.gate != Gate::none && p.epilogue.gate_columns == GateColumns::halved)
    return "gates in the first half of the columns are in other tiles than what they multiply; interleave the rows of "
           "b";
  return nullptr;
}

Support supports_conversion(const Problem& p, bool (*is_known)(FormatId), ScaleLayout layout) {
  const auto is_layout = [&](const Operand& o) {
    return o.scale_layout == layout || o.scale_layout == ScaleLayout::linear;
  };
  switch (p.operation) {
    case Operation::quantize:
    case Operation::grouped_quantize:
      if (!is_plain(p.a.format)) return {false, "only float, half and bf16 sources"};
      if (p.a.col_stride != 1) return {false, "rows of the source are not contiguous"};
      if (!is_known(p.c.format)) return {false, "no kernel for this block format"};
      if (!is_layout(p.c)) return {false, "no kernel for this scale layout"};
      return {true};
    case Operation::dequantize:
      if (!is_plain(p.c.format)) return {false, "only float, half and bf16 destinations"};
      if (p.c.col_stride != 1) return {false, "rows of the destination are not contiguous"};
      if (!is_known(p.a.format)) return {false, "no kernel for this block format"};
      if (!is_layout(p.a)) return {false, "no kernel for this scale layout"};
      return {true};
    case Operation::interleave_scales:
      if (!is_layout(p.a) || !is_layout(p.c)) return {false, "no kernel for this scale layout"};
      return {true};
    default:
      return {false, "no kernel does this operation"};
  }
}

const Device& device_of(const char* target) {
  const auto all = devices();
  const auto it = std::find_if(all.begin(), all.end(), [&](const Device& d) { return !std::strcmp(d.target, target); });
  return it == all.end() ? all.front() : *it;
}

double planned_cost(const Problem& p, const Config& config, const Device& device) {
  constexpr double launch = 4e-6;
  const Roofline bound = roofline(p, device);
  double multiplying = bound.compute_seconds;
  if (const auto waves = predicted_waves(p, config, device); waves && waves->tiles > 0 && multiplying > 0) {
    const double k = static_cast<double>(p.k) / std::max(config.split_k, 1);
    const double tile_flops = 2.0 * config.tile_m * config.tile_n * k;
    const double unit_flops = device.flops_per_second[static_cast<std::size_t>(bound.precision)] / device.units;
    const double tile_seconds = tile_flops / (unit_flops * std::max(config.cta_group, 1));
    // Tiles that share a unit take turns.
    multiplying = std::max(multiplying, waves->waves * tile_seconds * std::max(config.groups_per_unit, 1));
  }
  double memory = bound.memory_seconds;
  // Partial sums are written and read.
  if (config.split_k > 1)
    memory += 8.0 * config.split_k * static_cast<double>(p.m) * static_cast<double>(p.n) / device.bytes_per_second;
  // The largest value is looked for in a pass of its own.
  if (!is_product(p) && p.c.format.tensor_scale && p.quantize.source == TensorScaleSource::dynamic) memory *= 2;
  return launch * (config.split_k > 1 ? 2 : 1) + std::max(multiplying, memory);
}

}  // namespace microscale::Impl
