#include <Microscale_Bench.hpp>

#include <exception>

// matmul: dense (many rows) and decode (1 to 16), each format pair on every backend that this machine can run. FLOP/s
// counts 2 M N K; bytes/s what is read and written at least once.
namespace microscale::bench {
namespace {

/// A operand of a product: quantized, or a plain matrix.
template <class T>
auto operand(std::int64_t rows, std::int64_t cols) {
  if constexpr (BlockFormat<T>) {
    const BlockScaledMatrix<T, Space> result("operand", rows, cols);
    quantize(random_matrix<float>("values", rows, cols), result);
    return result;
  } else {
    return random_matrix<T>("operand", rows, cols);
  }
}

template <class T>
double bytes(std::int64_t rows, std::int64_t cols) {
  if constexpr (BlockFormat<T>)
    return static_cast<double>(serialized_bytes<T>(rows, cols));
  else
    return static_cast<double>(rows * cols) * sizeof(T);
}

template <class A, class B>
void add_product(const Product& p, std::string_view backend) {
  add(std::string("matmul/") + type_name<A> + '/' + B::name + extent("M", p.m) + extent("N", p.n) + extent("K", p.k),
      std::string(backend), [p, backend](benchmark::State& state) {
        const auto a = operand<A>(p.m, p.k);
        const auto b = operand<B>(p.n, p.k);
        const Matrix<float> c("c", p.m, p.n);
        const double operations = 2.0 * static_cast<double>(p.m * p.n * p.k);
        const double traffic = bytes<A>(p.m, p.k) + bytes<B>(p.n, p.k) + static_cast<double>(p.m * p.n) * sizeof(float);
        try {
          measure(state, c.data(), {{"FLOP/s", operations}, {"bytes/s", traffic}},
                  [&](const Exec& exec) { matmul(exec, a, b, c, Epilogue{}, MatmulOptions{.backend = backend}); });
        } catch (const std::exception& e) {
          state.SkipWithError(e.what());
        }
      });
}

template <class A, class B>
void add_pair(std::type_identity<Pair<A, B>>, std::string_view backend) {
  for (const Product& p : dense) add_product<A, B>(p, backend);
  for (const Product& p : decode) add_product<A, B>(p, backend);
}

}  // namespace

void add_products() {
  for (const BackendInfo& backend : backends())
    if (backend.available) for_each_type(ProductFormats(), [&](auto pair) { add_pair(pair, backend.name); });
}

}  // namespace microscale::bench
