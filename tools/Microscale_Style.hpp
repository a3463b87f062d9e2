#ifndef MICROSCALE_TOOLS_STYLE_HPP
#define MICROSCALE_TOOLS_STYLE_HPP

#include <Microscale_FileFormats.hpp>
#include <Microscale_Json.hpp>
#include <Microscale_Safetensors.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// How files name and type the parts of a block-scaled tensor (docs/checkpoints.md).
namespace microscale::tools {

/// Whose conventions a file follows. gpt_oss is read only.
enum class Style : std::uint8_t { compressed_tensors, modelopt, microscale, gpt_oss };

std::string_view to_string(Style style);
/// The style of that name among those that can be written.
std::optional<Style> style_from(std::string_view name);
/// Whether files of that style can hold that format.
bool holds(Style style, FileFormat format);
/// compressed_tensors where it has the format, else microscale.
Style default_style(FileFormat format);

/// Which half of the tensor-scale pair a file stores: values are multiplied by `decode` to get them back, `encode` is
/// what they were multiplied by.
enum class TensorScaleHalf : std::uint8_t { none, decode, encode };

/// A block-scaled tensor as a file lists it.
struct StoredTensor {
  TensorInfo data;
  TensorInfo scale;
  TensorInfo tensor_scale;  ///< only if half is not none
  TensorScaleHalf half = TensorScaleHalf::none;
};

/// The tensors that hold `name` of that logical shape (rank at least 1) in that style. Offsets are left 0.
StoredTensor stored_tensor(Style style, FileFormat format, const std::string& name,
                           const std::vector<std::uint64_t>& shape);

/// A tensor as a user sees it: plain, or quantized and put together from its parts.
struct LogicalTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::optional<FileFormat> format;  ///< nothing: a plain tensor
  Style style = Style::microscale;   ///< if block-scaled
  TensorScaleHalf half = TensorScaleHalf::none;
  const TensorInfo* data = nullptr;
  const TensorInfo* scale = nullptr;
  const TensorInfo* tensor_scale = nullptr;
  /// FP8 codes with only a tensor scale, which is no block format but stands beside NVFP4 in ModelOpt's mixed files.
  bool scaled_fp8 = false;

  bool is_quantized() const { return format.has_value() || scaled_fp8; }
};

/// The block format of a tensor, or its dtype ("F8_E4M3 scaled" for FP8 with a tensor scale).
std::string type_text(const LogicalTensor& tensor);

/// Finds a tensor anywhere in the checkpoint, or null.
using FindTensor = std::function<const TensorInfo*(const std::string&)>;

/// What `tensor` is: a plain tensor, a quantized one (it is the part with the codes), or nothing (a scale, which
/// belongs to another). `stated` is the format that the file or its config names, if any: only it tells the two MXFP6
/// formats apart. Throws FileError, with `path`, naming the tensor, when parts are missing or do not fit: never a
/// guess.
std::optional<LogicalTensor> logical_tensor(const TensorInfo& tensor, const FindTensor& find,
                                            std::optional<FileFormat> stated, const std::string& path);

/// Whether a plain tensor looks like the codes of a quantized one that this program does not know: it is no
/// floating-point tensor and has scales.
bool is_unknown_quantization(const LogicalTensor& tensor, const FindTensor& find);

/// The "quantization_config" of a file in that style. `ignored` are the modules left unquantized, `targets` quantized
/// modules that are no linear layers, and `scale_rule` is recorded in the microscale style.
Json quantization_config(Style style, FileFormat format, const std::string& scale_rule,
                         const std::vector<std::string>& ignored, const std::vector<std::string>& targets);

/// The contents of ModelOpt's hf_quant_config.json.
Json modelopt_config(FileFormat format, const std::vector<std::string>& ignored);

/// The format that a "quantization_config" states for the whole file, if it is one of ours.
std::optional<FileFormat> stated_format(const Json& quantization_config);

}  // namespace microscale::tools

#endif
