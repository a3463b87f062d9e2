#include "TestData.hpp"
#include <Microscale_Dequantize.hpp>

#include <cmath>

namespace {

using namespace microscale;
using namespace microscale::Test;
using microscale::half;  // CUDA has another one

template <class Exec>
class Dequantize : public testing::Test {};
TYPED_TEST_SUITE(Dequantize, Spaces);

/// A matrix of random codes, bytes and tensor scale: every code and every scale byte occurs.
template <class Format>
BlockScaledMatrix<Format, Space> random_matrix(std::int64_t rows, std::int64_t cols, ScaleLayout layout,
                                               std::uint64_t seed) {
  Random random(seed);
  BlockScaledMatrix<Format, Space> matrix("matrix", rows, cols, layout);
  poison(matrix, 0x7f);
  const auto handle = matrix.handle();
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<std::uint8_t> codes;
    for (std::int64_t c = 0; c < cols; ++c)
      codes.push_back(static_cast<std::uint8_t>(random.below(1u << Format::element::bits)));
    if (cols > 0) pack_codes<Format>(codes.data(), static_cast<int>(cols), handle.row(r));
    for (std::int64_t b = 0; b < matrix.blocks(); ++b)
      handle.scale(r, b) = static_cast<std::uint8_t>(random.below(256));
  }
  if constexpr (Format::tensor_scale) *handle.tensor_scale = {0.37f, 1.0f / 0.37f};
  return matrix;
}

/// The value of an element by IEEE arithmetic of the host, from tables that the formats tests check.
template <class Format>
float value(const Impl::MatrixHandle<Format>& m, std::int64_t r, std::int64_t c) {
  const double code = Format::element::decode(read_code<Format>(m.row(r), c));
  const double scale = Format::scale::decode(m.scale(r, c / Format::block_size));
  const auto product = static_cast<float>(code * scale);  // at most 8 significant bits: rounded once at most
  return Format::tensor_scale ? static_cast<float>(static_cast<double>(product) * static_cast<double>(m.pair().decode))
                              : product;
}

bool same(float a, float b) { return std::isnan(a) ? std::isnan(b) : Bits::from_float(a) == Bits::from_float(b); }

TYPED_TEST(Dequantize, all_formats_tails_and_layouts) {
  const TypeParam exec;
  for_each_format([&](auto format) {
    using Format = decltype(format);
    for (const std::int64_t rows : {0, 1, 3, 8, 33, 129})
      for (std::int64_t cols = 0; cols <= 130; cols += cols < 35 ? 1 : 5) {
        const auto matrix = random_matrix<Format>(rows, cols, all_layouts[static_cast<std::size_t>(cols % 4)],
                                                  static_cast<std::uint64_t>(cols));
        Kokkos::View<float**, Kokkos::LayoutRight, Space> out("out", rows, cols);
        dequantize(exec, matrix, out);
        exec.fence();
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < cols; ++c)
            ASSERT_TRUE(same(out(r, c), value(matrix.handle(), r, c)))
                << Format::name << " " << rows << "x" << cols << " at " << r << ", " << c << ": " << out(r, c);
      }
  });
}

// FP4 dequantize wrote out of bounds.
TYPED_TEST(Dequantize, writes_nothing_around_a_strided_destination) {
  const TypeParam exec;
  for (const std::int64_t rows : {1, 3}) {
    const std::int64_t cols = 8208;
    const auto matrix = random_matrix<NVFP4>(rows, cols, ScaleLayout::linear, 5);
    Kokkos::View<float**, Kokkos::LayoutRight, Space> big("big", rows + 2, cols + 2);
    Kokkos::deep_copy(big, 12345.0f);
    const auto inner = Kokkos::subview(big, Kokkos::pair<std::int64_t, std::int64_t>(1, rows + 1),
                                       Kokkos::pair<std::int64_t, std::int64_t>(1, cols + 1));
    dequantize(exec, matrix, inner);
    exec.fence();
    for (std::int64_t r = 0; r < rows + 2; ++r)
      for (std::int64_t c = 0; c < cols + 2; ++c) {
        const bool inside = r >= 1 && r <= rows && c >= 1 && c <= cols;
        ASSERT_TRUE(same(big(r, c), inside ? value(matrix.handle(), r - 1, c - 1) : 12345.0f)) << r << ", " << c;
      }
  }
}

TYPED_TEST(Dequantize, output_types_and_layouts_round_the_float_value_once) {
  const TypeParam exec;
  const auto matrix = random_matrix<NVFP4>(20, 75, ScaleLayout::tcgen, 9);
  const auto check = [&]<class T, class Layout>() {
    Kokkos::View<T**, Layout, Space> out("out", 20, 75);
    dequantize(exec, matrix, out);
    exec.fence();
    for (int r = 0; r < 20; ++r)
      for (int c = 0; c < 75; ++c) {
        const float expected = static_cast<float>(static_cast<Impl::storage_t<T>>(value(matrix.handle(), r, c)));
        ASSERT_TRUE(same(static_cast<float>(out(r, c)), expected));
      }
  };
  check.template operator()<float, Kokkos::LayoutLeft>();
  check.template operator()<double, Kokkos::LayoutRight>();
  check.template operator()<half, Kokkos::LayoutRight>();
  check.template operator()<bf16, Kokkos::LayoutLeft>();
  check.template operator()<Kokkos::Experimental::half_t, Kokkos::LayoutRight>();
}

// E8M0 byte 0 decoded as 0.0 and byte 255 as Inf; a valid scale 128.0 turned into NaN.
TYPED_TEST(Dequantize, special_scale_bytes) {
  const TypeParam exec;
  BlockScaledMatrix<MXFP8_E4M3, Space> matrix("matrix", 256, 1);
  for (int b = 0; b < 256; ++b) {
    matrix.scales()(b, 0) = static_cast<std::uint8_t>(b);
    matrix.data()(b, 0) = 0x38;  // 1.0
  }
  Kokkos::View<float**, Space> out("out", 256, 1);
  dequantize(exec, matrix, out);
  exec.fence();
  for (int b = 0; b < 255; ++b) EXPECT_EQ(out(b, 0), std::ldexp(1.0f, b - 127)) << b;
  EXPECT_TRUE(std::isnan(out(255, 0)));
  matrix.data()(255, 0) = 0;
  dequantize(exec, matrix, out);
  exec.fence();
  EXPECT_TRUE(std::isnan(out(255, 0))) << "a NaN scale gives NaN over zeros too";
}

// Small or subnormal UE4M3 scales decoded wrongly; bit 7 is ignored.
TYPED_TEST(Dequantize, subnormal_ue4m3_scale) {
  const TypeParam exec;
  BlockScaledMatrix<NVFP4, Space> matrix("matrix", 2, 16);
  matrix.scales()(0, 0) = 0x01;
  matrix.scales()(1, 0) = 0x81;
  matrix.data()(0, 0) = matrix.data()(1, 0) = 0x07;
  Kokkos::View<float**, Space> out("out", 2, 16);
  dequantize(exec, matrix, out);
  exec.fence();
  EXPECT_EQ(out(0, 0), 0.01171875f);
  EXPECT_EQ(out(1, 0), 0.01171875f);
}

TYPED_TEST(Dequantize, overflow_gives_inf) {
  const TypeParam exec;
  BlockScaledMatrix<MXFP4, Space> matrix("matrix", 1, 2);
  matrix.scales()(0, 0) = 254;
  matrix.data()(0, 0) = 0xa7;  // 6, -1
  Kokkos::View<float**, Space> out("out", 1, 2);
  dequantize(exec, matrix, out);
  exec.fence();
  EXPECT_EQ(out(0, 0), Bits::to_float(Bits::infinity));
  EXPECT_EQ(out(0, 1), -0x1p127f);
}

TEST(DequantizeErrors, extents) {
  BlockScaledMatrix<MXFP4, Space> matrix("matrix", 3, 33);
  Kokkos::View<float**, Space> out("out", 3, 32);
  expect_refused([&] { dequantize(matrix, out); }, {"dequantize", "dst", "3 x 32", "3 x 33"});
  auto grouped = BlockScaledMatrix<MXFP4, Space>::grouped("grouped", 3, 32, 2, ScaleLayout::tcgen);
  expect_refused([&] { dequantize(grouped, out); }, {"dequantize", "src", "grouped"});
}

}  // namespace
