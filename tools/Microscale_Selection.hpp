#ifndef MICROSCALE_TOOLS_SELECTION_HPP
#define MICROSCALE_TOOLS_SELECTION_HPP

#include <Microscale_FileFormats.hpp>
#include <Microscale_Safetensors.hpp>

#include <optional>
#include <regex>
#include <string>

namespace microscale::tools {

/// Which tensors are quantized. Regular expressions are ECMAScript and match anywhere in the name.
struct Selection {
  std::optional<std::regex> include;  ///< replaces the rule that goes by names
  std::optional<std::regex> exclude;  ///< has the last word
};

/// The longest regular expression.
inline constexpr std::size_t max_expression_bytes = 1000;

/// The regular expression of a command-line option, without back-references and of at most max_expression_bytes, so
/// that matching takes time and memory in proportion to the name. Throws UsageError naming the option.
std::regex regular_expression(const std::string& option, const std::string& text);

/// Whether a dtype can be quantized: F64, F32, F16, BF16.
bool is_quantizable(Dtype dtype);

/// Why a tensor is left alone, or nothing if it is to be quantized.
///
/// By default those are quantized whose name ends in "weight", save embeddings, norms, routers and the output head;
/// with `include`, those that it matches. In both cases they must have rank 2 or 3, be F64, F32, F16 or BF16, not be
/// empty, and have whole blocks along the last dimension.
std::optional<std::string> reason_to_leave(const TensorInfo& tensor, FileFormat format, const Selection& selection);

/// Whether the default rule takes `name` for an embedding.
bool is_embedding(const std::string& name);

}  // namespace microscale::tools

#endif
