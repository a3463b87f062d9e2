#ifndef DIGITS_REPORT_HPP
#define DIGITS_REPORT_HPP

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace digits {

/// One precision's result for one model.
struct Result {
  std::string precision;     ///< "float", "bf16", or a block format
  std::string activations;   ///< what the activations were kept in
  bool weight_only = false;  ///< a block format for the weights alone
  std::size_t correct = 0;
  double sqnr_db = 0;  ///< of the logits, against the float run; infinite for that run itself
  std::size_t weight_bytes = 0;
  double milliseconds = 0;  ///< one pass over all held-out images
};

struct ModelResults {
  std::string name;
  std::string description;
  std::size_t images = 0;
  std::vector<Result> results;

  double accuracy(const Result& r) const {
    return 100.0 * static_cast<double>(r.correct) / static_cast<double>(images);
  }
};

/// A digit after a trip through a block format (the first picture of a list is the original).
struct Picture {
  std::string precision;
  std::array<float, 64> pixels{};
};

/// What the report says about where it was made.
struct Environment {
  std::string execution_space;
  int concurrency = 1;
  std::string kokkos_version;
};

/// Prints one model's results as a table.
void print_table(const ModelResults& model);

/// Writes one HTML file that needs no other: styles, plots (SVG) and pictures are inside. Throws std::runtime_error
/// when the file cannot be written.
void write_report(const std::filesystem::path& path, const std::vector<ModelResults>& models,
                  const std::vector<Picture>& pictures, const Environment& environment);

}  // namespace digits

#endif
