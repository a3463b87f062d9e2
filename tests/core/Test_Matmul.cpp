#include "TestMatmul.hpp"
#include <Microscale_Matmul.hpp>
#include <Microscale_Quantize.hpp>

#include <cmath>
#include <thread>
#include <vector>

namespace {

using namespace microscale;
using namespace microscale::Test;
using microscale::half;  // CUDA has another one
#ifdef KOKKOS_ENABLE_SERIAL
using OneThread = Kokkos::Serial;
#else
using OneThread = Exec;
#endif

template <class F>
using Matrix = BlockScaledMatrix<F, Space>;

/// A matrix all of whose codes encode `value`, with the scale byte of (row, block) given by a function.
template <class F, class Scale>
Matrix<F> constant(std::int64_t rows, std::int64_t cols, float value, const Scale& scale) {
  const Matrix<F> m("constant", rows, cols);
  const auto h = m.handle();
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(cols), F::element::encode(value));
  for (std::int64_t r = 0; r < rows; ++r) {
    pack_codes<F>(codes.data(), static_cast<int>(cols), h.row(r));
    for (std::int64_t b = 0; b < m.blocks(); ++b) h.scale(r, b) = scale(r, b);
  }
  if (F::tensor_scale) *h.tensor_scale = {1.0f, 1.0f};
  return m;
}

template <class View>
std::vector<std::uint8_t> view_bytes(const View& v) {
  std::vector<std::uint8_t> bytes(v.span() * sizeof(typename View::value_type));
  if (!bytes.empty()) std::memcpy(bytes.data(), v.data(), bytes.size());
  return bytes;
}

// numerics.md 11 (a): 16 * (2 * 1) * 0.5 + 16 * (0.5 * 1) * 0.5 = 20.
TEST(Matmul, nvfp4_with_two_block_scales_gives_20) {
  const auto a = constant<NVFP4>(1, 32, 1.0f, [](auto, auto b) { return UE4M3::encode(b == 0 ? 2.0f : 0.5f); });
  const auto b = constant<NVFP4>(1, 32, 0.5f, [](auto, auto) { return UE4M3::encode(1.0f); });
  const Kokkos::View<float**, Space> c("c", 1, 1);
  matmul(a, b, c);
  EXPECT_EQ(c(0, 0), 20.0f);
}

// (b) and B15: E8M0 byte 0 is 2^-127, not 0: 128 * 2^112 * 256 * 2^-127 = 1.
TEST(Matmul, e8m0_byte_0_is_2_to_minus_127) {
  const auto b =
      constant<MXFP8_E4M3>(3, 128, 256.0f, [](auto r, auto) { return static_cast<std::uint8_t>(r == 1 ? 0xff : 0); });
  const Kokkos::View<bf16**, Space> a("a", 2, 128);
  const Kokkos::View<float**, Space> c("c", 2, 3);
  for (int k = 0; k < 128; ++k) {
    a(0, k) = bf16(0x1p112f);
    a(1, k) = bf16(0.0f);
  }
  matmul(a, b, c);
  EXPECT_EQ(c(0, 0), 1.0f);
  EXPECT_EQ(c(0, 2), 1.0f);
  EXPECT_EQ(c(1, 0), 0.0f);
  EXPECT_TRUE(std::isnan(c(0, 1)));  // byte FF is NaN, not Inf ...
  EXPECT_TRUE(std::isnan(c(1, 1)));  // ... even over zeros
}

// (c): a NaN scale in one row makes that row of the product NaN, whatever B holds, and touches no other.
template <class F>
void check_nan_row(std::uint8_t nan, std::uint8_t one) {
  const auto a = constant<F>(4, 70, 1.0f, [&](auto r, auto b) { return r == 2 && b == 1 ? nan : one; });
  const auto b = constant<F>(9, 70, 0.0f, [&](auto, auto) { return one; });
  const Kokkos::View<float**, Space> c("c", 4, 9);
  matmul(a, b, c);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 9; ++j) EXPECT_EQ(std::isnan(c(i, j)), i == 2) << F::name << " " << i << " " << j;
}

TEST(Matmul, nan_scale_of_a_makes_its_row_nan) {
  check_nan_row<MXFP4>(0xff, 127);
  check_nan_row<MXFP8_E5M2>(0xff, 127);
  check_nan_row<NVFP4>(0x7f, UE4M3::encode(1.0f));
  check_nan_row<NVFP4>(0xff, UE4M3::encode(1.0f));  // bit 7 of a UE4M3 byte is ignored
}

// B23: subnormal UE4M3 scales through the product: 16 * 6 * 2^-9.
TEST(Matmul, subnormal_ue4m3_scales) {
  const auto a = constant<NVFP4>(1, 16, 6.0f, [](auto, auto) { return std::uint8_t{0x01}; });
  const auto b = constant<NVFP4>(1, 16, 1.0f, [](auto, auto) { return UE4M3::encode(1.0f); });
  const Kokkos::View<float**, Space> c("c", 1, 1);
  matmul(a, b, c);
  EXPECT_EQ(c(0, 0), 0.1875f);
}

// B22: a zero operand gives exact zeros, or the bias alone.
TEST(Matmul, zero_operand_gives_the_bias) {
  const Kokkos::View<float**, Space> zeros("zeros", 32, 64);
  const auto x = random_view<float>(32, 64, 3);
  const Matrix<NVFP4> qz("qz", 32, 64), qx("qx", 32, 64);
  const Exec exec;
  quantize(exec, zeros, qz);
  quantize(exec, x, qx);
  const Kokkos::View<float*, Space> bias("bias", 32);
  for (int j = 0; j < 32; ++j) bias(j) = static_cast<float>(j) - 7.5f;
  const Kokkos::View<float**, Space> c("c", 32, 32);
  for (const auto& [a, b] : {std::pair(qz, qx), std::pair(qx, qz), std::pair(qz, qz)}) {
    poison_view(c);
    matmul(exec, a, b, c);
    for (int i = 0; i < 32; ++i)
      for (int j = 0; j < 32; ++j) ASSERT_EQ(Bits::from_float(c(i, j)), 0u);
    matmul(exec, a, b, c, Epilogue{}.bias(bias));
    for (int i = 0; i < 32; ++i)
      for (int j = 0; j < 32; ++j) ASSERT_EQ(c(i, j), bias(j));
  }
}

/// The first rows, columns and blocks of a matrix with linear scales; what lies beyond stays where it was.
template <class F>
Matrix<F> corner(const Matrix<F>& m, std::int64_t rows, std::int64_t cols) {
  return Matrix<F>::wrap(m.data(), m.scales(), m.tensor_scale(), rows, cols);
}
template <class T>
auto corner(const Kokkos::View<T**, Kokkos::LayoutRight, Space>& v, std::int64_t rows, std::int64_t cols) {
  return Kokkos::subview(v, Kokkos::pair<std::int64_t, std::int64_t>(0, rows),
                         Kokkos::pair<std::int64_t, std::int64_t>(0, cols));
}

/// What a wrapped matrix must have: zero bits past column `cols` in the last byte of each row.
template <class F>
void clear_bits_past(const Matrix<F>& m, std::int64_t cols) {
  const std::int64_t bits = cols * bits_per_code(format_id<F>);
  if (bits % 8 == 0) return;
  for (std::int64_t r = 0; r < m.rows(); ++r)
    m.handle().row(r)[bits / 8] &= static_cast<std::uint8_t>((1 << bits % 8) - 1);
}
template <class T>
void clear_bits_past(const Kokkos::View<T**, Kokkos::LayoutRight, Space>&, std::int64_t) {}

/// Sums over many blocks of extreme scales round, and only the reference's order then gives its bits.
Scales tail_scales() { return sums_must_be_exact() ? Scales::moderate : Scales::extreme; }

/// All pairs of M, N and K in 0..130, inside of larger operands whose other elements must not matter, and in a C of
/// which only M x N elements may change.
template <class A, class F>
void check_tails(const A& a, const Matrix<F>& b) {
  constexpr std::int64_t limit = 131;  // a prime: for any two of M, N, K, each pair occurs with some third
  const PlainOperand pa = plain(a), pb = plain(b);
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> c("c", limit + 1, limit + 1),
      expected("expected", limit, limit);
  const OneThread exec;  // many small calls
  for (std::int64_t k = limit - 1; k >= 0; --k) {
    clear_bits_past(a, k);
    clear_bits_past(b, k);
    for (std::int64_t i = 0; i < limit; ++i)
      for (std::int64_t j = 0; j < limit; ++j) expected(i, j) = plain_product(pa, i, pb, j, k) * pa.decode * pb.decode;
    for (std::int64_t n = 0; n < limit; ++n) {
      const std::int64_t m = (17 * n + 29 * k) % limit;
      Kokkos::deep_copy(c, -1234.5f);
      matmul(exec, corner(a, m, k), corner(b, n, k), corner(c, m, n));
      for (std::int64_t i = 0; i <= limit; ++i)
        for (std::int64_t j = 0; j <= limit; ++j)
          ASSERT_TRUE(same_bits(c(i, j), i < m && j < n ? expected(i, j) : -1234.5f))
              << m << " x " << n << " x " << k << " at " << i << ", " << j;
    }
  }
}

TEST(Matmul, tails_nvfp4) {
  check_tails(random_operand<NVFP4>(131, 131, ScaleLayout::linear, 1, tail_scales()),
              random_operand<NVFP4>(131, 131, ScaleLayout::linear, 2, tail_scales()));
}

TEST(Matmul, tails_mxfp4_with_mxfp6) {
  check_tails(random_operand<MXFP4>(131, 131, ScaleLayout::linear, 1, tail_scales()),
              random_operand<MXFP6_E3M2>(131, 131, ScaleLayout::linear, 2, tail_scales()));
}

TEST(Matmul, tails_bf16_with_nvfp4) {
  check_tails(random_view<bf16>(131, 131, 1), random_operand<NVFP4>(131, 131, ScaleLayout::linear, 2, tail_scales()));
}

TEST(Matmul, both_sides_of_every_tile_boundary) {
  const auto a = random_operand<MXFP8_E4M3>(193, 97, ScaleLayout::linear, 1);
  const auto b = random_operand<MXFP4>(257, 97, ScaleLayout::linear, 2);
  for (const std::int64_t m : {63, 64, 65, 127, 128, 129, 192, 193})
    for (const std::int64_t n : {31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257}) {
      const std::int64_t k = 95 + (m + n) % 3;
      const Kokkos::View<float**, Space> c("c", m, n);
      poison_view(c);
      const auto ca = corner(a, m, k);
      const auto cb = corner(b, n, k);
      matmul(ca, cb, c);
      expect_product(plain(ca), plain(cb), c, "");
    }
}

// B24: random_operand fills all padding scales with NaN.
TEST(Matmul, scale_layouts_and_their_padding_have_no_effect) {
  for (const ScaleLayout layout_a : all_layouts)
    for (const ScaleLayout layout_b : all_layouts) {
      const auto a = random_operand<NVFP4>(137, 300, layout_a, 1);
      const auto b = random_operand<MXFP4>(150, 300, layout_b, 2);
      const Kokkos::View<float**, Space> c("c", 137, 150);
      matmul(a, b, c);
      expect_product(plain(a), plain(b), c, std::string(name(layout_a)) + " x " + name(layout_b));
    }
}

// B24 as it was reported: a poisoned scale buffer, then quantize, then the product.
TEST(Matmul, uninitialised_scale_padding_never_reaches_real_rows) {
  const auto x = random_view<float>(17, 512, 1), y = random_view<float>(256, 512, 2);
  const Matrix<NVFP4> b("b", 256, 512, ScaleLayout::tcgen);
  const Exec exec;
  quantize(exec, y, b);
  std::vector<std::vector<std::uint8_t>> results;
  for (const int poison_byte : {0x7f, 0x00}) {
    const Matrix<NVFP4> a("a", 17, 512, ScaleLayout::tcgen);
    poison(a, poison_byte);
    quantize(exec, x, a);
    const Kokkos::View<float**, Space> c("c", 17, 256);
    matmul(exec, a, b, c);
    for (int i = 0; i < 17; ++i)
      for (int j = 0; j < 256; ++j) ASSERT_TRUE(std::isfinite(c(i, j)));
    results.push_back(view_bytes(c));
  }
  EXPECT_EQ(results[0], results[1]);
}

// B26, B29, B76: shapes that others got wrong or refused.
TEST(Matmul, shapes_that_are_no_multiples_of_tiles) {
  const auto check = [](auto format, std::int64_t m, std::int64_t n, std::int64_t k) {
    using F = decltype(format);
    for (const ScaleLayout layout : all_layouts) {
      const auto a = random_operand<F>(m, k, layout, 1), b = random_operand<F>(n, k, layout, 2, Scales::moderate);
      const Kokkos::View<float**, Space> c("c", m, n);
      matmul(a, b, c);
      expect_product(plain(a), plain(b), c, name(layout));
    }
  };
  check(MXFP4(), 64, 64, 288);
  check(NVFP4(), 1, 16, 192);
  check(MXFP4(), 3, 2880, 288);
  check(MXFP4(), 1, 16, 32);
  check(MXFP4(), 2, 96, 2880);
}

// B72: tensor scales are applied in binary32, before the result is rounded to bf16, and only then.
TEST(Matmul, tensor_scales_are_applied_before_rounding_to_bf16) {
  Random random(7);
  const std::int64_t k = 4096;
  auto a = random_operand<NVFP4>(8, k, ScaleLayout::linear, 1, Scales::moderate);
  auto b = random_operand<NVFP4>(8, k, ScaleLayout::linear, 2, Scales::moderate);
  for (const auto& m : {a, b})
    for (int i = 0; i < 8; ++i)
      for (std::int64_t j = 0; j < k / 2; ++j) m.data()(i, j) &= 0x77;  // positive
  a.tensor_scale()() = pair_from_decode(1e-3f);
  b.tensor_scale()() = pair_from_decode(7e2f);
  const Kokkos::View<bf16**, Space> c("c", 8, 8);
  matmul(a, b, c);
  const PlainOperand pa = plain(a), pb = plain(b);
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      double exact = 0;
      for (std::int64_t t = 0; t < k; ++t) exact += pa.scaled(i, t) * pb.scaled(j, t);
      exact = exact * 1e-3f * 7e2f;
      EXPECT_LE(std::abs(c(i, j).bits - bf16(static_cast<float>(exact)).bits), 1) << i << ", " << j;
    }
}

TEST(Matmul, empty_shapes) {
  const Exec exec;
  const Kokkos::View<float*, Space> bias("bias", 5);
  for (int j = 0; j < 5; ++j) bias(j) = static_cast<float>(j) + 1;
  const Kokkos::View<float**, Space> c("c", 3, 5);
  poison_view(c);
  matmul(exec, Matrix<MXFP4>("a", 3, 0), Matrix<NVFP4>("b", 5, 0), c, Epilogue{}.bias(bias));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) EXPECT_EQ(c(i, j), bias(j));
  matmul(exec, Kokkos::View<float**, Space>("a", 3, 0), Matrix<NVFP4>("b", 5, 0), c);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) EXPECT_EQ(Bits::from_float(c(i, j)), 0u);
  matmul(exec, Matrix<MXFP4>("a", 0, 64), Matrix<NVFP4>("b", 5, 64), Kokkos::View<float**, Space>("c", 0, 5));
  matmul(exec, Matrix<MXFP4>("a", 3, 64), Matrix<NVFP4>("b", 0, 64), Kokkos::View<float**, Space>("c", 3, 0));
  matmul(exec, Matrix<MXFP4>(), Matrix<NVFP4>(), Kokkos::View<float**, Space>());
}

// B55: a call without tokens, and then an ordinary one.
TEST(Matmul, no_rows_then_some) {
  const Exec exec;
  const auto b = random_operand<MXFP4>(40, 96, ScaleLayout::tcgen, 2);
  for (const std::int64_t m : {0, 6}) {
    const auto a = random_operand<MXFP4>(m, 96, ScaleLayout::tcgen, 1);
    const Kokkos::View<float**, Space> c("c", m, 40);
    matmul(exec, a, b, c);
    expect_product(plain(a), plain(b), c, "");
  }
}

TEST(Matmul, row_ranges_of_tiled_matrices) {
  const auto a = random_operand<NVFP4>(300, 100, ScaleLayout::tcgen, 1);
  const auto b = random_operand<MXFP8_E4M3>(200, 100, ScaleLayout::cdna4, 2);
  const auto part_a = a.row_range(128, 300), whole_tile = a.row_range(128, 256);
  const auto part_b = b.row_range(32, 96);
  const Kokkos::View<float**, Space> c("c", 172, 64), d("d", 128, 64);
  matmul(part_a, part_b, c);
  expect_product(plain(part_a), plain(part_b), c, "rows 128 to 300");
  matmul(whole_tile, part_b, d);
  for (int i = 0; i < 128; ++i)
    for (int j = 0; j < 64; ++j) ASSERT_TRUE(same_bits(d(i, j), c(i, j)));
  const PlainOperand all = plain(a);
  for (int j = 0; j < 64; ++j) EXPECT_TRUE(same_bits(c(5, j), plain_product(all, 133, plain(part_b), j) * all.decode));
}

// B58, B60: strides of A, of C and their layouts, one by one.
template <class T, class LayoutA, class LayoutC, class TC>
void check_views() {
  const std::int64_t m = 33, n = 66, k = 80;
  const auto b = random_operand<MXFP6_E2M3>(n, k, ScaleLayout::linear, 2, tail_scales());
  const Kokkos::View<T**, LayoutA, Space> big("big", m + 5, k + 40);
  Random random(4);
  for (int i = 0; i < m + 5; ++i)
    for (int j = 0; j < k + 40; ++j) big(i, j) = static_cast<T>(random_number(random));
  const auto a = Kokkos::subview(big, Kokkos::pair<int, int>(3, 3 + m), Kokkos::pair<int, int>(32, 32 + k));
  const Kokkos::View<TC**, LayoutC, Space> out("out", m + 2, n + 3);
  for (int i = 0; i < m + 2; ++i)
    for (int j = 0; j < n + 3; ++j) out(i, j) = static_cast<TC>(-77.0f);
  const auto c = Kokkos::subview(out, Kokkos::pair<int, int>(1, 1 + m), Kokkos::pair<int, int>(2, 2 + n));
  const auto before = view_bytes(big);
  matmul(a, b, c);
  expect_product(plain(a), plain(b), c, "sliced");
  EXPECT_EQ(view_bytes(big), before);
  for (int i = 0; i < m + 2; ++i)
    for (int j = 0; j < n + 3; ++j)
      if (i < 1 || i > m || j < 2 || j >= n + 2) {
        ASSERT_EQ(static_cast<float>(out(i, j)), -77.0f) << i << ", " << j;
      }
}

TEST(Matmul, sliced_views_of_every_layout_and_type) {
  check_views<float, Kokkos::LayoutRight, Kokkos::LayoutLeft, bf16>();
  check_views<half, Kokkos::LayoutLeft, Kokkos::LayoutRight, half>();
  check_views<bf16, Kokkos::LayoutLeft, Kokkos::LayoutLeft, float>();
  check_views<Kokkos::Experimental::half_t, Kokkos::LayoutRight, Kokkos::LayoutRight, Kokkos::Experimental::bhalf_t>();
}

TEST(Matmul, strided_columns) {
  const Kokkos::View<float***, Kokkos::LayoutRight, Space> a3("a", 7, 50, 3), c3("c", 7, 20, 2);
  Random random(4);
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 50; ++j)
      for (int l = 0; l < 3; ++l) a3(i, j, l) = random.unit();
  const auto a = Kokkos::subview(a3, Kokkos::ALL, Kokkos::ALL, 1);
  const auto c = Kokkos::subview(c3, Kokkos::ALL, Kokkos::ALL, 1);
  const auto b = random_operand<NVFP4>(20, 50, ScaleLayout::tile_8x4, 2);
  matmul(a, b, c);
  expect_product(plain(a), plain(b), c, "");
}

TEST(Matmul, rank_1_is_one_row) {
  const auto b = random_operand<NVFP4>(20, 50, ScaleLayout::linear, 2);
  const Kokkos::View<float*, Space> a("a", 50), c("c", 20);
  for (int j = 0; j < 50; ++j) a(j) = static_cast<float>(j % 7) - 2.5f;
  matmul(a, b, c);
  expect_product(plain(a), plain(b), c, "");
}

TEST(Matmul, const_activations_and_inputs_unchanged) {
  const auto a = random_view<float>(9, 64, 1);
  const auto b = random_operand<NVFP4>(20, 64, ScaleLayout::tcgen, 2);
  const auto before = raw_bytes(b);
  const Kokkos::View<float**, Space> c("c", 9, 20);
  matmul(Kokkos::View<const float**, Kokkos::LayoutRight, Space>(a), b, c);
  expect_product(plain(a), plain(b), c, "");
  EXPECT_EQ(raw_bytes(b), before);
}

// The bytes of quantize of the float result; everything was poisoned before.
template <class F>
void check_quantized_output(ScaleLayout layout, QuantizeOptions options) {
  const std::int64_t m = 70, n = 150, k = 96;
  const auto a = random_operand<MXFP4>(m, k, ScaleLayout::linear, 1);
  const auto b = random_operand<MXFP4>(n, k, ScaleLayout::linear, 2, Scales::moderate);
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> plain_c("c", m, n);
  const Matrix<F> c("c", m, n, layout), expected("expected", m, n, layout);
  poison(c, 0x7f);
  poison(expected, 0);
  if (F::tensor_scale) *expected.handle().tensor_scale = *c.handle().tensor_scale = pair_from_decode(0.03f);
  const Exec exec;
  matmul(exec, a, b, plain_c, Epilogue{}.relu());
  matmul(exec, a, b, c, Epilogue{}.relu(), {.quantize = options});
  quantize(exec, plain_c, expected, options);
  EXPECT_EQ(raw_bytes(c), raw_bytes(expected)) << F::name << " " << name(layout);
}

TEST(Matmul, quantized_output_is_quantize_of_the_float_output) {
  for (const ScaleLayout layout : all_layouts) {
    for_each_format([&](auto format) {
      using F = decltype(format);
      if (F::tensor_scale) {
        check_quantized_output<F>(layout, {.tensor_scale = TensorScale::decode(0.0125f)});
        check_quantized_output<F>(layout, {.tensor_scale = TensorScale::stored()});
      } else {
        check_quantized_output<F>(layout, {});
        check_quantized_output<F>(layout, {.scale_rule = ScaleRule::floor, .non_finite = NonFinite::saturate});
      }
    });
  }
  const Kokkos::View<float, Space> scale("scale");
  scale() = 0.07f;
  check_quantized_output<NVFP4>(ScaleLayout::tcgen, {.tensor_scale = TensorScale::decode(scale)});
}

TEST(Matmul, same_bits_on_every_host_instance_and_twice) {
  const auto a = random_operand<MXFP8_E5M2>(90, 200, ScaleLayout::linear, 1);
  const auto b = random_operand<NVFP4>(170, 200, ScaleLayout::tcgen, 2);
  std::vector<std::vector<std::uint8_t>> results;
  const auto run = [&](const auto& exec) {
    const Kokkos::View<float**, Space> c("c", 90, 170);
    poison_view(c);
    matmul(exec, a, b, c, Epilogue{}.alpha(0.3f).silu());
    exec.fence();
    results.push_back(view_bytes(c));
  };
  const auto run_on = [&](const auto& exec) {
    run(exec);
    run(exec);
    for (const auto& part : Kokkos::Experimental::partition_space(exec, 1, 1)) run(part);
  };
#ifdef KOKKOS_ENABLE_SERIAL
  run_on(Kokkos::Serial());
#endif
#ifdef KOKKOS_ENABLE_OPENMP
  run_on(Kokkos::OpenMP());
#endif
  for (const auto& result : results) EXPECT_EQ(result, results.front());
}

#ifdef KOKKOS_ENABLE_SERIAL
TEST(Matmul, several_threads_with_an_instance_each) {
  const auto a = random_operand<MXFP4>(70, 128, ScaleLayout::linear, 1);
  const auto b = random_operand<MXFP4>(90, 128, ScaleLayout::linear, 2);
  const auto instances = Kokkos::Experimental::partition_space(Kokkos::Serial(), 1, 1, 1);
  std::vector<Kokkos::View<float**, Space>> outputs;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t) outputs.emplace_back("c", 70, 90);
  for (std::size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) matmul(instances[t], a, b, outputs[t]);
    });
  for (auto& thread : threads) thread.join();
  for (const auto& c : outputs) expect_product(plain(a), plain(b), c, "thread");
}
#endif

TEST(Matmul, refuses_what_does_not_fit) {
  const Matrix<MXFP4> a("a", 4, 64), b("b", 6, 64), wide("wide", 6, 96), odd("odd", 5, 64);
  const Kokkos::View<float**, Space> c("c", 4, 6), other("other", 6, 4), half_c("half", 4, 3);
  poison_view(c);
  const auto before = view_bytes(c);
  expect_refused([&] { matmul(a, wide, c); }, {"microscale::matmul: a has extents 4 x 64; expected 96 columns"});
  expect_refused([&] { matmul(a, b, other); }, {"microscale::matmul: c has extents 6 x 4; expected 4 x 6"});
  const Kokkos::View<float*, Space> v4("v", 4), v6("v", 6);
  const Kokkos::View<float**, Space> v26("v", 2, 6);
  expect_refused([&] { matmul(a, b, c, Epilogue{}.bias(v4)); }, {"bias has extent 4; expected 6"});
  expect_refused([&] { matmul(a, b, c, Epilogue{}.row_scale(v6)); }, {"row_scale has extent 6; expected 4"});
  expect_refused([&] { matmul(a, b, c, Epilogue{}.row_scale(Kokkos::View<float*, Space>())); },
                 {"row_scale has extent 0; expected 4"});
  expect_refused([&] { matmul(a, b, c, Epilogue{}.expert_scale(v4)); }, {"expert_scale is given", "no experts"});
  expect_refused([&] { matmul(a, b, c, Epilogue{}.bias(v26)); }, {"bias has rank 2", "no experts"});
  expect_refused([&] { matmul(a, b, half_c, Epilogue{}.gate_silu(GateColumns::halved).beta(1.0f)); },
                 {"beta is not 0", "gate"});
  expect_refused([&] { matmul(a, odd, half_c, Epilogue{}.gate_silu(GateColumns::halved)); },
                 {"b has 5 rows", "even number"});
  expect_refused([&] { matmul(a, b, c, Epilogue{}.gate_silu(GateColumns::halved)); }, {"expected 4 x 3"});
  const auto grouped = Matrix<MXFP4>::grouped("g", 4, 64, 2, ScaleLayout::tcgen);
  expect_refused([&] { matmul(grouped, b, c); }, {"a has grouped scales", "grouped_matmul"});
  const Matrix<NVFP4> qc("qc", 4, 6);
  const Matrix<MXFP4> mc("mc", 4, 6);
  expect_refused([&] { matmul(a, b, qc); }, {"quantize.tensor_scale is dynamic", "given or stored"});
  expect_refused([&] { matmul(a, b, mc, {}, {.quantize = {.tensor_scale = TensorScale::none()}}); },
                 {"tensor_scale is given"});
  expect_refused([&] { matmul(a, b, mc, {}, {.quantize = {.axis = Axis::columns}}); }, {"quantize.axis is columns"});
  expect_refused([&] { matmul(a, b, mc, Epilogue{}.beta(1.0f)); }, {"beta is not 0", "quantized"});
  expect_refused([&] { Epilogue{}.alpha(Kokkos::View<float, Space>()); }, {"Epilogue::alpha"});
  EXPECT_EQ(view_bytes(c), before);
}

// Inf - Inf, NaN scales and NaN codes give NaNs of either sign on most processors.
TEST(Matmul, every_nan_result_is_the_same_quiet_nan) {
  const auto a = random_operand<MXFP8_E5M2>(60, 200, ScaleLayout::linear, 1);
  const auto b = random_operand<MXFP8_E4M3>(60, 200, ScaleLayout::linear, 2);
  const Kokkos::View<float**, Space> c("c", 60, 60);
  matmul(a, b, c, Epilogue{}.alpha(-1.0f));
  int nans = 0;
  for (int i = 0; i < 60; ++i)
    for (int j = 0; j < 60; ++j)
      if (std::isnan(c(i, j))) {
        ++nans;
        ASSERT_EQ(Bits::from_float(c(i, j)), Bits::quiet_nan);
      }
  EXPECT_GT(nans, 100);
}

/// The kernels that other than host spaces run, on the host.
template <class A, class B, class C, class E>
void matmul_by_units(const A& a, const B& b, const C& c, const E& epilogue, const MatmulOptions& options = {}) {
  const auto call = Impl::matmul_kernel<false>(a, b, c, 1, epilogue, Impl::quantize_data(options.quantize));
  Kokkos::parallel_for(Impl::IndexRange<Exec>(0, call.padded_rows * call.padded_units),
                       Impl::MatmulUnits<std::remove_const_t<decltype(call)>>{call});
}

TEST(Matmul, kernels_of_devices_give_the_same_bits) {
  const std::int64_t m = 67, n = 140, k = 150;
  const auto a = random_operand<NVFP4>(m, k, ScaleLayout::tcgen, 1);
  const auto b = random_operand<MXFP8_E4M3>(n, k, ScaleLayout::cdna4, 2);
  const auto bf = random_view<bf16>(m, k, 3);
  const auto epilogue = Epilogue{}.alpha(0.25f).gelu().then(AddIndices{1, -1});
  const Kokkos::View<half**, Kokkos::LayoutLeft, Space> c("c", m, n), d("d", m, n);
  matmul(a, b, c, epilogue);
  matmul_by_units(a, b, d, epilogue);
  EXPECT_EQ(view_bytes(c), view_bytes(d));
  const Kokkos::View<float**, Space> gated("gated", m, n / 2), gated_too("gated", m, n / 2);
  matmul(bf, b, gated, Epilogue{}.gate_silu(GateColumns::halved));
  matmul_by_units(bf, b, gated_too, Epilogue{}.gate_silu(GateColumns::halved));
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n / 2; ++j) ASSERT_TRUE(same_bits(gated(i, j), gated_too(i, j))) << i << ", " << j;
  const Matrix<MXFP6_E3M2> q("q", m, n, ScaleLayout::tcgen), q_too("q", m, n, ScaleLayout::tcgen);
  poison(q, 0x55);
  poison(q_too, 0xaa);
  matmul(a, b, q, epilogue);
  matmul_by_units(a, b, q_too, epilogue);
  EXPECT_EQ(raw_bytes(q), raw_bytes(q_too));
}

TEST(Matmul, reference_by_name_gives_the_same) {
  const auto a = random_operand<MXFP4>(20, 64, ScaleLayout::linear, 1),
             b = random_operand<MXFP4>(30, 64, ScaleLayout::linear, 2);
  const Kokkos::View<float**, Space> c("c", 20, 30), d("d", 20, 30);
  matmul(Exec(), a, b, c);
  reference::matmul(Exec(), a, b, d);
  EXPECT_EQ(view_bytes(c), view_bytes(d));
}

}  // namespace
