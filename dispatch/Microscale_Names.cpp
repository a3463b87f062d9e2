#include <Microscale_BlockFormat.hpp>
#include <Microscale_ConfigFields.hpp>
#include <Microscale_Names.hpp>

#include <algorithm>
#include <array>
#include <type_traits>

namespace microscale {
namespace {

struct NamedFormat {
  const char* name;
  FormatId format;
};

template <class... Formats>
constexpr std::array<NamedFormat, sizeof...(Formats)> named{{{Formats::name, format_id<Formats>}...}};
constexpr auto known_formats =
    named<NVFP4, MXFP4, MXFP8_E4M3, MXFP8_E5M2, MXFP6_E2M3, MXFP6_E3M2, MXFP6_E2M3_Bytes, MXFP6_E3M2_Bytes>;
constexpr NamedFormat plain_formats[] = {{"float", float32_id},    {"f32", float32_id},     {"fp32", float32_id},
                                         {"float32", float32_id},  {"half", float16_id},    {"f16", float16_id},
                                         {"fp16", float16_id},     {"float16", float16_id}, {"bf16", bfloat16_id},
                                         {"bfloat16", bfloat16_id}};

/// The special codes that these bits have in OCP MX v1.0 and IEEE 754.
Specials usual_specials(ElementId e) {
  if (e.exponent_bits == 4 && e.mantissa_bits == 3) return Specials::nan_only;
  return e.exponent_bits + e.mantissa_bits >= 7 ? Specials::ieee : Specials::none;
}

/// A whole number of up to three digits at the start of the text, taken off it; -1 if there is none.
int take_number(std::string_view& text) {
  int value = -1;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9' && value < 100) {
    value = std::max(value, 0) * 10 + (text[0] - '0');
    text.remove_prefix(1);
  }
  return value;
}

bool take(std::string_view& text, std::string_view start) {
  const bool there = text.substr(0, start.size()) == start;
  if (there) text.remove_prefix(start.size());
  return there;
}

/// The inverse of structural_name() for block formats.
std::optional<FormatId> structure_named(std::string_view text) {
  FormatId format;
  if (!take(text, "e")) return {};
  const int exponent_bits = take_number(text);
  if (!take(text, "m")) return {};
  const int mantissa_bits = take_number(text);
  // As the concept BlockFormat has it: a code is at most a byte.
  if (exponent_bits < 0 || mantissa_bits < 0 || 1 + exponent_bits + mantissa_bits > 8) return {};
  format.element.exponent_bits = static_cast<std::uint8_t>(exponent_bits);
  format.element.mantissa_bits = static_cast<std::uint8_t>(mantissa_bits);
  format.element.specials = take(text, "(finite)") ? Specials::none
                            : take(text, "(nan)")  ? Specials::nan_only
                            : take(text, "(ieee)") ? Specials::ieee
                                                   : usual_specials(format.element);
  if (!take(text, "/")) return {};
  format.block_size = take_number(text);
  if (format.block_size <= 0 || format.block_size > 512 || format.block_size % 8 != 0) return {};
  if (take(text, "/e8m0"))
    format.scale = ScaleType::e8m0;
  else if (take(text, "/ue4m3"))
    format.scale = ScaleType::ue4m3;
  else
    return {};
  format.tensor_scale = take(text, "+tensor");
  if (take(text, "+bytes")) format.packing = Packing::byte;
  return text.empty() ? std::optional(format) : std::nullopt;
}

std::string number(float value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string describe(const EpilogueData& e) {
  std::string text;
  const auto add = [&text](bool present, const std::string& what) {
    if (present) text += (text.empty() ? "" : ", ") + what;
  };
  add(e.alpha != 1.0f || e.alpha_device, "alpha");
  add(e.row_scale.data, "row scale");
  add(e.expert_scale.data, "expert scale");
  add(e.bias.data, "bias " + to_string(e.bias.type));
  add(e.beta != 0.0f, "beta");
  add(e.activation != Activation::none, to_string(e.activation));
  add(e.gate != Gate::none, std::string("gate ") + to_string(e.gate) +
                                (e.gate_columns == GateColumns::halved ? " over halves" : " over interleaved columns"));
  add(e.gate == Gate::clamped_swiglu, "limit " + number(e.gate_limit) + ", slope " + number(e.gate_slope));
  return text;
}

}  // namespace

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::quantize:
      return "quantize";
    case Operation::dequantize:
      return "dequantize";
    case Operation::interleave_scales:
      return "interleave_scales";
    case Operation::requantize:
      return "requantize";
    case Operation::matmul:
      return "matmul";
    case Operation::batched_matmul:
      return "batched_matmul";
    case Operation::grouped_quantize:
      return "grouped_quantize";
    case Operation::grouped_matmul:
      return "grouped_matmul";
  }
  return "unknown";
}

const char* to_string(ExecutionKind kind) {
  switch (kind) {
    case ExecutionKind::host:
      return "host";
    case ExecutionKind::cuda:
      return "cuda";
    case ExecutionKind::hip:
      return "hip";
    case ExecutionKind::other:
      return "other";
  }
  return "unknown";
}

const char* to_string(ScaleLayout layout) { return name(layout); }

const char* to_string(ScaleType type) {
  switch (type) {
    case ScaleType::none:
      return "none";
    case ScaleType::e8m0:
      return "e8m0";
    case ScaleType::ue4m3:
      return "ue4m3";
  }
  return "unknown";
}

const char* to_string(Activation activation) {
  switch (activation) {
    case Activation::none:
      return "none";
    case Activation::relu:
      return "relu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::gelu_erf:
      return "gelu_erf";
    case Activation::silu:
      return "silu";
  }
  return "unknown";
}

const char* to_string(Gate gate) {
  switch (gate) {
    case Gate::none:
      return "none";
    case Gate::silu:
      return "silu";
    case Gate::clamped_swiglu:
      return "clamped_swiglu";
  }
  return "unknown";
}

std::string to_string(ElementId e) {
  if (e == float32_id.element) return "float";
  if (e == float16_id.element) return "half";
  if (e == bfloat16_id.element) return "bf16";
  if (e == float64_id.element) return "double";
  std::string bits = "e";
  bits.append(std::to_string(e.exponent_bits)).append("m").append(std::to_string(e.mantissa_bits));
  if (e.specials == usual_specials(e)) return bits;
  switch (e.specials) {
    case Specials::none:
      return bits + "(finite)";
    case Specials::nan_only:
      return bits + "(nan)";
    case Specials::ieee:
      return bits + "(ieee)";
  }
  return bits;
}

std::string structural_name(FormatId format) {
  std::string text = to_string(format.element);
  if (format.block_size != 0)
    text.append("/").append(std::to_string(format.block_size)).append("/").append(to_string(format.scale));
  if (format.tensor_scale) text += "+tensor";
  if (format.packing == Packing::byte) text += "+bytes";
  return text;
}

std::string to_string(FormatId format) {
  for (const NamedFormat& known : known_formats)
    if (known.format == format) return known.name;
  return structural_name(format);
}

std::optional<FormatId> format_named(std::string_view name) {
  std::string wanted(name);
  for (char& c : wanted) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
    if (c == '-') c = '_';
  }
  for (const NamedFormat& plain : plain_formats)
    if (wanted == plain.name) return plain.format;
  for (const NamedFormat& known : known_formats)
    if (wanted == known.name) return known.format;
  return structure_named(wanted);
}

std::string to_string(const Config& config) {
  std::string text;
  Impl::for_each_field(config, [&text](const char* name, const auto& value) {
    if (!value) return;
    text.append(text.empty() ? "" : ", ").append(name);
    if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(value)>, bool>)
      text.append(" ").append(std::to_string(value));
  });
  return text.empty() ? "automatic" : text;
}

std::string to_string(const Operand& operand) {
  std::string text = operand.batch == 1 ? "" : std::to_string(operand.batch) + " x ";
  text += std::to_string(operand.rows) + " x " + std::to_string(operand.cols) + " " + to_string(operand.format);
  if (operand.format.block_size != 0) text += std::string(", ") + to_string(operand.scale_layout) + " scales";
  if (operand.prepared_by) text += std::string(", prepared by ") + operand.prepared_by->name();
  if (operand.original_dropped) text += " (original dropped)";
  return text;
}

std::string to_string(const Problem& p) {
  std::string text = std::string(to_string(p.operation)) + " on " + to_string(p.execution);
  text += p.execution == ExecutionKind::host ? " (" + std::to_string(p.concurrency) + " threads)"
                                             : " (device " + std::to_string(p.device) + ")";
  switch (p.operation) {
    case Operation::matmul:
    case Operation::batched_matmul:
    case Operation::grouped_matmul: {
      text += ": m " + std::to_string(p.m) + ", n " + std::to_string(p.n) + ", k " + std::to_string(p.k) + "; a " +
              to_string(p.a) + "; b " + to_string(p.b) + "; c " + to_string(p.c);
      if (p.operation == Operation::grouped_matmul) text += "; " + std::to_string(p.groups.slots) + " slots";
      const std::string epilogue = describe(p.epilogue);
      if (!epilogue.empty()) text += "; epilogue " + epilogue;
      if (p.user_functor) text += "; a user's functor follows";
      return text;
    }
    default:
      return text + ": " + to_string(p.a) + " -> " + to_string(p.c);
  }
}

}  // namespace microscale
