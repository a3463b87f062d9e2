#include <Microscale_Bench.hpp>

// quantize and dequantize. bytes/s counts the plain side: 4 bytes a float.
namespace microscale::bench {
namespace {

template <class Format, class T>
void add_quantize(const Extents& e) {
  add(std::string("quantize/") + type_name<T> + '/' + Format::name + extent("M", e.rows) + extent("K", e.cols),
      "reference", [e](benchmark::State& state) {
        const auto source = random_matrix<T>("source", e.rows, e.cols);
        const BlockScaledMatrix<Format, Space> result("result", e.rows, e.cols);
        measure(state, result.data().data(), {{"bytes/s", static_cast<double>(e.rows * e.cols) * sizeof(T)}},
                [&](const Exec& exec) { reference::quantize(exec, source, result); });
      });
}

template <class Format, class T>
void add_dequantize(const Extents& e) {
  add(std::string("dequantize/") + Format::name + '/' + type_name<T> + extent("M", e.rows) + extent("K", e.cols),
      "reference", [e](benchmark::State& state) {
        const BlockScaledMatrix<Format, Space> source("source", e.rows, e.cols);
        quantize(random_matrix<float>("values", e.rows, e.cols), source);
        const Matrix<T> result("result", e.rows, e.cols);
        measure(state, result.data(), {{"bytes/s", static_cast<double>(e.rows * e.cols) * sizeof(T)}},
                [&](const Exec& exec) { reference::dequantize(exec, source, result); });
      });
}

}  // namespace

void add_conversions() {
  for_each_type(PlainTypes(), [](auto plain) {
    for_each_type(ConvertedFormats(), [](auto format) {
      using T = typename decltype(plain)::type;
      using Format = typename decltype(format)::type;
      for (const Extents& e : conversions) {
        add_quantize<Format, T>(e);
        add_dequantize<Format, T>(e);
      }
    });
  });
}

}  // namespace microscale::bench
