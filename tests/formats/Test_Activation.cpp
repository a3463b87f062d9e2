#include <Golden.hpp>
#include <gtest/gtest.h>
#include <Microscale_Activation.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace ms = microscale;
namespace Bits = ms::Bits;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr double ulp = 0x1p-23;  // of 1

// Bounds count an ulp each for expf and erff and two for tanhf, half an ulp for every other operation, and what the
// error of an argument grows to. silu is a quotient, so its error is relative; gelu subtracts from 1, so its error is
// relative to x. Below the smallest normal number all of it is lost, as expf overflows there.

TEST(Activation, AgreesWithTorchInDouble) {
  int seen = 0;
  ms::Test::for_each_golden_line("activations.txt", [&](std::istringstream& line) {
    std::string kind;
    std::uint32_t a, b;
    std::uint64_t results[3];
    line >> kind >> a;
    ++seen;
    const float x = Bits::to_float(a);
    if (kind == "unary") {
      line >> results[0] >> results[1] >> results[2];
      const double silu = std::bit_cast<double>(results[0]);
      EXPECT_NEAR(ms::silu(x), silu, 2 * ulp * std::abs(silu) + 0x1p-126) << x;
      EXPECT_NEAR(ms::gelu_tanh(x), std::bit_cast<double>(results[1]), 3 * ulp * std::abs(x)) << x;
      EXPECT_NEAR(ms::gelu_erf(x), std::bit_cast<double>(results[2]), 2 * ulp * std::abs(x)) << x;
      EXPECT_EQ(ms::relu(x), x > 0 ? x : 0.0f) << x;
    } else {
      line >> b >> results[0] >> results[1];
      const float u = Bits::to_float(b);
      const double silu = std::bit_cast<double>(results[0]), clamped = std::bit_cast<double>(results[1]);
      EXPECT_NEAR(ms::silu_gate(x, u), silu, 3 * ulp * std::abs(silu)) << x << " " << u;
      // The sigmoid's argument is up to 26 in magnitude; half an ulp of it is half as many ulps of exp.
      EXPECT_NEAR(ms::clamped_swiglu(x, u, 7.0f, 1.702f), clamped, 32 * ulp * std::abs(clamped)) << x << " " << u;
    }
  });
  EXPECT_EQ(seen, 97 + 13 + 200 + 100);
}

TEST(Activation, NanStaysNan) {
  for (float x : {nan, -nan}) {
    EXPECT_TRUE(std::isnan(ms::relu(x)));
    EXPECT_TRUE(std::isnan(ms::silu(x)));
    EXPECT_TRUE(std::isnan(ms::gelu_tanh(x)));
    EXPECT_TRUE(std::isnan(ms::gelu_erf(x)));
    EXPECT_TRUE(std::isnan(ms::silu_gate(x, 1.0f)) && std::isnan(ms::silu_gate(1.0f, x)));
    EXPECT_TRUE(std::isnan(ms::clamped_swiglu(x, 1.0f, 7.0f, 1.702f)));
    EXPECT_TRUE(std::isnan(ms::clamped_swiglu(1.0f, x, 7.0f, 1.702f)));
  }
}

TEST(Activation, LargeValuesPass) {
  EXPECT_EQ(ms::relu(inf), inf);
  EXPECT_EQ(ms::relu(-inf), 0.0f);
  EXPECT_EQ(ms::silu(inf), inf);
  EXPECT_EQ(ms::gelu_tanh(inf), inf);
  EXPECT_EQ(ms::gelu_erf(inf), inf);
  EXPECT_EQ(ms::silu(-3e38f), 0.0f);
  EXPECT_EQ(ms::gelu_tanh(-3e38f), 0.0f);
  EXPECT_EQ(ms::gelu_erf(-3e38f), 0.0f);
}

// The clamp: g from above only, u from both sides.
TEST(Activation, ClampedGateClampsBeforeItMultiplies) {
  EXPECT_EQ(ms::clamped_swiglu(100.0f, 2.0f, 7.0f, 1.702f), ms::clamped_swiglu(7.0f, 2.0f, 7.0f, 1.702f));
  EXPECT_EQ(ms::clamped_swiglu(1.0f, 100.0f, 7.0f, 1.702f), ms::clamped_swiglu(1.0f, 7.0f, 7.0f, 1.702f));
  EXPECT_EQ(ms::clamped_swiglu(1.0f, -100.0f, 7.0f, 1.702f), ms::clamped_swiglu(1.0f, -7.0f, 7.0f, 1.702f));
  EXPECT_NE(ms::clamped_swiglu(-9.0f, 2.0f, 7.0f, 1.702f), ms::clamped_swiglu(-7.0f, 2.0f, 7.0f, 1.702f));
}

}  // namespace
