#ifndef MICROSCALE_TOOLS_COMMANDS_HPP
#define MICROSCALE_TOOLS_COMMANDS_HPP

#include <Microscale_FileFormats.hpp>
#include <Microscale_Scale.hpp>
#include <Microscale_Selection.hpp>
#include <Microscale_Style.hpp>

#include <filesystem>
#include <map>

// The commands of the program. Each throws FileError for what is wrong with a file and UsageError for what is wrong
// with its arguments; results go to standard output, progress to standard error.
namespace microscale::tools {

inline const std::map<std::string, ScaleRule> scale_rule_names{
    {"floor", ScaleRule::floor}, {"rceil", ScaleRule::rceil}, {"ceil", ScaleRule::ceil}, {"even", ScaleRule::even}};

struct QuantizeArguments {
  std::filesystem::path input;
  std::filesystem::path output;
  FileFormat format = FileFormat::nvfp4;
  std::string scale_rule;  ///< of scale_rule_names; the default one if empty
  Selection selection;
  std::optional<Style> style;
  std::filesystem::path report;  ///< none if empty
  bool force = false;
};
void quantize_command(const QuantizeArguments& arguments);

struct DequantizeArguments {
  std::filesystem::path input;
  std::filesystem::path output;
  Dtype dtype = Dtype::BF16;
  bool force = false;
};
void dequantize_command(const DequantizeArguments& arguments);

void inspect_command(const std::filesystem::path& input, bool json);
void compare_command(const std::filesystem::path& a, const std::filesystem::path& b, bool json);
void backends_command();

}  // namespace microscale::tools

#endif
