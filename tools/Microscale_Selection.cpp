#include <Microscale_Errors.hpp>
#include <Microscale_Selection.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <vector>

namespace microscale::tools {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return result;
}

/// The parts of a name between its dots, in lower case, without the last ("weight").
std::vector<std::string> modules(const std::string& name) {
  std::vector<std::string> parts;
  std::string_view rest = name;
  for (auto dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
    parts.push_back(lower(rest.substr(0, dot)));
    rest.remove_prefix(dot + 1);
  }
  return parts;
}

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// What the parts are called across the models that are in wide use.
constexpr std::array<std::string_view, 4> embeddings{"wte", "wpe", "embd", "emb"};
constexpr std::array<std::string_view, 6> norms{"ln", "ln_1", "ln_2", "ln_f", "ln_pre", "ln_post"};
constexpr std::array<std::string_view, 3> routers{"gate", "shared_expert_gate", "gating"};
constexpr std::array<std::string_view, 3> heads{"lm_head", "embed_out", "output_head"};

bool is_norm(const std::string& module) { return module.find("norm") != std::string::npos || is_one_of(module, norms); }

std::optional<std::string> reason_by_name(const std::string& name) {
  if (!name.ends_with("weight")) return "not a weight";
  const auto parts = modules(name);
  if (parts.empty()) return std::nullopt;
  // An expert's linear layer may live inside a part that is called after a norm or gate: only the layer's name counts.
  if (is_norm(parts.back())) return "norm";
  if (is_embedding(name)) return "embedding";
  if (is_one_of(parts.back(), routers) || std::find(parts.begin(), parts.end(), "router") != parts.end())
    return "router";
  if (is_one_of(parts.back(), heads) || (parts.size() == 1 && parts.back() == "output")) return "lm_head";
  return std::nullopt;
}

}  // namespace

std::regex regular_expression(const std::string& option, const std::string& text) {
  if (text.size() > max_expression_bytes)
    throw UsageError(option + " has more than " + std::to_string(max_expression_bytes) + " bytes");
  auto flags = std::regex::ECMAScript | std::regex::optimize;
#ifdef __GLIBCXX__
  // Names come from files that are not trusted: by default libstdc++ backtracks, which may take exponential time and a
  // stack frame for each character.
  flags |= std::regex_constants::__polynomial;
#endif
  try {
    return std::regex(text, flags);
  } catch (const std::regex_error& error) {
    throw UsageError(option + " \"" + printable(text) + "\" is no regular expression: " + error.what());
  }
}

bool is_quantizable(Dtype dtype) {
  return dtype == Dtype::F64 || dtype == Dtype::F32 || dtype == Dtype::F16 || dtype == Dtype::BF16;
}

bool is_embedding(const std::string& name) {
  const auto parts = modules(name);
  return std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.find("embed") != std::string::npos || is_one_of(part, embeddings);
  });
}

std::optional<std::string> reason_to_leave(const TensorInfo& tensor, FileFormat format, const Selection& selection) {
  if (selection.exclude && std::regex_search(tensor.name, *selection.exclude)) return "excluded";
  if (selection.include) {
    if (!std::regex_search(tensor.name, *selection.include)) return "not included";
  } else if (auto reason = reason_by_name(tensor.name)) {
    return reason;
  }
  if (!is_quantizable(tensor.dtype)) return "dtype " + std::string(to_string(tensor.dtype));
  if (tensor.shape.size() != 2 && tensor.shape.size() != 3) return "rank " + std::to_string(tensor.shape.size());
  if (tensor.elements() == 0) return "empty";
  const auto block = static_cast<std::uint64_t>(traits_of(format).id.block_size);
  if (tensor.shape.back() % block != 0)
    return "K = " + std::to_string(tensor.shape.back()) + " is not a multiple of the block of " + std::to_string(block);
  return std::nullopt;
}

}  // namespace microscale::tools
