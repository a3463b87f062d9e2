#include "TestMatmul.hpp"
#include <Microscale_Matmul.hpp>
#include <Microscale_Quantize.hpp>

#include <cmath>
#include <cstdint>
#include <string>

// The bound of docs/numerics.md, against sums in binary64: |C - S| <= (L + P + 4) 2^-24 |alpha| sum |A B|, with pieces of
// at most L elements, P of them in a row.
namespace microscale::Test {
namespace {

constexpr std::int64_t m = 5, n = 7;

Kokkos::View<float**, Space> random_values(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  const Kokkos::View<float**, Space> values("values", rows, cols);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) values(r, c) = random.unit() * Bits::pow2(static_cast<int>(c / 8 % 7));
  return values;
}

template <class Format>
auto quantized(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  const BlockScaledMatrix<Format, Space> result("matrix", rows, cols);
  quantize(random_values(rows, cols, seed), result);
  return result;
}

template <class A, class B>
void expect_within_bound(const A& a, const B& b, std::int64_t longest_piece) {
  constexpr float alpha = 0.3f;
  const std::int64_t k = b.cols();
  const std::string what = "k = " + std::to_string(k);
  const Kokkos::View<float**, Space> c("c", m, n);
  matmul(a, b, c, Epilogue{}.alpha(alpha));
  const PlainOperand pa = plain(a), pb = plain(b);
  const double factor = static_cast<double>(pa.decode) * pb.decode * alpha;
  const double bound = static_cast<double>(longest_piece + (k + longest_piece - 1) / longest_piece + 4) * 0x1p-24;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0, magnitudes = 0;  // their own rounding, at most k 2^-53, is lost in the bound
      for (std::int64_t t = 0; t < k; ++t) {
        const double product = pa.scaled(i, t) * pb.scaled(j, t) * factor;
        sum += product;
        magnitudes += std::abs(product);
      }
      EXPECT_LE(std::abs(c(i, j) - sum), bound * magnitudes) << what << ", " << i << ", " << j;
    }
}

constexpr std::int64_t depths[] = {1, 15, 16, 17, 31, 32, 33, 500, 4096};

TEST(MatmulBound, nvfp4) {
  for (const std::int64_t k : depths) expect_within_bound(quantized<NVFP4>(m, k, 1), quantized<NVFP4>(n, k, 2), 16);
}

TEST(MatmulBound, mxfp8) {
  for (const std::int64_t k : depths)
    expect_within_bound(quantized<MXFP8_E4M3>(m, k, 3), quantized<MXFP8_E5M2>(n, k, 4), 32);
}

TEST(MatmulBound, mxfp4_with_nvfp4) {
  for (const std::int64_t k : depths) expect_within_bound(quantized<MXFP4>(m, k, 5), quantized<NVFP4>(n, k, 6), 16);
}

TEST(MatmulBound, float_with_mxfp8) {
  for (const std::int64_t k : depths) expect_within_bound(random_values(m, k, 7), quantized<MXFP8_E4M3>(n, k, 8), 32);
}

}  // namespace
}  // namespace microscale::Test
