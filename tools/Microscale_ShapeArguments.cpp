#include <Microscale_Errors.hpp>
#include <Microscale_Names.hpp>
#include <Microscale_ShapeArguments.hpp>

#include <limits>

namespace microscale::tools {
namespace {

/// One that fits: products of two extents are then within 64 bits.
constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();

std::int64_t extent(const char* option, const std::optional<std::int64_t>& value, const std::string& operation) {
  if (!value) throw UsageError(operation + " needs " + option);
  if (*value < 1 || *value > largest)
    throw UsageError(std::string(option) + " " + std::to_string(*value) + ": expected a whole number from 1 to " +
                     std::to_string(largest));
  return *value;
}

FormatId format(const char* option, const std::string& name, const std::string& operation) {
  if (name.empty()) throw UsageError(operation + " needs " + option);
  const std::optional<FormatId> found = format_named(name);
  if (!found)
    throw UsageError(std::string(option) + " " + printable(name) +
                     ": no such format; expected f32, f16, bf16, nvfp4, mxfp4, mxfp6_e2m3, mxfp6_e3m2, mxfp8_e4m3, "
                     "mxfp8_e5m2, or a structure like e2m1/32/e8m0");
  return *found;
}

void refuse(bool given, const char* option, const std::string& operation) {
  if (given) throw UsageError(operation + " takes no " + option);
}

ScaleLayout layout_named(const std::string& name) {
  for (const ScaleLayout layout : {ScaleLayout::linear, ScaleLayout::tcgen, ScaleLayout::cdna4, ScaleLayout::tile_8x4})
    if (name == to_string(layout)) return layout;
  throw UsageError("--scales " + printable(name) + ": expected linear, tcgen, cdna4 or tile_8x4");
}

/// quantize: A to C (or B), m x k (or m x n).
Shape quantize_shape(const ShapeArguments& arguments) {
  const std::string& op = arguments.operation;
  if (!arguments.b.empty() && !arguments.c.empty()) throw UsageError("quantize has one result: --c, or --b, not both");
  if (arguments.n && arguments.k) throw UsageError("quantize has one number of columns: -k, or -n, not both");
  refuse(arguments.groups.has_value(), "--groups", op);
  Shape shape;
  shape.operation = Operation::quantize;
  shape.a = format("--a", arguments.a, op);
  shape.c = format("--c", arguments.c.empty() ? arguments.b : arguments.c, op);
  shape.m = extent("-m", arguments.m, op);
  shape.k = arguments.n ? extent("-n", arguments.n, op) : extent("-k", arguments.k, op);
  if (shape.a.block_size != 0) throw UsageError("--a " + arguments.a + ": quantize takes f32, f16 or bf16");
  if (shape.c.block_size == 0) throw UsageError("--c " + to_string(shape.c) + ": quantize gives a block format");
  return shape;
}

Shape matmul_shape(const ShapeArguments& arguments) {
  const std::string& op = arguments.operation;
  const bool grouped = op == "grouped";
  Shape shape;
  shape.operation = grouped ? Operation::grouped_matmul : Operation::matmul;
  shape.a = format("--a", arguments.a, op);
  shape.b = format("--b", arguments.b, op);
  shape.c = arguments.c.empty() ? bfloat16_id : format("--c", arguments.c, op);
  shape.n = extent("-n", arguments.n, op);
  shape.k = extent("-k", arguments.k, op);
  if (!grouped) {
    refuse(arguments.groups.has_value(), "--groups", op);
    refuse(arguments.active_experts.has_value(), "--active-experts", op);
    refuse(arguments.estimated_total_m.has_value(), "--estimated-total-m", op);
    shape.m = extent("-m", arguments.m, op);
    return shape;
  }
  if (shape.b.block_size == 0) throw UsageError("--b " + arguments.b + ": grouped takes a block format");
  shape.groups = extent("--groups", arguments.groups, op);
  if (arguments.estimated_total_m) {
    shape.hints.estimated_total_m = extent("--estimated-total-m", arguments.estimated_total_m, op);
    shape.hints.active_experts = shape.groups;
  }
  if (arguments.active_experts) shape.hints.active_experts = extent("--active-experts", arguments.active_experts, op);
  shape.m = extent("-m", arguments.m ? arguments.m : arguments.estimated_total_m, op);
  return shape;
}

}  // namespace

Shape shape_from(const ShapeArguments& arguments) {
  Shape shape = arguments.operation == "quantize" ? quantize_shape(arguments) : matmul_shape(arguments);
  if (!arguments.scales.empty()) shape.scale_layout = layout_named(arguments.scales);
  return shape;
}

std::string to_string(const Shape& shape) {
  const auto number = [](const char* name, std::int64_t value) { return std::string(name) + std::to_string(value); };
  std::string text = std::string(microscale::to_string(shape.operation)) + " " + to_string(shape.a);
  if (shape.operation != Operation::quantize) text += " x " + to_string(shape.b);
  text += " -> " + to_string(shape.c) + number(", m ", shape.m);
  if (shape.operation != Operation::quantize) text += number(", n ", shape.n);
  text += number(", k ", shape.k);
  if (shape.groups > 0) text += number(", groups ", shape.groups);
  if (shape.hints.estimated_total_m > 0) text += number(", estimated total m ", shape.hints.estimated_total_m);
  return text;
}

}  // namespace microscale::tools
