// A format that the library does not know: one struct, and everything works.
#include "TestData.hpp"
#include <Microscale.hpp>

#include <cmath>

namespace {

using namespace microscale;
using namespace microscale::Test;

struct FP4x64 {
  using element = E2M1;
  using scale = E8M0;
  static constexpr int block_size = 64;
  static constexpr bool tensor_scale = false;
  static constexpr Packing packing = Packing::dense;
  static constexpr const char* name = "fp4x64";
};
static_assert(BlockFormat<FP4x64>);

/// E3M2 codes under UE4M3 scales with a tensor scale: no vendor has it.
struct FP6x24 {
  using element = E3M2;
  using scale = UE4M3;
  static constexpr int block_size = 24;
  static constexpr bool tensor_scale = true;
  static constexpr Packing packing = Packing::dense;
  static constexpr const char* name = "fp6x24";
};
static_assert(BlockFormat<FP6x24>);

template <class Format>
class CustomFormat : public testing::Test {};
using Formats = testing::Types<FP4x64, FP6x24>;
TYPED_TEST_SUITE(CustomFormat, Formats);

TYPED_TEST(CustomFormat, quantize_and_dequantize) {
  const std::int64_t rows = 40, cols = 150;
  const auto values = hostile_values(rows, cols, 5, true);
  const Exec exec;
  BlockScaledMatrix<TypeParam, Space> matrix("matrix", rows, cols, ScaleLayout::tcgen);
  poison(matrix, 0x7f);
  quantize(exec, view_of<float, Kokkos::LayoutRight>(values, rows, cols), matrix);
  Kokkos::View<float**, Space> back("back", rows, cols);
  dequantize(exec, matrix, back);
  exec.fence();
  expect_holds(matrix,
               quantize_plainly<TypeParam>(values, rows, cols, {.tensor_scale = dynamic_pair<TypeParam>(values)}),
               TypeParam::name);
  const auto handle = matrix.handle();
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) {
      const float scale = TypeParam::scale::decode(handle.scale(r, c / TypeParam::block_size));
      const float expected =
          TypeParam::element::decode(read_code<TypeParam>(handle.row(r), c)) * scale * handle.pair().decode;
      ASSERT_TRUE(back(r, c) == expected || (std::isnan(back(r, c)) && std::isnan(expected))) << r << ", " << c;
    }
}

// Against the product of the decoded values in double.
TYPED_TEST(CustomFormat, matmul_with_itself_and_with_a_known_format) {
  const int m = 19, n = 33, k = 150;
  const Kokkos::View<float**, Space> a("a", m, k), b("b", n, k), c("c", m, n), mixed("mixed", m, n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < k; ++j)
      a(i, j) = E2M1::decode(static_cast<std::uint8_t>((i * 7 + j * 5) % 15)) * ((j / 64) % 2 + 1);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < k; ++j) b(i, j) = E2M1::decode(static_cast<std::uint8_t>((i * 3 + j * 11) % 13));
  const Exec exec;
  const BlockScaledMatrix<TypeParam, Space> qa("qa", m, k), qb("qb", n, k);
  const BlockScaledMatrix<MXFP8_E4M3, Space> q8("q8", n, k);
  QuantizeOptions options;
  if (TypeParam::tensor_scale) options.tensor_scale = TensorScale::none();
  quantize(exec, a, qa, options);
  quantize(exec, b, qb, options);
  quantize(exec, b, q8);
  matmul(exec, qa, qb, c);
  matmul(exec, qa, q8, mixed);
  Kokkos::View<float**, Space> da("da", m, k), db("db", n, k);
  dequantize(exec, qa, da);
  dequantize(exec, qb, db);
  exec.fence();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double exact = 0, exact_mixed = 0, magnitude = 0;
      for (int t = 0; t < k; ++t) {
        exact += static_cast<double>(da(i, t)) * db(j, t);
        exact_mixed += static_cast<double>(da(i, t)) * b(j, t);
        magnitude += std::abs(static_cast<double>(da(i, t)) * b(j, t));
      }
      EXPECT_NEAR(c(i, j), exact, 16 * 0x1p-24 * magnitude);
      EXPECT_NEAR(mixed(i, j), exact_mixed, 16 * 0x1p-24 * magnitude);
    }
}

}  // namespace
