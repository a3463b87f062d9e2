#include <Golden.hpp>
#include <gtest/gtest.h>
#include <Microscale_Bits.hpp>

#include <cmath>
#include <limits>

namespace ms = microscale;
namespace Bits = ms::Bits;

namespace {

static_assert(Bits::pow2(-149) == std::numeric_limits<float>::denorm_min() && Bits::pow2(127) == 0x1p127f);
static_assert(Bits::scale_by_pow2(3.0f, -150) == 0x1p-148f);  // 1.5 * 2^-149: a tie, to even
static_assert(ms::float_max == std::numeric_limits<float>::max());

TEST(Bits, PowersOfTwo) {
  for (int e = -149; e <= 127; ++e) EXPECT_EQ(static_cast<double>(Bits::pow2(e)), std::ldexp(1.0, e)) << e;
}

// A product with a power of two is exact in double as long as it fits, so the conversion back is the one rounding.
TEST(Bits, ScalingByAPowerOfTwoRoundsOnce) {
  ms::Test::SplitMix64 next(3);
  const auto check = [](float x, int e) {
    const auto once = static_cast<float>(std::ldexp(static_cast<double>(x), e));
    EXPECT_EQ(Bits::from_float(Bits::scale_by_pow2(x, e)), Bits::from_float(once)) << x << " * 2^" << e;
  };
  for (int i = 0; i < 400000; ++i) {
    const auto bits = static_cast<std::uint32_t>(next() >> 32);
    if ((bits & Bits::magnitude) < Bits::infinity) check(Bits::to_float(bits), static_cast<int>(next() % 701) - 350);
  }
  // Results around the subnormals, where a second rounding would show.
  for (int i = 0; i < 400000; ++i) {
    const auto bits = static_cast<std::uint32_t>(next() >> 32) & 0x80ffffffu;
    const int exponent = static_cast<int>(next() % 254);
    const float x = Bits::to_float((bits & 0x807fffffu) | (static_cast<std::uint32_t>(exponent) << 23));
    check(x, -120 - exponent - static_cast<int>(next() % 34) + 100);
    check(x, -exponent - static_cast<int>(next() % 34));
  }
  for (float x : {0.0f, -0.0f, 1.0f, ms::float_max, 0x1p-149f, -0x1.fffffcp-127f}) {
    for (int e = -420; e <= 420; ++e) check(x, e);
  }
  const int extremes[] = {std::numeric_limits<int>::min(), -100000, 100000, std::numeric_limits<int>::max()};
  for (int e : extremes) {
    EXPECT_EQ(Bits::scale_by_pow2(1.5f, e), e < 0 ? 0.0f : std::numeric_limits<float>::infinity()) << e;
    EXPECT_EQ(Bits::scale_by_pow2(0.0f, e), 0.0f) << e;
  }
}

}  // namespace
