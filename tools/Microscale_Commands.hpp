#ifndef MICROSCALE_TOOLS_COMMANDS_HPP
#define MICROSCALE_TOOLS_COMMANDS_HPP

#include <Microscale_FileFormats.hpp>
#include <Microscale_Scale.hpp>
#include <Microscale_Selection.hpp>
#include <Microscale_Style.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

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

/// A problem as the command line says it; nothing where it says nothing.
struct ShapeArguments {
  std::string operation;  ///< matmul, grouped or quantize
  std::string a, b, c;
  std::optional<std::int64_t> m, n, k;
  std::optional<std::int64_t> groups, estimated_total_m, active_experts;
  std::string scales;  ///< a scale layout's name
};

struct ExplainArguments {
  ShapeArguments shape;
  std::string target;  ///< a backend's name, or auto: this machine
  bool json = false;
};
/// Who would run it, how, and how long the hardware needs at least. Kokkos must be initialized.
void explain_command(const ExplainArguments& arguments);

struct TuneArguments {
  ShapeArguments shape;
  std::filesystem::path list;  ///< of extents, instead of those in `shape`; none if empty
  std::string backend;         ///< all that can run it if empty
  int repeat = 0;
  std::filesystem::path output;  ///< the tuning file to write or add to; none if empty
  bool json = false;
};
/// Measures configurations on this machine. Kokkos must be initialized.
void tune_command(const TuneArguments& arguments);

}  // namespace microscale::tools

#endif
