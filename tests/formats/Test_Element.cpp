#include <Golden.hpp>
#include <gtest/gtest.h>
#include <Microscale_Half.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ms = microscale;
using ms::E2M1;
using ms::E2M3;
using ms::E3M2;
using ms::E4M3;
using ms::E5M2;
namespace Bits = ms::Bits;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Everything can be had at compile time.
static_assert(E2M1::max == 6.0f && E2M3::max == 7.5f && E3M2::max == 28.0f && E4M3::max == 448.0f);
static_assert(E5M2::max == 57344.0f && E5M2::bits == 8 && E3M2::bits == 6 && E2M1::bits == 4);
static_assert(E2M1::emax == 2 && E2M3::emax == 2 && E3M2::emax == 4 && E4M3::emax == 8 && E5M2::emax == 15);
static_assert(E2M1::bias == 1 && E2M3::bias == 1 && E3M2::bias == 3 && E4M3::bias == 7 && E5M2::bias == 15);
static_assert(E2M1::encode(-5.0f) == 0xe && E2M1::decode(0xe) == -4.0f);
static_assert(E4M3::encode(1.0f) == 0x38 && E4M3::is_nan(0xff) && !E4M3::is_nan(0x7e));
static_assert(E5M2::is_inf(0xfc) && E5M2::is_nan(0x7d) && !E5M2::is_nan(0x7c));

std::uint32_t canonical(float x) { return std::isnan(x) ? 0x7fc00000u : Bits::from_float(x); }

TEST(Element, DecodesAndClassifiesEveryCode) {
  int seen = 0;
  ms::Test::for_each_golden_line("codes.txt", [&](std::istringstream& line) {
    std::string name, kind;
    unsigned code, bits;
    line >> name >> code >> bits >> kind;
    if (name == "e8m0" || name == "ue4m3") return;
    ++seen;
    ms::Test::with_element(name, [&]<class E>(E) {
      const auto c = static_cast<std::uint8_t>(code);
      EXPECT_EQ(canonical(E::decode(c)), bits) << name << " " << std::hex << code;
      EXPECT_EQ(E::is_nan(c), kind == "nan") << name << " " << std::hex << code;
      EXPECT_EQ(E::is_inf(c), kind == "inf") << name << " " << std::hex << code;
      if (kind == "finite" || kind == "zero") {
        EXPECT_EQ(E::encode(E::decode(c)), c) << name << " " << std::hex << code;
      }
    });
  });
  EXPECT_EQ(seen, 16 + 64 + 64 + 256 + 256);
}

TEST(Element, EncodesAllBf16AndHalf) {
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<unsigned, unsigned>>> runs;
  ms::Test::for_each_golden_line("from16.txt", [&](std::istringstream& line) {
    std::string source, target;
    unsigned first, code;
    line >> source >> target >> first >> code;
    runs[{source, target}].push_back({first, code});
  });
  ASSERT_EQ(runs.size(), 10u);
  for (const auto& [key, run] : runs) {
    ms::Test::with_element(key.second, [&, &pair = key, &table = run]<class E>(E) {
      std::size_t at = 0;
      int wrong = 0;
      for (unsigned pattern = 0; pattern < 65536; ++pattern) {
        if (at + 1 < table.size() && table[at + 1].first == pattern) ++at;
        const auto bits = static_cast<std::uint16_t>(pattern);
        const float x = pair.first == "bf16" ? float(ms::bf16::from_bits(bits)) : float(ms::half::from_bits(bits));
        if (E::encode(x) != table[at].second && ++wrong < 4) {
          ADD_FAILURE() << pair.first << " " << std::hex << pattern << " to " << E::name << ": "
                        << unsigned{E::encode(x)} << ", expected " << table[at].second;
        }
      }
      EXPECT_EQ(wrong, 0);
    });
  }
}

TEST(Element, EncodesEveryRoundingBoundary) {
  int seen = 0;
  ms::Test::for_each_golden_line("boundaries.txt", [&](std::istringstream& line) {
    std::string name;
    unsigned bits, code;
    line >> name >> bits >> code;
    ++seen;
    ms::Test::with_element(name, [&]<class E>(E) {
      EXPECT_EQ(unsigned{E::encode(Bits::to_float(bits))}, code) << name << " " << std::hex << bits;
    });
  });
  EXPECT_GT(seen, 3900);
}

TEST(Element, EncodesRandomBinary32) {
  int seen = 0;
  std::map<std::string, std::vector<std::uint32_t>> inputs;
  ms::Test::for_each_golden_line("random.txt", [&](std::istringstream& line) {
    std::string name, set;
    std::size_t chunk;
    std::uint64_t hash;
    line >> name >> set >> std::dec >> chunk >> std::hex >> hash;
    if (name == "bf16" || name == "half") return;
    ++seen;
    auto& bits = inputs[name];
    if (bits.empty()) bits = ms::Test::random_binary32(std::stoull(set));
    ms::Test::with_element(name, [&]<class E>(E) {
      ms::Test::Fnv1a fnv;
      for (std::size_t i = chunk * ms::Test::golden_chunk; i < (chunk + 1) * ms::Test::golden_chunk; ++i) {
        fnv.add(E::encode(Bits::to_float(bits[i])));
      }
      EXPECT_EQ(fnv.value(), hash) << name << ", chunk " << chunk;
    });
  });
  EXPECT_EQ(seen, 5 * 64);
}

// What GPUs compute, against what CPUs do: every code, and binary32 values of every exponent and leading mantissa with
// trailing bits just below, on and above the midpoints.
TEST(Element, FormsByLaneGiveTheSame) {
  const auto check = []<class E>(E) {
    for (int code = 0; code < 256; ++code) {
      const auto c = static_cast<std::uint8_t>(code);
      ASSERT_EQ(canonical(E::decode_by_lane(c)), canonical(E::decode(c))) << E::name << " " << std::hex << code;
    }
    for (std::uint32_t high = 0; high < 1u << 19; ++high)
      for (const std::uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x1fffu}) {
        const float x = Bits::to_float(high << 13 | low);
        ASSERT_EQ(E::encode_by_lane(x), E::encode(x)) << E::name << " " << std::hex << (high << 13 | low);
      }
  };
  check(E2M1());
  check(E2M3());
  check(E3M2());
  check(E4M3());
  check(E5M2());
}

TEST(Element, DoubleIsRoundedToFloatFirst) {
  EXPECT_EQ(E2M1::encode(5.0 + 1e-12), 6);  // a tie after the first rounding, so to even
  EXPECT_EQ(E2M1::encode(0.25 + 1e-12), 0);
  EXPECT_EQ(E4M3::encode(1e300), 0x7e);
  EXPECT_EQ(E2M1::encode(-1e-300), 8);
}

TEST(Element, WorkedTableE2M1Midpoints) {
  const struct {
    float x;
    unsigned positive, negative;
  } rows[] = {{0.25f, 0, 8},  {0.75f, 2, 0xa}, {1.25f, 2, 0xa}, {1.75f, 4, 0xc},
              {2.5f, 4, 0xc}, {3.5f, 6, 0xe},  {5.0f, 6, 0xe},  {7.0f, 7, 0xf}};
  for (const auto& row : rows) {
    EXPECT_EQ(E2M1::encode(row.x), row.positive) << row.x;
    EXPECT_EQ(E2M1::encode(-row.x), row.negative) << -row.x;
  }
  EXPECT_EQ(E2M1::encode(std::nextafter(0.25f, 1.0f)), 1);
  EXPECT_EQ(E2M1::encode(std::nextafter(0.25f, 0.0f)), 0);
  EXPECT_EQ(E2M1::encode(std::nextafter(5.0f, 6.0f)), 7);
  EXPECT_EQ(E2M1::encode(std::nextafter(5.0f, 4.0f)), 6);
  EXPECT_EQ(E2M1::encode(6.5f), 7);
  EXPECT_EQ(E2M1::encode(1e30f), 7);
  EXPECT_EQ(E2M1::encode(-0.2f), 8);
  EXPECT_EQ(E2M1::encode(-0.0f), 8);
  EXPECT_EQ(E2M1::encode(inf), 7);
  EXPECT_EQ(E2M1::encode(-inf), 0xf);
  EXPECT_EQ(E2M1::encode(nan), 7);
  EXPECT_EQ(E2M1::encode(-nan), 7);
}

template <class E>
void expect_codes(const std::vector<std::pair<float, unsigned>>& rows) {
  for (const auto& [x, code] : rows) EXPECT_EQ(unsigned{E::encode(x)}, code) << E::name << " " << x;
}

TEST(Element, WorkedTableOtherFormats) {
  expect_codes<E2M3>({{1 / 16.f, 0x00},
                      {1 / 8.f, 0x01},
                      {3 / 16.f, 0x02},
                      {15 / 16.f, 0x08},
                      {29 / 4.f, 0x1e},
                      {15 / 2.f, 0x1f},
                      {31 / 4.f, 0x1f},
                      {8.f, 0x1f},
                      {inf, 0x1f},
                      {-inf, 0x3f},
                      {nan, 0x1f}});
  expect_codes<E3M2>({{1 / 32.f, 0x00},
                      {1 / 16.f, 0x01},
                      {3 / 32.f, 0x02},
                      {7 / 32.f, 0x04},
                      {26.f, 0x1e},
                      {28.f, 0x1f},
                      {30.f, 0x1f},
                      {32.f, 0x1f},
                      {inf, 0x1f},
                      {-inf, 0x3f},
                      {nan, 0x1f}});
  expect_codes<E4M3>({{1 / 1024.f, 0x00},
                      {1 / 512.f, 0x01},
                      {3 / 1024.f, 0x02},
                      {15 / 1024.f, 0x08},
                      {1 / 64.f, 0x08},
                      {432.f, 0x7e},
                      {448.f, 0x7e},
                      {464.f, 0x7e},
                      {14849 / 32.f, 0x7e},
                      {480.f, 0x7e},
                      {inf, 0x7e},
                      {-inf, 0xfe},
                      {nan, 0x7f},
                      {-nan, 0x7f}});
  expect_codes<E5M2>({{1 / 131072.f, 0x00},
                      {1 / 65536.f, 0x01},
                      {3 / 131072.f, 0x02},
                      {57344.f, 0x7b},
                      {61439.f, 0x7b},
                      {61440.f, 0x7b},
                      {65536.f, 0x7b},
                      {inf, 0x7b},
                      {-inf, 0xfb},
                      {nan, 0x7e},
                      {-nan, 0x7e}});
}

// From the bug log of other libraries.

TEST(ElementBug, TiesGoToEvenNotAwayFromZero) {  // B06
  expect_codes<E2M1>({{0.25f, 0}, {1.25f, 2}, {2.5f, 4}, {5.0f, 6}});
}

TEST(ElementBug, StickyBitsBelowOneAreKept) {  // B05
  const float step = 0x1p-20f;
  const float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  const unsigned at[] = {0, 2, 2, 4, 4, 6, 6};
  for (int i = 0; i < 7; ++i) {
    const auto below = static_cast<unsigned>(i), above = below + 1;
    expect_codes<E2M1>({{ties[i] - step, below}, {ties[i], at[i]}, {ties[i] + step, above}});
    expect_codes<E2M1>({{-ties[i] + step, 8 + below}, {-ties[i], 8 + at[i]}, {-ties[i] - step, 8 + above}});
  }
}

TEST(ElementBug, CarryIntoTheTopExponentIsNoOverflow) {  // B13
  expect_codes<E2M1>({{3.6f, 6}, {3.49f, 5}, {4.99f, 6}, {5.01f, 7}, {1.9f, 4}});
}

TEST(ElementBug, DividingByAScaleIsNotMultiplyingByItsReciprocal) {  // B07: block_scale multiplies, by contract
  const float v = 0.02392577938735485f, scale = ms::UE4M3::decode(0x07);
  EXPECT_EQ(scale, 0.013671875f);
  EXPECT_EQ(E2M1::encode(v / scale), 3);
  EXPECT_EQ(E2M1::encode(v * (1.0f / scale)), 4);
}

TEST(ElementBug, AnyInputTypePacksTheSame) {  // B63
  for (float magnitude : {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f}) {
    for (float x : {magnitude, -magnitude}) {
      EXPECT_EQ(E2M1::encode(x), E2M1::encode(float(ms::bf16(x)))) << x;
      EXPECT_EQ(E2M1::encode(x), E2M1::encode(float(ms::half(x)))) << x;
      EXPECT_EQ(E2M1::encode(x), E2M1::encode(static_cast<double>(x))) << x;
    }
  }
}

}  // namespace
