#ifndef MICROSCALE_FUZZ_SAFETENSORS_HPP
#define MICROSCALE_FUZZ_SAFETENSORS_HPP

#include <Microscale_Errors.hpp>
#include <Microscale_Safetensors.hpp>
#include <Microscale_Selection.hpp>
#include <Microscale_Style.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <unordered_map>

namespace microscale::test {

/// What the tool does with a file before it computes: reads the header, then puts block-scaled tensors together.
/// Returns whether the file was accepted; aborts if an accepted file promises bytes that it does not have. Any
/// exception but FileError escapes.
inline bool read_untrusted(std::span<const std::byte> file) {
  namespace t = microscale::tools;
  try {
    const auto header = t::parse_safetensors(file, "file");
    std::unordered_map<std::string, const t::TensorInfo*> by_name;
    std::uint64_t bytes = 0;
    for (const auto& tensor : header.tensors) {
      if (!by_name.emplace(tensor.name, &tensor).second) std::abort();
      if (tensor.end > file.size() - header.data_begin || tensor.begin != bytes) std::abort();
      bytes = tensor.end;
    }
    if (bytes != file.size() - header.data_begin) std::abort();
    const t::FindTensor find = [&](const std::string& name) -> const t::TensorInfo* {
      const auto found = by_name.find(name);
      return found == by_name.end() ? nullptr : found->second;
    };
    for (const auto stated : {std::optional<t::FileFormat>(), std::optional(t::FileFormat::mxfp6_e3m2)})
      for (const auto& tensor : header.tensors) {
        t::reason_to_leave(tensor, t::FileFormat::nvfp4, {});
        const auto logical = t::logical_tensor(tensor, find, stated, "file");
        if (!logical) continue;
        t::is_unknown_quantization(*logical, find);
        t::type_text(*logical);
        if (!logical->format) continue;
        // The codes of all rows must be there.
        const auto traits = t::traits_of(*logical->format);
        std::uint64_t rows = 1;
        for (std::size_t i = 0; i + 1 < logical->shape.size(); ++i) rows *= logical->shape[i];
        if (rows * traits.row_bytes(logical->shape.back()) != logical->data->bytes()) std::abort();
        if (rows * traits.scale_cols(logical->shape.back()) != logical->scale->bytes()) std::abort();
      }
    return true;
  } catch (const t::FileError&) {
    return false;
  }
}

}  // namespace microscale::test

#endif
