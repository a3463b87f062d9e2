#include "Avx512Operands.hpp"
#include <gtest/gtest.h>
#include <Microscale_Avx512_Decode.hpp>

#include <string>

// Tiles of few rows, on the model of the processor, against the product written out.
namespace {

using namespace microscale;
using namespace microscale::Test;
using namespace microscale::MICROSCALE_AVX512_NAMESPACE;

constexpr FormatId block_formats[] = {format_id<MXFP4>,           format_id<NVFP4>,      format_id<MXFP8_E4M3>,
                                      format_id<MXFP8_E5M2>,      format_id<MXFP6_E2M3>, format_id<MXFP6_E3M2>,
                                      format_id<MXFP6_E2M3_Bytes>};
constexpr FormatId plain_formats[] = {float32_id, float16_id, bfloat16_id};
constexpr ScaleLayout layouts[] = {ScaleLayout::linear, ScaleLayout::tcgen, ScaleLayout::cdna4, ScaleLayout::tile_8x4};
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  int m, n, k;
};

TestOperand random_a(FormatId f, const Shape& s, Wildness wildness, Dice& dice) {
  return f.block_size > 0 ? TestOperand(f, s.m, s.k, layouts[dice.below(4)], wildness, dice)
                          : TestOperand(f, s.m, s.k, dice.below(2) == 0, wildness, dice);
}

bool gives_reference_bits(FormatId a, FormatId b) {
  return a == float32_id || (a.block_size > 0 && bits_per_code(a) == 4 && bits_per_code(b) == 4);
}

void check(const TestOperand& a, TestOperand& b, Wildness wildness, const std::string& what) {
  const FormatId fa = a.operand.format, fb = b.operand.format;
  const std::int64_t m = a.operand.rows, n = b.operand.rows, k = a.operand.cols;
  const int piece = fa.block_size == 16 || fb.block_size == 16 ? 16 : 32;
  // The bound of the header; what underflow may add is docs/numerics.md's.
  const double c = piece + static_cast<double>((k + piece - 1) / piece) + 4 + (fa == float16_id ? 1 : 0);
  const double underflow = static_cast<double>(2 * k + 1) * 0x1p-150;
  std::vector<ExpectedElement> expected;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) expected.push_back(expected_element(a, i, b, j));

  for (const Operand& weights : {b.operand, b.prepared()}) {
    constexpr int pitch = decode_cols + 5;
    std::vector<float> out(static_cast<std::size_t>(m * pitch + 16), nan);
    for (std::int64_t col = 0; col < n; col += decode_cols) {
      const int cols = static_cast<int>(std::min<std::int64_t>(n - col, decode_cols));
      decode_tile(a.operand, 0, static_cast<int>(m), 0, weights, col, cols, 0, k, out.data(), pitch);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < cols; ++j) {
          const float x = out[static_cast<std::size_t>(i * pitch + j)];
          const ExpectedElement& e = expected[static_cast<std::size_t>(i * n + col + j)];
          const auto where = testing::Message() << what << (weights.prepared != nullptr ? ", prepared" : "")
                                                << ": element (" << i << ", " << col + j << ")";
          if (gives_reference_bits(fa, fb)) {
            ASSERT_TRUE(same_bits(x, e.reference)) << where << " is " << x << ", expected " << e.reference;
          } else if (std::isnan(e.exact)) {
            ASSERT_TRUE(std::isnan(x)) << where << " is " << x;
          } else if (e.magnitude < 0x1p127) {
            ASSERT_LE(std::abs(x - e.exact), c * 0x1p-24 * e.magnitude + underflow) << where;
          } else {
            ASSERT_EQ(wildness, Wildness::extreme);  // out of range: no bound is promised
          }
        }
    }
  }
}

void check_formats(const Shape& shape, Wildness wildness, std::uint64_t seed) {
  Dice dice{std::mt19937_64(seed)};
  std::vector<FormatId> activations(std::begin(plain_formats), std::end(plain_formats));
  activations.insert(activations.end(), std::begin(block_formats), std::end(block_formats));
  for (const FormatId& fb : block_formats)
    for (const FormatId& fa : activations) {
      const TestOperand a = random_a(fa, shape, wildness, dice);
      TestOperand b(fb, shape.n, shape.k, layouts[dice.below(4)], wildness, dice);
      const auto name = [](FormatId f) {
        return testing::Message() << "e" << int{f.element.exponent_bits} << "m" << int{f.element.mantissa_bits} << "/"
                                  << f.block_size;
      };
      check(a, b, wildness, (testing::Message() << name(fa) << " x " << name(fb)).GetString());
    }
}

TEST(Avx512Decode, moderate_values) {
  std::uint64_t seed = 1;
  for (const Shape& s :
       {Shape{1, 16, 32}, {1, 1, 1}, {2, 17, 33}, {3, 40, 95}, {5, 33, 129}, {8, 48, 256}, {13, 18, 70}, {16, 35, 161}})
    check_formats(s, Wildness::moderate, seed++);
}

// NaN and every scale byte, Inf and subnormals among the activations.
TEST(Avx512Decode, extreme_values) {
  std::uint64_t seed = 100;
  for (const Shape& s : {Shape{1, 18, 96}, {4, 31, 500}, {7, 16, 64}, {9, 20, 77}, {16, 17, 200}})
    check_formats(s, Wildness::extreme, seed++);
}

// More than a chunk of weights, a slab of activations, a tile of columns.
TEST(Avx512Decode, long_and_wide) {
  check_formats({1, 3, 9001}, Wildness::moderate, 200);
  check_formats({8, 2, 4200}, Wildness::extreme, 201);
  Dice dice{std::mt19937_64(202)};
  for (const FormatId& fa : {format_id<MXFP4>, bfloat16_id}) {
    const TestOperand a = random_a(fa, {2, 300, 64}, Wildness::moderate, dice);
    TestOperand b(format_id<MXFP4>, 300, 64, ScaleLayout::linear, Wildness::moderate, dice);
    check(a, b, Wildness::moderate, "300 columns");
  }
  const TestOperand a(format_id<MXFP4>, 1, 33000, ScaleLayout::linear, Wildness::moderate, dice);
  TestOperand b(format_id<NVFP4>, 1, 33000, ScaleLayout::linear, Wildness::moderate, dice);
  check(a, b, Wildness::moderate, "33000 elements");
}

// Values that bf16 multiplication would flush or that would overflow in it: 2^-127 * 2^100 * 2^40, the reference's order.
TEST(Avx512Decode, scales_meet_before_they_round) {
  Dice dice{std::mt19937_64(3)};
  for (const FormatId& f : {format_id<MXFP4>, format_id<MXFP8_E4M3>}) {
    TestOperand a(f, 1, 32, ScaleLayout::linear, Wildness::moderate, dice);
    TestOperand b(f, 1, 32, ScaleLayout::linear, Wildness::moderate, dice);
    const int one = f == format_id<MXFP4> ? 0x22 : 0x38;
    std::memset(a.operand.data, one, static_cast<std::size_t>(packed_bytes(f, 32)));
    b.operand.data = a.operand.data;
    a.scale(0, 0) = 0;
    for (const int byte : {0, 1, 127, 200, 253, 254}) {
      b.scale(0, 0) = static_cast<std::uint8_t>(byte);
      float out[16];
      decode_tile(a.operand, 0, 1, 0, b.operand, 0, 1, 0, 32, out, 16);
      EXPECT_EQ(out[0], std::scalbn(32.0f, byte - 127 - 127)) << byte;
    }
    b.scale(0, 0) = 255;
    float out[16];
    decode_tile(a.operand, 0, 1, 0, b.operand, 0, 1, 0, 32, out, 16);
    EXPECT_TRUE(std::isnan(out[0]));
  }
}

// Rows of a matrix and their places in the scale buffer; parts of k add up.
TEST(Avx512Decode, rows_and_parts_of_k) {
  Dice dice{std::mt19937_64(4)};
  const TestOperand a(format_id<NVFP4>, 40, 6000, ScaleLayout::linear, Wildness::moderate, dice);
  const TestOperand b(format_id<NVFP4>, 32, 6000, ScaleLayout::linear, Wildness::moderate, dice);
  Operand shifted = a.operand;
  shifted.scales += 3 * a.operand.scale_pitch;
  float whole[5 * 16], parts[3][5 * 16];
  decode_tile(shifted, 20, 5, -3, b.operand, 16, 16, 0, 6000, whole, 16);
  for (int p = 0; p < 3; ++p)
    decode_tile(a.operand, 20, 5, 0, b.operand, 16, 16, 2048 * p, std::min(2048 * (p + 1), 6000), parts[p], 16);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 16; ++j) {
      const ExpectedElement e = expected_element(a, 20 + i, b, 16 + j);
      EXPECT_EQ(whole[16 * i + j], e.reference);
      const double sum = static_cast<double>(parts[0][16 * i + j]) + parts[1][16 * i + j] + parts[2][16 * i + j];
      EXPECT_LE(std::abs(sum - e.exact), 160 * 0x1p-24 * e.magnitude);  // 128 pieces in the longest part
    }
}

}  // namespace
