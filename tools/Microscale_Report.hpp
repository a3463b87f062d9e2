#ifndef MICROSCALE_TOOLS_REPORT_HPP
#define MICROSCALE_TOOLS_REPORT_HPP

#include <Microscale_ErrorSums.hpp>
#include <Microscale_Json.hpp>
#include <Microscale_Safetensors.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace microscale::tools {

/// What became of one tensor.
struct ReportTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  Dtype dtype = Dtype::F32;  ///< before
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
  std::optional<std::string> reason;  ///< why it was left alone; nothing if it was quantized
  std::optional<ErrorSums> error;     ///< of the quantized values against the original ones
};

struct Report {
  std::string input;
  std::string output;
  std::string format;
  std::string style;
  std::string scale_rule;
  std::vector<ReportTensor> tensors;
};

/// The measures of ErrorSums under their names; null where a measure is infinite or, with `has_blocks` false, unknown.
Json measures_json(const ErrorSums& sums, bool has_blocks);

Json report_json(const Report& report);
/// A page without any external file: totals, plots as inline SVG, a table.
std::string report_html(const Report& report);

enum class ReportKind : std::uint8_t { json, html };
/// By the extension of the file. Throws UsageError for any other than .json and .html.
ReportKind report_kind(const std::filesystem::path& path);
/// Creates the file, which must not exist. Throws FileError.
void write_report(const Report& report, const std::filesystem::path& path);

/// "12.3 MB", in powers of 1000.
std::string human_bytes(std::uint64_t bytes);
/// A number with so many significant digits; "inf" for infinity.
std::string number_text(double value, int digits);

}  // namespace microscale::tools

#endif
