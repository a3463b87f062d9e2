#ifndef MICROSCALE_TOOLS_FILEFORMATS_HPP
#define MICROSCALE_TOOLS_FILEFORMATS_HPP

#include <Microscale_Packing.hpp>
#include <Microscale_Safetensors.hpp>
#include <Microscale_Scale.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

// The block formats that the tool reads and writes. To add one: its struct in the list, its name in the enumeration.
namespace microscale::tools {

using FileFormatList = std::tuple<NVFP4, MXFP4, MXFP8_E4M3, MXFP8_E5M2, MXFP6_E2M3, MXFP6_E3M2>;

/// Index into FileFormatList.
enum class FileFormat : std::uint8_t { nvfp4, mxfp4, mxfp8_e4m3, mxfp8_e5m2, mxfp6_e2m3, mxfp6_e3m2 };

inline constexpr std::size_t file_format_count = std::tuple_size_v<FileFormatList>;

/// Calls function(F{}) with the block format F that `format` stands for.
template <std::size_t I = 0, class Function>
decltype(auto) visit_format(FileFormat format, Function&& function) {
  if constexpr (I + 1 < file_format_count) {
    if (static_cast<std::size_t>(format) != I) return visit_format<I + 1>(format, std::forward<Function>(function));
  }
  return std::forward<Function>(function)(std::tuple_element_t<I, FileFormatList>{});
}

/// What the shapes and names in a file follow from.
struct FormatTraits {
  FormatId id;
  Dtype data;  ///< of the tensor that holds the codes: U8 if they are packed
  const char* library_name;

  bool packed() const { return data == Dtype::U8; }
  std::uint64_t scale_cols(std::uint64_t cols) const {
    const auto block = static_cast<std::uint64_t>(id.block_size);
    return cols / block + (cols % block != 0);
  }
  std::uint64_t row_bytes(std::uint64_t cols) const {
    return static_cast<std::uint64_t>(packed_bytes(id, static_cast<std::int64_t>(cols)));
  }
};

inline FormatTraits traits_of(FileFormat format) {
  return visit_format(format, [](auto f) {
    using F = decltype(f);
    constexpr Dtype data = std::is_same_v<typename F::element, E4M3>   ? Dtype::F8_E4M3
                           : std::is_same_v<typename F::element, E5M2> ? Dtype::F8_E5M2
                                                                       : Dtype::U8;
    return FormatTraits{format_id<F>, data, F::name};
  });
}

/// The name on the command line and in configs: the library's, with '-' for '_' ("mxfp8-e4m3").
inline std::string to_string(FileFormat format) {
  std::string name = traits_of(format).library_name;
  for (char& c : name)
    if (c == '_') c = '-';
  return name;
}

inline std::optional<FileFormat> format_from(std::string_view name) {
  for (std::size_t i = 0; i < file_format_count; ++i)
    if (to_string(static_cast<FileFormat>(i)) == name) return static_cast<FileFormat>(i);
  return std::nullopt;
}

}  // namespace microscale::tools

#endif
