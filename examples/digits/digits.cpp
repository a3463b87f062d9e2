// digits [--data DIR] [--report FILE.html] [--small]
//
// Classifies held-out handwritten digits with two trained models, in float, in bf16 and in every block format, and says
// what each format costs in accuracy and saves in bytes. --small times one pass instead of many. Fails unless the
// results are those that train.py (float) and expect.py (block formats) computed without Microscale.

#include <Digits_Report.hpp>
#include <Digits_Run.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace digits {
namespace {

struct Options {
  std::filesystem::path data = DIGITS_DATA_DIR;
  std::filesystem::path report;
  int passes = 20;
};

/// One held-out digit, and what each format keeps of it.
std::vector<Picture> make_pictures(const Task& task) {
  const auto images = load<Matrix<float>>(task.test, "images");
  const auto three = std::find(task.labels.data(), task.labels.data() + task.labels.size(), 3) - task.labels.data();
  const auto digit = Kokkos::subview(images, three, Kokkos::ALL);
  std::vector<Picture> pictures;
  const auto add = [&](const char* name, const auto& pixels) {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), pixels);
    pictures.push_back({name, {}});
    std::copy_n(host.data(), host.size(), pictures.back().pixels.begin());
  };
  add("original", digit);
  for_each_format([&]<class Format>(const char* name) {
    const ms::BlockScaledMatrix<Format, Space> quantized("digits::digit", 1, digit.extent(0));
    const Vector<float> back("digits::digit_back", digit.extent(0));
    ms::quantize(digit, quantized);
    ms::dequantize(quantized, back);
    add(name, back);
  });
  return pictures;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--small") {
      options.passes = 1;
    } else if ((argument == "--data" || argument == "--report") && i + 1 < argc) {
      (argument == "--data" ? options.data : options.report) = argv[++i];
    } else {
      throw std::runtime_error("usage: digits [--data DIR] [--report FILE.html] [--small]; got " + argument);
    }
  }
  return options;
}

std::string kokkos_version() {
  return std::to_string(KOKKOS_VERSION / 10000) + "." + std::to_string(KOKKOS_VERSION / 100 % 100) + "." +
         std::to_string(KOKKOS_VERSION % 100);
}

void run_example(const Options& options) {
  const Task task(options.data, options.passes);
  const std::vector<ModelResults> models = {run_mlp(task), run_moe(task)};
  for (const ModelResults& model : models) print_table(model);
  if (options.report.empty()) return;
  write_report(options.report, models, make_pictures(task), {Exec::name(), Exec().concurrency(), kokkos_version()});
  std::printf("\nreport: %s\n", options.report.string().c_str());
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  try {
    digits::run_example(digits::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: %s\n", error.what());
    return 1;
  }
  return 0;
}
