#ifndef DIGITS_RUN_HPP
#define DIGITS_RUN_HPP

#include <Digits_BlockScaled.hpp>
#include <Digits_Plain.hpp>
#include <Digits_Report.hpp>
#include <Digits_Tensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace digits {

/// The held-out images with their labels, and how often to time a run over them.
struct Task {
  std::filesystem::path data;
  int passes;
  File test;
  Kokkos::View<std::int32_t*, Kokkos::LayoutRight, Kokkos::HostSpace> labels;

  Task(const std::filesystem::path& folder, int timed_passes)
      : data(folder),
        passes(timed_passes),
        test((folder / "test.safetensors").string()),
        labels(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), load<Vector<std::int32_t>>(test, "labels"))) {}
};

using Logits = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace>;

/// Signal to quantization noise ratio in dB; infinite when all values are equal.
inline double sqnr_db(const Logits& exact, const Logits& given) {
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double e = exact.data()[i], g = given.data()[i];
    signal += e * e;
    noise += (e - g) * (e - g);
  }
  return noise == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(signal / noise);
}

inline std::size_t count_correct(const Logits& logits, const Task& task) {
  std::size_t correct = 0;
  for (std::size_t i = 0; i < logits.extent(0); ++i) {
    const float* row = &logits(i, 0);
    correct += std::max_element(row, row + logits.extent(1)) - row == task.labels(i);
  }
  return correct;
}

/// Runs one model in one precision over all images; fills everything but the names and the SQNR.
template <template <class> class Model, class Precision>
Logits run(const Task& task, const char* file, Result& result) {
  const Exec exec;
  const auto images = load<Matrix<typename Precision::activation>>(task.test, "images");
  const Model<Precision> model(File((task.data / file).string()), images.extent(0));
  const auto logits = make_matrix<float>("digits::logits", images.extent(0), 10);
  result.milliseconds = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass <= task.passes; ++pass) {  // the first one warms up
    exec.fence();
    const Kokkos::Timer timer;
    model(exec, images, logits);
    exec.fence();
    if (pass > 0) result.milliseconds = std::min(result.milliseconds, 1000 * timer.seconds());
  }
  const Logits host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), logits);
  result.weight_bytes = model.weight_bytes();
  result.correct = count_correct(host, task);
  return host;
}

/// Calls f.operator()<Format>(name) for every format.
template <class F>
void for_each_format(const F& f) {
  f.template operator()<ms::MXFP8_E4M3>("MXFP8 E4M3");
  f.template operator()<ms::MXFP8_E5M2>("MXFP8 E5M2");
  f.template operator()<ms::MXFP6_E2M3>("MXFP6 E2M3");
  f.template operator()<ms::MXFP6_E3M2>("MXFP6 E3M2");
  f.template operator()<ms::NVFP4>("NVFP4");
  f.template operator()<ms::MXFP4>("MXFP4");
}

/// Throws unless the float run gives what the training script computed with the same weights in double precision.
inline void check_float_run(const std::string& key, const Task& task, const Logits& logits, std::size_t correct) {
  const Logits expected =
      Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), load<Matrix<float>>(task.test, key + ".logits"));
  const std::string recorded = task.test.metadata().at(key + ".correct");
  std::printf("%s in float: %zu digits right, %s when it was trained; logits agree to %.0f dB\n", key.c_str(), correct,
              recorded.c_str(), sqnr_db(expected, logits));
  // Sums of at most 256 float products: relative errors stay far below 256 * 2^-24, which is -96 dB.
  if (std::to_string(correct) != recorded || sqnr_db(expected, logits) < 96) {
    throw std::runtime_error("the float run of " + key + " does not give the recorded result");
  }
}

/// Throws unless every block format gives what data/expected.txt says: the SQNR to 0.1 dB, the digits to one (a digit
/// on the border of two classes may go either way with the order of a sum). Returns how many runs were compared.
inline int check_block_formats(const std::string& key, const Task& task, const std::vector<Result>& results) {
  const auto path = task.data / "expected.txt";
  std::ifstream file(path);
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string model, weights, activations, correct, sqnr;
    for (std::string* field : {&model, &weights, &activations, &correct, &sqnr}) std::getline(fields, *field, '\t');
    for (const Result& r : results) {
      if (model != key || weights != r.precision || activations != r.activations) continue;
      ++compared;
      if (std::abs(std::stod(correct) - static_cast<double>(r.correct)) > 1 ||
          !(std::abs(std::stod(sqnr) - r.sqnr_db) < 0.1)) {
        throw std::runtime_error(key + " in " + weights + " with activations in " + activations + " gives " +
                                 std::to_string(r.correct) + " digits and " + std::to_string(r.sqnr_db) +
                                 " dB; expected " + correct + " and " + sqnr);
      }
    }
  }
  if (compared == 0) throw std::runtime_error("nothing to compare with in " + path.string());
  return compared;
}

/// Runs a model in all precisions; `key` names its files.
template <template <class> class Model>
ModelResults run_all(const Task& task, const std::string& key, const char* name, const char* description) {
  const std::string file = key + ".safetensors";
  ModelResults model{name, description, task.labels.size(), {}};
  Logits exact;
  const auto add = [&]<class Precision>(const char* weights, const char* activations, bool weight_only) {
    Result result{weights, activations, weight_only};
    const Logits logits = run<Model, Precision>(task, file.c_str(), result);
    if (exact.data() == nullptr) exact = logits;
    result.sqnr_db = sqnr_db(exact, logits);
    model.results.push_back(result);
  };
  add.template operator()<Plain<float>>("float", "float", false);
  check_float_run(key, task, exact, model.results.back().correct);
  add.template operator()<Plain<ms::bf16>>("bf16", "bf16", false);
  for_each_format([&]<class Format>(const char* format) {
    add.template operator()<Quantized<Format>>(format, format, false);
    add.template operator()<WeightOnly<Format>>(format, "bf16", true);
  });
  std::printf("%s in block formats: %d results as expected\n", key.c_str(),
              check_block_formats(key, task, model.results));
  return model;
}

/// The two models, each compiled in a file of its own.
ModelResults run_mlp(const Task& task);
ModelResults run_moe(const Task& task);

}  // namespace digits

#endif
