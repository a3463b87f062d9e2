#include "TestMatmul.hpp"
#include <Microscale_BatchedMatmul.hpp>
#include <Microscale_Matmul.hpp>

#include <cmath>
#include <vector>

namespace {

using namespace microscale;
using namespace microscale::Test;
using microscale::half;  // CUDA has another one

constexpr std::int64_t rows = 21, cols = 38, depth = 70;

/// A random operand whose scales are functions of their place: products are a few units, where activations bend.
template <class F, class Scale>
BlockScaledMatrix<F, Space> operand_with_scales(std::int64_t extent, std::uint64_t seed, const Scale& scale) {
  const auto m = random_operand<F>(extent, depth, ScaleLayout::linear, seed, Scales::moderate);
  for (std::size_t i = 0; i < m.scales().extent(0); ++i)
    for (std::size_t j = 0; j < m.scales().extent(1); ++j) m.scales()(i, j) = scale(i, j);
  return m;
}

class EpilogueTest : public testing::Test {
 protected:
  const BlockScaledMatrix<NVFP4, Space> a = operand_with_scales<NVFP4>(
      rows, 1, [](auto i, auto j) { return UE4M3::encode(0.25f + 0.0625f * static_cast<float>((i + j) % 5)); });
  const BlockScaledMatrix<MXFP4, Space> b = operand_with_scales<MXFP4>(
      cols, 2, [](auto i, auto j) { return static_cast<std::uint8_t>(122 + (i + 2 * j) % 3); });
  const PlainOperand pa = plain(a), pb = plain(b);

  /// acc * decode A * decode B, one operation each.
  float product(std::int64_t i, std::int64_t j) const { return plain_product(pa, i, pb, j) * pa.decode * pb.decode; }

  template <class View, class F>
  static void expect(const View& c, const F& value, const char* what) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.extent(0)); ++i)
      for (std::int64_t j = 0; j < static_cast<std::int64_t>(c.extent(1)); ++j) {
        const float expected = value(i, j);
        ASSERT_TRUE(same_bits(static_cast<float>(c(i, j)), expected))
            << what << " (" << i << ", " << j << "): " << static_cast<float>(c(i, j)) << ", expected " << expected;
      }
  }
};

template <class T>
auto vector_view(std::int64_t n, float start, float step) {
  const Kokkos::View<T*, Space> v("v", n);
  for (std::int64_t i = 0; i < n; ++i) v(i) = static_cast<T>(start + step * static_cast<float>(i));
  return v;
}

TEST_F(EpilogueTest, alpha_from_the_host_and_from_memory) {
  const Kokkos::View<float, Space> device("alpha");
  device() = 0.37f;
  const Kokkos::View<float**, Space> c("c", rows, cols), d("d", rows, cols);
  matmul(a, b, c, Epilogue{}.alpha(0.37f));
  matmul(a, b, d, Epilogue{}.alpha(3.0f).alpha(Kokkos::View<const float, Space>(device)));
  const auto expected = [&](auto i, auto j) { return product(i, j) * 0.37f; };
  expect(c, expected, "host");
  expect(d, expected, "memory");
  matmul(a, b, d, Epilogue{}.alpha(device).alpha(0.37f).relu().alpha(2.0f).alpha(0.37f));  // the last one counts
  expect(
      d, [&](auto i, auto j) { return relu(product(i, j) * 0.37f); }, "changed");
  device() = 5.0f;
  matmul(a, b, d, Epilogue{}.alpha(device).alpha(0.37f));
  expect(d, expected, "no longer from memory");
  matmul(a, b, d, Epilogue{}.alpha(device).alpha(3.0f));
  expect(
      d, [&](auto i, auto j) { return product(i, j) * 3.0f; }, "the last one counts");
}

// Vectors without entries or memory are checked like any other.
TEST_F(EpilogueTest, empty_vectors_are_refused) {
  const Kokkos::View<float**, Space> c("c", rows, cols), none("none", 0, cols);
  EXPECT_THROW(matmul(a, b, c, Epilogue{}.bias(none)), std::invalid_argument);
  using Unmanaged = Kokkos::View<float*, Space, Kokkos::MemoryUnmanaged>;
  EXPECT_THROW(Epilogue{}.row_scale(Unmanaged(static_cast<float*>(nullptr), rows)), std::invalid_argument);
}

// Each step one binary32 operation: any other order or a fused step would give other bits for many elements.
TEST_F(EpilogueTest, every_step_in_its_order) {
  const auto scale = vector_view<float>(rows, 0.3f, 0.17f);
  const auto bias = vector_view<half>(cols, -2.0f, 0.1f);
  const Kokkos::View<float**, Space> c("c", rows, cols);
  const auto old = [](std::int64_t i, std::int64_t j) {
    return 0.1f * static_cast<float>(i) - 0.03f * static_cast<float>(j);
  };
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) c(i, j) = old(i, j);
  // The order of the calls does not matter.
  matmul(a, b, c, Epilogue{}.relu().beta(0.7f).bias(bias).row_scale(scale).alpha(1.3f));
  const auto expected = [&](std::int64_t i, std::int64_t j) {
    float v = product(i, j);
    v = v * 1.3f;
    v = v * scale(i);
    v = v + static_cast<float>(bias(j));
    const float scaled_old = 0.7f * old(i, j);
    v = v + scaled_old;
    return v < 0 ? 0.0f : v;
  };
  expect(c, expected, "all");
  // Rounding once more for a bf16 C; beta then reads bf16.
  const Kokkos::View<bf16**, Kokkos::LayoutLeft, Space> d("d", rows, cols);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) d(i, j) = bf16(old(i, j));
  matmul(a, b, d, Epilogue{}.beta(-1.5f));
  expect(
      d,
      [&](std::int64_t i, std::int64_t j) {
        const float scaled_old = -1.5f * static_cast<float>(bf16(old(i, j)));
        return static_cast<float>(bf16(product(i, j) + scaled_old));
      },
      "beta");
}

TEST_F(EpilogueTest, c_is_not_read_when_beta_is_0) {
  const Kokkos::View<float**, Space> c("c", rows, cols);
  poison_view(c);
  matmul(a, b, c, Epilogue{}.beta(0.0f));
  expect(
      c, [&](auto i, auto j) { return product(i, j); }, "beta 0");
}

TEST_F(EpilogueTest, bias_types_and_strides) {
  const Kokkos::View<float**, Space> c("c", rows, cols);
  const auto check = [&](const auto& bias, const char* what) {
    matmul(a, b, c, Epilogue{}.bias(bias));
    expect(
        c, [&](auto i, auto j) { return product(i, j) + static_cast<float>(bias(j)); }, what);
  };
  check(vector_view<float>(cols, 0.5f, 0.25f), "float");
  check(vector_view<bf16>(cols, 0.5f, 0.25f), "bf16");
  check(vector_view<half>(cols, 0.5f, 0.25f), "half");
  check(vector_view<Kokkos::Experimental::half_t>(cols, 0.5f, 0.25f), "half_t");
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> table("table", cols, 3);
  for (std::int64_t j = 0; j < cols; ++j)
    for (int l = 0; l < 3; ++l) table(j, l) = static_cast<float>(10 * j + l);
  check(Kokkos::subview(table, Kokkos::ALL, 1), "strided");
}

// The functions themselves against double precision, then the kernels against the functions bit for bit.
TEST_F(EpilogueTest, activations) {
  for (float x = -12.0f; x <= 12.0f; x += 0.0625f) {
    const double d = x, root = std::sqrt(2.0);
    const auto near = [&](float value, double exact) { EXPECT_NEAR(value, exact, 4e-7 * (1 + std::abs(d))) << x; };
    near(silu(x), d / (1 + std::exp(-d)));
    near(gelu_erf(x), 0.5 * d * (1 + std::erf(d / root)));
    near(gelu_tanh(x), 0.5 * d * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (d + 0.044715 * d * d * d))));
    near(silu_gate(x, 2.0f), 2 * d / (1 + std::exp(-d)));
    const double g = std::min(d, 7.0), u = std::clamp(1.5 * d, -7.0, 7.0);
    EXPECT_NEAR(clamped_swiglu(x, 1.5f * x, 7.0f, 1.702f), g / (1 + std::exp(-1.702 * g)) * (u + 1), 1e-5) << x;
  }
  const float nan = std::nanf("");
  EXPECT_TRUE(std::isnan(relu(nan)) && std::isnan(silu(nan)) && std::isnan(gelu_tanh(nan)) &&
              std::isnan(gelu_erf(nan)));
  EXPECT_TRUE(std::isnan(clamped_swiglu(nan, 1, 7, 1.702f)) && std::isnan(clamped_swiglu(1, nan, 7, 1.702f)));

  const Kokkos::View<float**, Space> c("c", rows, cols);
  const auto check = [&](const auto& epilogue, float (*function)(float), const char* what) {
    matmul(a, b, c, epilogue);
    expect(
        c, [&](auto i, auto j) { return function(product(i, j)); }, what);
  };
  check(Epilogue{}.relu(), &relu, "relu");
  check(Epilogue{}.gelu(), &gelu_tanh, "gelu");
  check(Epilogue{}.gelu_erf(), &gelu_erf, "gelu_erf");
  check(Epilogue{}.silu(), &silu, "silu");
}

TEST_F(EpilogueTest, gates_over_interleaved_and_halved_columns) {
  constexpr std::int64_t half_cols = cols / 2;
  const auto bias = vector_view<float>(cols, -0.5f, 0.125f);
  for (const GateColumns columns : {GateColumns::interleaved, GateColumns::halved}) {
    const auto g = [&](std::int64_t i, std::int64_t j) {
      const std::int64_t n = columns == GateColumns::interleaved ? 2 * j : j;
      return product(i, n) * 0.5f + bias(n);
    };
    const auto u = [&](std::int64_t i, std::int64_t j) {
      const std::int64_t n = columns == GateColumns::interleaved ? 2 * j + 1 : half_cols + j;
      return product(i, n) * 0.5f + bias(n);
    };
    const Kokkos::View<float**, Space> c("c", rows, half_cols);
    poison_view(c);
    matmul(a, b, c, Epilogue{}.alpha(0.5f).bias(bias).gate_silu(columns));
    expect(
        c, [&](auto i, auto j) { return silu_gate(g(i, j), u(i, j)); }, "silu");
    matmul(a, b, c, Epilogue{}.alpha(0.5f).bias(bias).gate_swiglu(columns));
    expect(
        c, [&](auto i, auto j) { return clamped_swiglu(g(i, j), u(i, j), 7.0f, 1.702f); }, "swiglu");
    matmul(a, b, c, Epilogue{}.alpha(0.5f).bias(bias).gate_swiglu(columns, 1.5f, 1.0f));
    expect(
        c, [&](auto i, auto j) { return clamped_swiglu(g(i, j), u(i, j), 1.5f, 1.0f); }, "swiglu, parameters");
  }
}

// Wide enough for several tiles, and quantized: gate and up columns of one block of C lie in different tiles.
TEST(Epilogue, gate_into_quantized_output) {
  const std::int64_t m = 70, h = 330, k = 64;
  const auto a = random_operand<MXFP4>(m, k, ScaleLayout::linear, 1, Scales::moderate);
  const auto b = random_operand<MXFP4>(2 * h, k, ScaleLayout::linear, 2, Scales::moderate);
  for (const GateColumns columns : {GateColumns::interleaved, GateColumns::halved}) {
    const Kokkos::View<float**, Kokkos::LayoutRight, Space> c("c", m, h);
    const BlockScaledMatrix<NVFP4, Space> q("q", m, h, ScaleLayout::tcgen);
    poison(q, 0x7f);
    matmul(a, b, c, Epilogue{}.alpha(0.01f).gate_swiglu(columns));
    matmul(a, b, q, Epilogue{}.alpha(0.01f).gate_swiglu(columns), {.quantize = {.tensor_scale = TensorScale::none()}});
    std::vector<float> values;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < h; ++j) values.push_back(c(i, j));
    expect_holds(q, quantize_plainly<NVFP4>(values, m, h, {.tensor_scale = {1.0f, 1.0f}}), "gate");
  }
}

// Functors are structs here: the bodies of tests are private functions, where CUDA allows no lambda for the device.
struct Tilted {
  KOKKOS_FUNCTION float operator()(std::int64_t m, std::int64_t n, float v) const {
    return v * 1.01f + static_cast<float>(m - 2 * n);
  }
};
struct AddedTo {
  Kokkos::View<float**, Space> out;
  KOKKOS_FUNCTION void operator()(std::int64_t m, std::int64_t n, float v) const { out(n, m) += v + 1.0f; }
};
struct NegatedButForRow3 {
  KOKKOS_FUNCTION float operator()(std::int64_t m, std::int64_t, float v) const { return m == 3 ? 0.0f : -v; }
};

// The functor gets the value as C can hold it, and what it returns is rounded again.
TEST_F(EpilogueTest, functor_that_returns) {
  const Kokkos::View<bf16**, Space> c("c", rows, cols);
  matmul(a, b, c, Epilogue{}.alpha(0.3f).then(Tilted{}));
  expect(
      c,
      [&](std::int64_t i, std::int64_t j) {
        const auto v = static_cast<float>(bf16(product(i, j) * 0.3f));
        return static_cast<float>(bf16(v * 1.01f + static_cast<float>(i - 2 * j)));
      },
      "bf16");
}

TEST_F(EpilogueTest, functor_that_stores) {
  const Kokkos::View<half**, Space> c("c", rows, cols);
  const Kokkos::View<float**, Space> out("out", cols, rows);
  matmul(a, b, c, Epilogue{}.relu().then(AddedTo{out}));
  expect(
      c, [&](auto i, auto j) { return static_cast<float>(half(relu(product(i, j)))); }, "c");
  expect(
      out, [&](auto j, auto i) { return static_cast<float>(half(relu(product(i, j)))) + 1.0f; }, "out");
}

TEST_F(EpilogueTest, functor_before_quantization_gets_the_unrounded_value) {
  const BlockScaledMatrix<MXFP8_E4M3, Space> q("q", rows, cols, ScaleLayout::tcgen);
  poison(q, 0x55);
  matmul(a, b, q, Epilogue{}.then(NegatedButForRow3{}));
  std::vector<float> values;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) values.push_back(i == 3 ? 0.0f : -product(i, j));
  expect_holds(q, quantize_plainly<MXFP8_E4M3>(values, rows, cols, {}), "functor");
}

}  // namespace
