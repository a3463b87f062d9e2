#include <Microscale_Errors.hpp>
#include <Microscale_Style.hpp>

#include <algorithm>
#include <array>

namespace microscale::tools {
namespace {

constexpr std::array style_names{"compressed-tensors", "modelopt", "microscale", "gpt-oss"};

/// The name of a format in compressed-tensors' config, or null where it has none.
const char* compressed_tensors_name(FileFormat format) {
  switch (format) {
    case FileFormat::nvfp4:
      return "nvfp4-pack-quantized";
    case FileFormat::mxfp4:
      return "mxfp4-pack-quantized";
    case FileFormat::mxfp8_e4m3:
      return "mxfp8-quantized";
    case FileFormat::mxfp6_e2m3:
      return "mxfp6-pack-quantized";
    default:
      return nullptr;
  }
}

/// The name of a format in ModelOpt's config, or null where it has none.
const char* modelopt_name(FileFormat format) {
  switch (format) {
    case FileFormat::nvfp4:
      return "NVFP4";
    case FileFormat::mxfp8_e4m3:
      return "MXFP8";
    default:
      return nullptr;
  }
}

bool ends_with(std::string_view text, std::string_view end) { return text.ends_with(end) && text.size() > end.size(); }

std::string without(const std::string& text, std::string_view end) { return text.substr(0, text.size() - end.size()); }

std::string described(const TensorInfo& tensor) {
  return "\"" + printable(tensor.name) + "\" (" + std::string(to_string(tensor.dtype)) + " " +
         shape_text(tensor.shape) + ")";
}

bool is_e8m0(Dtype dtype) { return dtype == Dtype::U8 || dtype == Dtype::F8_E8M0; }

bool same_rows(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  return !a.empty() && a.size() == b.size() && std::equal(a.begin(), a.end() - 1, b.begin());
}

/// The number of elements in a row of `bytes` bytes, if codes of the format fill it and have `scales` block scales.
std::optional<std::uint64_t> row_elements(FileFormat format, std::uint64_t bytes, std::uint64_t scales) {
  const FormatTraits traits = traits_of(format);
  const auto bits = static_cast<std::uint64_t>(bits_per_code(traits.id));
  if (bytes > UINT64_MAX / 8) return std::nullopt;
  const std::uint64_t cols = bytes * 8 / bits;
  if (cols * bits != bytes * 8 || traits.scale_cols(cols) != scales) return std::nullopt;
  return cols;
}

class Reader {
 public:
  Reader(const FindTensor& find, const std::string& path) : m_find(find), m_path(path) {}

  const TensorInfo* find(const std::string& name) const { return m_find(name); }

  [[noreturn]] void fail(const TensorInfo& tensor, const std::string& reason) const {
    throw FileError(m_path, "tensor " + described(tensor) + " " + reason);
  }

  /// The tensor, checked against its scales; `half` says which kind of tensor scale it has and `suffix` where.
  LogicalTensor block_scaled(const TensorInfo& data, const TensorInfo& scale, std::string name, FileFormat format,
                             Style style, TensorScaleHalf half = TensorScaleHalf::none,
                             const std::string& suffix = "") const {
    if (!same_rows(data.shape, scale.shape)) fail(data, "does not have the rows of its scales " + described(scale));
    const auto cols = row_elements(format, data.shape.back(), scale.shape.back());
    if (!cols)
      fail(data, "and its scales " + described(scale) + " do not fit each other as " + to_string(format) + ": " +
                     std::to_string(traits_of(format).id.block_size) + " elements share a scale");
    LogicalTensor tensor{.name = std::move(name),
                         .shape = data.shape,
                         .format = format,
                         .style = style,
                         .half = half,
                         .data = &data,
                         .scale = &scale};
    tensor.shape.back() = *cols;
    if (half != TensorScaleHalf::none) {
      tensor.tensor_scale = find(tensor.name + suffix);
      if (tensor.tensor_scale == nullptr)
        fail(data, "needs the tensor scale \"" + printable(tensor.name + suffix) + "\", which is missing");
      if (tensor.tensor_scale->dtype != Dtype::F32 || tensor.tensor_scale->elements() != 1)
        fail(*tensor.tensor_scale, "is a tensor scale and must be one F32 value");
    }
    return tensor;
  }

 private:
  const FindTensor& m_find;
  const std::string& m_path;
};

/// `name`_packed with `name`_scale: compressed-tensors, and microscale for what that lacks.
std::optional<LogicalTensor> read_packed(const TensorInfo& data, const Reader& reader,
                                         std::optional<FileFormat> stated) {
  const std::string name = without(data.name, "_packed");
  const TensorInfo* const scale = reader.find(name + "_scale");
  if (data.dtype != Dtype::U8) return std::nullopt;  // integer formats pack into other types
  if (scale == nullptr) reader.fail(data, "has no scales: \"" + printable(name + "_scale") + "\" is missing");
  if (scale->dtype == Dtype::F8_E4M3)
    return reader.block_scaled(data, *scale, name, FileFormat::nvfp4, Style::compressed_tensors,
                               TensorScaleHalf::encode, "_global_scale");
  if (!is_e8m0(scale->dtype)) reader.fail(*scale, "is no type that block scales have (F8_E4M3, U8, F8_E8M0)");
  if (!same_rows(data.shape, scale->shape))
    reader.fail(data, "does not have the rows of its scales " + described(*scale));
  const bool fits_fp4 = row_elements(FileFormat::mxfp4, data.shape.back(), scale->shape.back()).has_value();
  const bool fits_fp6 = row_elements(FileFormat::mxfp6_e2m3, data.shape.back(), scale->shape.back()).has_value();
  const bool stated_fp6 = stated == FileFormat::mxfp6_e2m3 || stated == FileFormat::mxfp6_e3m2;
  if (fits_fp6 && (stated_fp6 || !fits_fp4)) {
    if (!stated_fp6)
      reader.fail(data, "holds 6-bit codes, and neither config.json nor the file says whether they are E2M3 or E3M2");
    return reader.block_scaled(data, *scale, name, *stated, default_style(*stated));
  }
  return reader.block_scaled(data, *scale, name, FileFormat::mxfp4, Style::compressed_tensors);
}

/// `name` itself with `name`_scale: ModelOpt, and the 8-bit formats of the other styles.
std::optional<LogicalTensor> read_named(const TensorInfo& data, const TensorInfo& scale, const Reader& reader) {
  if (data.dtype == Dtype::U8 && scale.dtype == Dtype::F8_E4M3)
    return reader.block_scaled(data, scale, data.name, FileFormat::nvfp4, Style::modelopt, TensorScaleHalf::decode,
                               "_scale_2");
  const bool fp8 = data.dtype == Dtype::F8_E4M3 || data.dtype == Dtype::F8_E5M2;
  if (fp8 && scale.dtype == Dtype::F32 && scale.elements() == 1)
    return LogicalTensor{.name = data.name,
                         .shape = data.shape,
                         .format = {},
                         .style = Style::modelopt,
                         .half = TensorScaleHalf::decode,
                         .data = &data,
                         .tensor_scale = &scale,
                         .scaled_fp8 = true};
  if (!is_e8m0(scale.dtype)) return std::nullopt;
  if (data.dtype == Dtype::F8_E4M3)
    return reader.block_scaled(data, scale, data.name, FileFormat::mxfp8_e4m3, Style::compressed_tensors);
  if (data.dtype == Dtype::F8_E5M2)
    return reader.block_scaled(data, scale, data.name, FileFormat::mxfp8_e5m2, Style::microscale);
  return std::nullopt;
}

/// gpt-oss: blocks U8 [..., K/32, 16] with scales U8 [..., K/32].
LogicalTensor read_blocks(const TensorInfo& data, const TensorInfo& scale, std::string name, const Reader& reader) {
  const auto& shape = data.shape;
  if (data.dtype != Dtype::U8 || !is_e8m0(scale.dtype) || shape.size() < 2 || shape.back() != 16 ||
      !std::equal(shape.begin(), shape.end() - 1, scale.shape.begin(), scale.shape.end()))
    reader.fail(data, "and its scales " + described(scale) + " are not MXFP4 blocks of 16 bytes with a scale each");
  LogicalTensor tensor{.name = std::move(name),
                       .shape = {shape.begin(), shape.end() - 1},
                       .format = FileFormat::mxfp4,
                       .style = Style::gpt_oss,
                       .data = &data,
                       .scale = &scale};
  if (__builtin_mul_overflow(tensor.shape.back(), std::uint64_t{32}, &tensor.shape.back()))
    reader.fail(data, "is too large");
  return tensor;
}

struct BlockNames {
  std::string_view blocks;
  std::string_view scales;
};
constexpr std::array gpt_oss_names{BlockNames{"_blocks", "_scales"}, BlockNames{".blocks", ".scales"}};

/// The block-scaled tensor whose codes `tensor` holds, if it does.
std::optional<LogicalTensor> block_scaled_tensor(const TensorInfo& tensor, const Reader& reader,
                                                 std::optional<FileFormat> stated) {
  if (ends_with(tensor.name, "_packed"))
    if (auto logical = read_packed(tensor, reader, stated)) return logical;
  if (const TensorInfo* const scale = reader.find(tensor.name + "_scale"))
    if (auto logical = read_named(tensor, *scale, reader)) return logical;
  for (const auto& names : gpt_oss_names)
    if (ends_with(tensor.name, names.blocks)) {
      std::string name = without(tensor.name, names.blocks);
      if (const TensorInfo* const scale = reader.find(name + std::string(names.scales)))
        return read_blocks(tensor, *scale, std::move(name), reader);
    }
  return std::nullopt;
}

/// Whether `tensor` is the block scale or the tensor scale of a block-scaled tensor.
bool is_part(const TensorInfo& tensor, const Reader& reader, std::optional<FileFormat> stated) {
  const auto owned_by = [&](const std::string& name) {
    const TensorInfo* const owner = reader.find(name);
    if (owner == nullptr || owner == &tensor) return false;
    const auto logical = block_scaled_tensor(*owner, reader, stated);
    return logical && (logical->scale == &tensor || logical->tensor_scale == &tensor);
  };
  for (const std::string_view end : {"_scale", "_global_scale", "_scale_2"})
    if (ends_with(tensor.name, end)) {
      const std::string name = without(tensor.name, end);
      if (owned_by(name + "_packed") || owned_by(name)) return true;
    }
  for (const auto& names : gpt_oss_names)
    if (ends_with(tensor.name, names.scales) &&
        owned_by(without(tensor.name, names.scales) + std::string(names.blocks)))
      return true;
  return false;
}

/// CompressedTensors' description of how the weights were quantized; activations are left to the runtime.
Json compressed_tensors_scheme(FileFormat format, const std::vector<std::string>& more_targets) {
  const FormatTraits traits = traits_of(format);
  Json targets = {"Linear"};
  for (const auto& target : more_targets) targets.push_back(target);
  return {{"targets", targets},
          {"weights",
           {{"num_bits", bits_per_code(traits.id)},
            {"type", "float"},
            {"symmetric", true},
            {"group_size", traits.id.block_size},
            {"strategy", traits.id.tensor_scale ? "tensor_group" : "group"},
            {"dynamic", false},
            {"scale_dtype", traits.id.scale == ScaleType::ue4m3 ? "torch.float8_e4m3fn" : "torch.uint8"}}}};
}

}  // namespace

std::string_view to_string(Style style) { return style_names[static_cast<std::size_t>(style)]; }

std::optional<Style> style_from(std::string_view name) {
  for (const Style style : {Style::compressed_tensors, Style::modelopt, Style::microscale})
    if (to_string(style) == name) return style;
  return std::nullopt;
}

bool holds(Style style, FileFormat format) {
  switch (style) {
    case Style::compressed_tensors:
      return compressed_tensors_name(format) != nullptr;
    case Style::modelopt:
      return modelopt_name(format) != nullptr;
    case Style::microscale:
      return true;
    case Style::gpt_oss:
      return false;
  }
  return false;
}

Style default_style(FileFormat format) {
  return holds(Style::compressed_tensors, format) ? Style::compressed_tensors : Style::microscale;
}

StoredTensor stored_tensor(Style style, FileFormat format, const std::string& name,
                           const std::vector<std::uint64_t>& shape) {
  const FormatTraits traits = traits_of(format);
  StoredTensor stored;
  const bool suffixed = traits.packed() && style != Style::modelopt;
  stored.data = {name + (suffixed ? "_packed" : ""), traits.data, shape, 0, 0};
  if (traits.packed()) stored.data.shape.back() = traits.row_bytes(shape.back());
  const Dtype scale = traits.id.scale == ScaleType::ue4m3 ? Dtype::F8_E4M3 : Dtype::U8;
  stored.scale = {name + "_scale", scale, shape, 0, 0};
  stored.scale.shape.back() = traits.scale_cols(shape.back());
  if (traits.id.tensor_scale) {
    const bool modelopt = style == Style::modelopt;
    stored.half = modelopt ? TensorScaleHalf::decode : TensorScaleHalf::encode;
    stored.tensor_scale = {name + (modelopt ? "_scale_2" : "_global_scale"), Dtype::F32, {}, 0, 0};
    if (!modelopt) stored.tensor_scale.shape = {1};
  }
  return stored;
}

std::string type_text(const LogicalTensor& tensor) {
  if (tensor.format) return to_string(*tensor.format);
  return std::string(to_string(tensor.data->dtype)) + (tensor.scaled_fp8 ? " scaled" : "");
}

std::optional<LogicalTensor> logical_tensor(const TensorInfo& tensor, const FindTensor& find,
                                            std::optional<FileFormat> stated, const std::string& path) {
  const Reader reader(find, path);
  if (auto logical = block_scaled_tensor(tensor, reader, stated)) return logical;
  if (is_part(tensor, reader, stated)) return std::nullopt;
  return LogicalTensor{.name = tensor.name, .shape = tensor.shape, .format = {}, .data = &tensor};
}

bool is_unknown_quantization(const LogicalTensor& tensor, const FindTensor& find) {
  // Real numbers and positions may have something called a scale beside them for reasons of their own.
  constexpr std::array no_codes{Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::I64, Dtype::BOOL};
  if (tensor.is_quantized() || std::find(no_codes.begin(), no_codes.end(), tensor.data->dtype) != no_codes.end())
    return false;
  const auto has_scales = [&](const std::string& name) {
    return find(name + "_scale") != nullptr || find(name + "_scale_inv") != nullptr ||
           find(name + "_scales") != nullptr;
  };
  for (const std::string_view end : {"_packed", "_blocks"})
    if (ends_with(tensor.name, end) && has_scales(without(tensor.name, end))) return true;
  return has_scales(tensor.name);
}

Json quantization_config(Style style, FileFormat format, const std::string& scale_rule,
                         const std::vector<std::string>& ignored, const std::vector<std::string>& targets) {
  switch (style) {
    case Style::compressed_tensors:
      return {{"quant_method", "compressed-tensors"},
              {"format", compressed_tensors_name(format)},
              {"quantization_status", "compressed"},
              {"ignore", ignored},
              {"config_groups", {{"group_0", compressed_tensors_scheme(format, targets)}}}};
    case Style::modelopt: {
      Json config = modelopt_config(format, ignored);
      Json flat = config["quantization"];
      flat["ignore"] = std::move(flat["exclude_modules"]);
      flat.erase("exclude_modules");
      flat["producer"] = config["producer"];
      flat["quant_method"] = "modelopt";
      return flat;
    }
    default: {
      Json config = {{"quant_method", "microscale"}, {"format", to_string(format)}, {"ignore", ignored}};
      if (!scale_rule.empty()) config["scale_rule"] = scale_rule;
      return config;
    }
  }
}

Json modelopt_config(FileFormat format, const std::vector<std::string>& ignored) {
  return {{"producer", {{"name", "modelopt"}, {"version", "microscale"}}},
          {"quantization",
           {{"quant_algo", modelopt_name(format)},
            {"group_size", traits_of(format).id.block_size},
            {"kv_cache_quant_algo", nullptr},
            {"exclude_modules", ignored}}}};
}

std::optional<FileFormat> stated_format(const Json& quantization_config) {
  if (!quantization_config.is_object()) return std::nullopt;
  const auto text = [&](const char* key) -> std::string {
    const auto found = quantization_config.find(key);
    return found != quantization_config.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const std::string method = text("quant_method");
  for (std::size_t i = 0; i < file_format_count; ++i) {
    const auto format = static_cast<FileFormat>(i);
    const char* const foreign = method == "compressed-tensors" ? compressed_tensors_name(format) : nullptr;
    if (foreign != nullptr && text("format") == foreign) return format;
    if (method == "microscale" && text("format") == to_string(format)) return format;
  }
  return std::nullopt;
}

}  // namespace microscale::tools
