#include <Golden.hpp>
#include <gtest/gtest.h>
#include <Microscale_Half.hpp>

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

namespace ms = microscale;
namespace Bits = ms::Bits;

namespace {

static_assert(sizeof(ms::bf16) == 2 && sizeof(ms::half) == 2);
static_assert(std::is_trivially_copyable_v<ms::bf16> && std::is_trivially_copyable_v<ms::half>);
static_assert(ms::bf16(1.0f).bits == 0x3f80 && ms::half(1.0f).bits == 0x3c00);
static_assert(float(ms::half(65520.0f)) > 1e30f && float(ms::half(65519.0f)) == 65504.0f);

template <class T>
constexpr std::uint16_t canonical_nan = std::is_same_v<T, ms::bf16> ? 0x7fc0 : 0x7e00;

/// Bits of T(x), with every NaN made one.
template <class T>
std::uint16_t convert(std::uint32_t bits) {
  const T result(Bits::to_float(bits));
  return std::isnan(float(result)) ? canonical_nan<T> : result.bits;
}

template <class T>
std::uint64_t hash(const std::vector<std::uint32_t>& inputs, std::size_t begin, std::size_t end) {
  ms::Test::Fnv1a fnv;
  for (std::size_t i = begin; i < end; ++i) fnv.add(convert<T>(inputs[i]));
  return fnv.value();
}

/// All upper parts with one pattern of the bits that are rounded away, the inputs of a "boundary" line.
std::vector<std::uint32_t> with_low_bits(int shift, std::uint32_t low) {
  std::vector<std::uint32_t> result(std::size_t{1} << (32 - shift));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = (static_cast<std::uint32_t>(i) << shift) + low;
  return result;
}

/// k * 2^-25 for k = 0..2049 (0 becoming the least subnormal), moved by step - 1 ulp.
std::vector<std::uint32_t> near_half_subnormals(std::uint32_t step) {
  std::vector<std::uint32_t> result;
  for (int k = 0; k < 2050; ++k) {
    const std::uint32_t bits = Bits::from_float(static_cast<float>(k) * 0x1p-25f);
    result.push_back((bits == 0 ? 1 : bits) + step - 1);
  }
  return result;
}

template <class T>
void check_target(const std::string& target, std::size_t lines) {
  constexpr bool brain = std::is_same_v<T, ms::bf16>;
  const std::uint32_t brain_low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  const std::uint32_t half_low[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff};
  std::vector<std::uint32_t> random;
  std::size_t seen = 0;
  ms::Test::for_each_golden_line("random.txt", [&](std::istringstream& line) {
    std::string name, set;
    std::size_t chunk;
    std::uint64_t expected, actual;
    line >> name >> set >> std::dec >> chunk >> std::hex >> expected;
    if (name != target) return;
    ++seen;
    if (set == "boundary") {
      const auto inputs = brain ? with_low_bits(16, brain_low[chunk]) : with_low_bits(13, half_low[chunk]);
      actual = hash<T>(inputs, 0, inputs.size());
    } else if (set == "subnormal") {
      const auto inputs = near_half_subnormals(static_cast<std::uint32_t>(chunk));
      actual = hash<T>(inputs, 0, inputs.size());
    } else {
      if (random.empty()) random = ms::Test::random_binary32(std::stoull(set));
      actual = hash<T>(random, chunk * ms::Test::golden_chunk, (chunk + 1) * ms::Test::golden_chunk);
    }
    EXPECT_EQ(actual, expected) << target << " " << set << " " << chunk;
  });
  EXPECT_EQ(seen, lines);
}

TEST(Half, RoundsBinary32ToBf16) { check_target<ms::bf16>("bf16", 64 + 6); }
TEST(Half, RoundsBinary32ToHalf) { check_target<ms::half>("half", 64 + 6 + 3); }

TEST(Half, EveryPatternGoesToFloatAndBack) {
  for (unsigned pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float as_bf16 = float(ms::bf16::from_bits(bits)), as_half = float(ms::half::from_bits(bits));
    EXPECT_EQ(std::isnan(as_bf16), (bits & 0x7fff) > 0x7f80) << std::hex << pattern;
    EXPECT_EQ(std::isnan(as_half), (bits & 0x7fff) > 0x7c00) << std::hex << pattern;
    if (!std::isnan(as_bf16)) {
      ASSERT_EQ(ms::bf16(as_bf16).bits, bits) << std::hex << pattern;
      ASSERT_EQ(Bits::from_float(as_bf16), pattern << 16) << std::hex << pattern;
    }
    if (!std::isnan(as_half)) {
      ASSERT_EQ(ms::half(as_half).bits, bits) << std::hex << pattern;
      // The definition of binary16, in double.
      const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
      const double magnitude = exponent == 31  ? std::ldexp(1.0, 2000)
                               : exponent == 0 ? std::ldexp(fraction, -24)
                                               : std::ldexp(1024 + fraction, exponent - 25);
      ASSERT_EQ(static_cast<double>(as_half), bits & 0x8000 ? -magnitude : magnitude) << std::hex << pattern;
      ASSERT_EQ(std::signbit(as_half), (bits & 0x8000) != 0) << std::hex << pattern;
    }
  }
}

TEST(Half, NanStaysNanWithItsSign) {
  // 7F800001: the payload lies wholly in the bits that are cut off, where truncation would give Inf.
  for (std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu}) {
    for (std::uint32_t sign : {0u, 0x80000000u}) {
      const float x = Bits::to_float(bits | sign);
      EXPECT_TRUE(std::isnan(float(ms::bf16(x)))) << std::hex << bits;
      EXPECT_TRUE(std::isnan(float(ms::half(x)))) << std::hex << bits;
      EXPECT_EQ(ms::bf16(x).bits & 0x8000u, sign >> 16);
      EXPECT_EQ(ms::half(x).bits & 0x8000u, sign >> 16);
    }
  }
}

TEST(Half, OverflowGivesInf) {
  EXPECT_EQ(ms::half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(ms::half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(ms::half(-1e30f).bits, 0xfc00);
  EXPECT_EQ(ms::bf16(Bits::to_float(0x7f7f7fff)).bits, 0x7f7f);
  EXPECT_EQ(ms::bf16(Bits::to_float(0x7f7f8000)).bits, 0x7f80);
  EXPECT_EQ(ms::bf16(-ms::float_max).bits, 0xff80);
}

}  // namespace
