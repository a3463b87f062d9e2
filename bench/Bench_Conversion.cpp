#include <Microscale_Bench.hpp>

// quantize and dequantize. The rate counts the plain side: 4 bytes a float.
namespace microscale::bench {
namespace {

template <class T, class Format>
void add_quantize(std::vector<Case>& cases, const Extents& e, const TensorScale& scale, const std::string& variant) {
  cases.push_back({"quantize/" + type_name<T>() + "to" + type_name<Format>() + extent("M", e.rows) +
                       extent("K", e.cols) + variant + backend_and_threads(),
                   Ceiling::read, 0, bytes<T>(e.rows, e.cols), [=] {
                     const auto values = random_matrix<T>(e.rows, e.cols);
                     auto sources = repeat(turns(bytes<T>(e.rows, e.cols)), [&] { return copy_of(values); });
                     const BlockScaledMatrix<Format, Space> result("result", e.rows, e.cols);
                     Trial trial{waited([=](const Exec& exec) mutable {
                       QuantizeOptions options{.tensor_scale = scale};
                       options.dispatch.backend = measured_backend();
                       quantize(exec, sources.next(), result, options);
                     })};
                     add_reference(trial, waited([=](const Exec& exec) mutable {
                                     reference::quantize(exec, sources.next(), result, {.tensor_scale = scale});
                                   }));
                     return trial;
                   }});
}

template <class Format, class T>
void add_dequantize(std::vector<Case>& cases, const Extents& e) {
  cases.push_back(
      {"dequantize/" + type_name<Format>() + "to" + type_name<T>() + extent("M", e.rows) + extent("K", e.cols) +
           backend_and_threads(),
       Ceiling::copy, 0, bytes<T>(e.rows, e.cols), [=] {
         const BlockScaledMatrix<Format, Space> source("source", e.rows, e.cols);
         quantize(random_matrix<float>(e.rows, e.cols), source);
         auto results = repeat(turns(bytes<T>(e.rows, e.cols)), [&] { return Matrix<T>("result", e.rows, e.cols); });
         Trial trial{waited([=](const Exec& exec) mutable {
           dequantize(exec, source, results.next(), {.backend = measured_backend()});
         })};
         add_reference(trial,
                       waited([=](const Exec& exec) mutable { reference::dequantize(exec, source, results.next()); }));
         return trial;
       }});
}

}  // namespace

void add_conversions(std::vector<Case>& cases) {
  for_each_type(PlainTypes(), [&](auto plain) {
    for_each_type(ConvertedFormats(), [&](auto format) {
      using T = typename decltype(plain)::type;
      using Format = typename decltype(format)::type;
      for (const Extents& e : conversions) {
        if constexpr (Format::tensor_scale) {
          add_quantize<T, Format>(cases, e, TensorScale::decode(0.01f), "");
          add_quantize<T, Format>(cases, e, TensorScale::dynamic(), "/tensor_scale:dynamic");
        } else {
          add_quantize<T, Format>(cases, e, {}, "");
        }
        add_dequantize<Format, T>(cases, e);
      }
    });
  });
}

}  // namespace microscale::bench
