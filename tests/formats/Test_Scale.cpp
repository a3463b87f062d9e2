#include <Golden.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ms = microscale;
using ms::E2M1;
using ms::E2M3;
using ms::E3M2;
using ms::E4M3;
using ms::E5M2;
using ms::E8M0;
using ms::ScaleRule;
using ms::UE4M3;
namespace Bits = ms::Bits;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr ScaleRule rules[] = {ScaleRule::floor, ScaleRule::rceil, ScaleRule::ceil, ScaleRule::even};

float before(float x) { return std::nextafter(x, 0.0f); }
float after(float x) { return std::nextafter(x, inf); }

static_assert(ms::e8m0_from_amax<E2M1>(11.9f, ScaleRule::rceil) == 128);
static_assert(ms::e8m0_from_amax<E4M3>(449.0f, ScaleRule::floor) == 127);
static_assert(E8M0::decode(0) == 0x1p-127f && E8M0::decode(254) == 0x1p127f && E8M0::reciprocal(254) == 0x1p-127f);
static_assert(E8M0::decode(255) != E8M0::decode(255));  // NaN at compile time too (bug log B17)
static_assert(UE4M3::decode(0x81) == 0x1p-9f && UE4M3::encode(500.0f) == 0x7e);

TEST(Scale, DecodesEveryByte) {
  int seen = 0;
  ms::Test::for_each_golden_line("codes.txt", [&](std::istringstream& line) {
    std::string name, kind;
    unsigned code, bits;
    line >> name >> code >> bits >> kind;
    const auto byte = static_cast<std::uint8_t>(code);
    const auto check = [&](float value, bool is_nan) {
      ++seen;
      EXPECT_EQ(is_nan, kind == "nan") << name << " " << std::hex << code;
      EXPECT_EQ(std::isnan(value), kind == "nan") << name << " " << std::hex << code;
      if (kind != "nan") {
        EXPECT_EQ(Bits::from_float(value), bits) << name << " " << std::hex << code;
      }
    };
    if (name == "e8m0") check(E8M0::decode(byte), E8M0::is_nan(byte));
    if (name == "ue4m3") check(UE4M3::decode(byte), UE4M3::is_nan(byte));
  });
  EXPECT_EQ(seen, 512);
}

// The golden thresholds are the whole rule: the byte of an amax is the last one whose threshold it reaches.
TEST(Scale, RulesAreExactForEveryThreshold) {
  std::map<std::pair<std::string, std::string>, std::vector<std::uint32_t>> tables;  // of byte 1, 2, ...
  ms::Test::for_each_golden_line("scale_thresholds.txt", [&](std::istringstream& line) {
    std::string element, rule;
    std::size_t byte;
    std::uint32_t bits;
    line >> element >> rule >> std::dec >> byte >> std::hex >> bits;
    auto& table = tables[{element, rule}];
    ASSERT_EQ(byte, table.size() + 1);
    table.push_back(bits);
  });
  ASSERT_EQ(tables.size(), 20u);
  for (const auto& [key, thresholds] : tables) {
    ms::Test::with_element(key.first, [&, &name = key.second, &table = thresholds]<class E>(E) {
      const ScaleRule rule = ms::Test::rule_of(name);
      ASSERT_GT(table.size(), 238u);
      const auto expect = [&](std::uint32_t bits) {
        const auto byte = std::upper_bound(table.begin(), table.end(), bits) - table.begin();
        ASSERT_EQ(unsigned{ms::e8m0_from_amax<E>(Bits::to_float(bits), rule)}, byte)
            << E::name << " " << name << " amax bits " << std::hex << bits;
      };
      for (std::uint32_t bits : table) {
        for (std::uint32_t step : {0u, 1u, 2u}) expect(bits + step - 1);
      }
      for (std::uint32_t bits = 0; bits < Bits::infinity; bits += 4093) expect(bits);  // 4093: a prime
      expect(Bits::infinity - 1);
      for (float amax : {inf, nan, -nan}) EXPECT_EQ(ms::e8m0_from_amax<E>(amax, rule), 255);
    });
  }
}

template <class E>
std::string cell(float amax) {
  std::string text;
  for (ScaleRule rule : rules) {
    if (!text.empty()) text += '/';
    text += std::to_string(unsigned{ms::e8m0_from_amax<E>(amax, rule)});
  }
  return text;
}

TEST(Scale, WorkedTableOfAmax) {
  // floor/rceil/ceil/even for e2m1, e2m3, e3m2, e4m3, e5m2.
  const struct {
    float amax;
    const char* bytes[5];
  } rows[] = {
      {0.0f, {"0/0/0/0", "0/0/0/0", "0/0/0/0", "0/0/0/0", "0/0/0/0"}},
      {0x1p-149f, {"0/0/0/0", "0/0/0/0", "0/0/0/0", "0/0/0/0", "0/0/0/0"}},
      {0x1p-126f, {"0/0/0/0", "0/0/0/0", "0/0/0/0", "0/0/0/0", "0/0/0/0"}},
      {0x1p-119f, {"6/6/6/6", "6/6/6/6", "4/4/4/4", "0/0/0/0", "0/0/0/0"}},
      {before(1.0f), {"124/125/125/125", "124/125/125/125", "122/123/123/123", "118/119/119/119", "111/112/112/112"}},
      {1.0f, {"125/125/125/125", "125/125/125/125", "123/123/123/123", "119/119/119/119", "112/112/112/112"}},
      {after(1.0f), {"125/125/126/125", "125/125/126/125", "123/123/124/123", "119/119/120/119", "112/112/113/112"}},
      {1.5f, {"125/125/126/125", "125/125/126/125", "123/123/124/123", "119/119/120/119", "112/112/113/112"}},
      {after(1.5f), {"125/126/126/125", "125/125/126/125", "123/123/124/123", "119/119/120/119", "112/112/113/112"}},
      {before(1.75f), {"125/126/126/125", "125/125/126/125", "123/123/124/123", "119/119/120/119", "112/112/113/112"}},
      {1.75f, {"125/126/126/126", "125/125/126/125", "123/123/124/123", "119/119/120/119", "112/112/113/112"}},
      {after(1.75f), {"125/126/126/126", "125/125/126/125", "123/124/124/123", "119/120/120/119", "112/113/113/112"}},
      {1.875f, {"125/126/126/126", "125/125/126/125", "123/124/124/124", "119/120/120/119", "112/113/113/113"}},
      {before(1.9375f),
       {"125/126/126/126", "125/126/126/125", "123/124/124/124", "119/120/120/119", "112/113/113/113"}},
      {1.9375f, {"125/126/126/126", "125/126/126/126", "123/124/124/124", "119/120/120/120", "112/113/113/113"}},
      {6.0f, {"127/127/128/127", "127/127/128/127", "125/125/126/125", "121/121/122/121", "114/114/115/114"}},
      {after(6.0f), {"127/128/128/127", "127/127/128/127", "125/125/126/125", "121/121/122/121", "114/114/115/114"}},
      {7.0f, {"127/128/128/128", "127/127/128/127", "125/125/126/125", "121/121/122/121", "114/114/115/114"}},
      {11.9f, {"128/128/129/128", "128/128/129/128", "126/126/127/126", "122/122/123/122", "115/115/116/115"}},
      {28.0f, {"129/130/130/130", "129/129/130/129", "127/127/128/127", "123/123/124/123", "116/116/117/116"}},
      {240.0f, {"132/133/133/133", "132/132/133/132", "130/131/131/131", "126/127/127/126", "119/120/120/120"}},
      {448.0f, {"133/134/134/134", "133/133/134/133", "131/131/132/131", "127/127/128/127", "120/120/121/120"}},
      {after(448.0f), {"133/134/134/134", "133/133/134/133", "131/132/132/131", "127/128/128/127", "120/121/121/120"}},
      {500.0f, {"133/134/134/134", "133/134/134/134", "131/132/132/132", "127/128/128/128", "120/121/121/121"}},
      {57344.0f, {"140/141/141/141", "140/140/141/140", "138/138/139/138", "134/134/135/134", "127/127/128/127"}},
      {ms::float_max, {"252/253/253/253", "252/253/253/253", "250/251/251/251", "246/247/247/247", "239/240/240/240"}},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(cell<E2M1>(row.amax), row.bytes[0]) << row.amax;
    EXPECT_EQ(cell<E2M3>(row.amax), row.bytes[1]) << row.amax;
    EXPECT_EQ(cell<E3M2>(row.amax), row.bytes[2]) << row.amax;
    EXPECT_EQ(cell<E4M3>(row.amax), row.bytes[3]) << row.amax;
    EXPECT_EQ(cell<E5M2>(row.amax), row.bytes[4]) << row.amax;
  }
}

/// "worst relative error of the block maximum / share of the binade that saturates", amax in [1, 2) in 4096 steps.
template <class E>
std::string quality(ScaleRule rule) {
  double worst = 0;
  int saturated = 0;
  for (int i = 0; i < 4096; ++i) {
    const float amax = 1.0f + static_cast<float>(i) / 4096.0f;
    const float scale = E8M0::decode(ms::e8m0_from_amax<E>(amax, rule));
    const float back = E::decode(E::encode(amax / scale)) * scale;
    worst = std::max(worst, std::abs(static_cast<double>(back) - amax) / amax);
    saturated += amax / scale > E::max;
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.1f%% / %.1f%%", 100 * worst, 100.0 * saturated / 4096);
  return text;
}

template <class E>
void expect_quality(const char* floor, const char* rceil, const char* ceil, const char* even) {
  EXPECT_EQ(quality<E>(ScaleRule::floor), floor) << E::name;
  EXPECT_EQ(quality<E>(ScaleRule::rceil), rceil) << E::name;
  EXPECT_EQ(quality<E>(ScaleRule::ceil), ceil) << E::name;
  EXPECT_EQ(quality<E>(ScaleRule::even), even) << E::name;
}

TEST(Scale, WorkedTableOfErrorAndSaturation) {
  expect_quality<E2M1>("25.0% / 50.0%", "20.0% / 0.0%", "20.0% / 0.0%", "20.0% / 25.0%");
  expect_quality<E2M3>("6.2% / 12.5%", "5.9% / 0.0%", "5.9% / 0.0%", "5.9% / 6.2%");
  expect_quality<E3M2>("12.5% / 25.0%", "11.1% / 0.0%", "11.1% / 0.0%", "11.1% / 12.5%");
  expect_quality<E4M3>("12.5% / 25.0%", "5.9% / 0.0%", "5.9% / 0.0%", "9.7% / 18.7%");
  expect_quality<E5M2>("12.5% / 25.0%", "11.1% / 0.0%", "11.1% / 0.0%", "11.1% / 12.5%");
}

TEST(Scale, E8M0EncodesUpAndDown) {
  // Both directions against a search over all decoded bytes.
  ms::Test::SplitMix64 next(41);
  const auto check = [](float x) {
    int up = 0, down = 254;
    while (up < 254 && E8M0::decode(static_cast<std::uint8_t>(up)) < std::abs(x)) ++up;
    while (down > 0 && E8M0::decode(static_cast<std::uint8_t>(down)) > std::abs(x)) --down;
    EXPECT_EQ(E8M0::encode_up(x), up) << x;
    EXPECT_EQ(E8M0::encode_down(x), down) << x;
  };
  for (int b = 0; b < 255; ++b) {
    const float x = E8M0::decode(static_cast<std::uint8_t>(b));
    for (float y : {x, -x, before(x), after(x)}) check(y);
  }
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<std::uint32_t>(next() >> 32);
    if ((bits & Bits::magnitude) < Bits::infinity) check(Bits::to_float(bits));
  }
  for (float x : {0.0f, -0.0f, 0x1p-149f, ms::float_max}) check(x);
  for (float x : {inf, -inf, nan, -nan}) {
    EXPECT_EQ(E8M0::encode_up(x), 255);
    EXPECT_EQ(E8M0::encode_down(x), 255);
  }
}

TEST(Scale, UE4M3RoundsAsE4M3WithoutASign) {
  int seen = 0;
  ms::Test::for_each_golden_line("boundaries.txt", [&](std::istringstream& line) {
    std::string name;
    unsigned bits, code;
    line >> name >> bits >> code;
    if (name != "e4m3" || bits > Bits::magnitude) return;
    ++seen;
    EXPECT_EQ(UE4M3::encode(Bits::to_float(bits)), code) << std::hex << bits;
  });
  EXPECT_GT(seen, 380);
  // llama.cpp's UE4M3 cast differs from RNE in most of these.
  const std::pair<float, unsigned> rne[] = {{1 / 1024.f, 0x00}, {3 / 2048.f, 0x01}, {15 / 1024.f, 0x08}, {0.015f, 0x08},
                                            {1.0625f, 0x38},    {247.f, 0x77},      {248.f, 0x78},       {256.f, 0x78},
                                            {300.f, 0x79},      {400.f, 0x7c},      {448.f, 0x7e},       {inf, 0x7e},
                                            {nan, 0x7f}};
  for (const auto& [x, byte] : rne) EXPECT_EQ(UE4M3::encode(x), byte) << x;
}

// From the bug log of other libraries.

TEST(ScaleBug, RceilRoundsUpAndNeverToNearest) {  // B02
  EXPECT_EQ(ms::e8m0_from_amax<E4M3>(500.0f, ScaleRule::rceil), 128);
  EXPECT_EQ(ms::e8m0_from_amax<E4M3>(449.0f, ScaleRule::rceil), 128);
}

TEST(ScaleBug, ScaleIsSizedForThe448OfE4M3) {  // B03
  EXPECT_EQ(ms::e8m0_from_amax<E4M3>(448.0f, ScaleRule::rceil), 127);
  EXPECT_EQ(E4M3::encode(448.0f), 0x7e);
  EXPECT_EQ(ms::e8m0_from_amax<E4M3>(240.0f, ScaleRule::rceil), 127);
  EXPECT_EQ(E4M3::encode(240.0f), 0x77);
}

TEST(ScaleBug, ByteZeroIsNotZeroAndByte255IsNotInf) {  // B15, B16
  for (int b = 0; b < 255; ++b) {
    EXPECT_EQ(static_cast<double>(E8M0::decode(static_cast<std::uint8_t>(b))), std::ldexp(1.0, b - 127)) << b;
  }
  EXPECT_TRUE(std::isnan(E8M0::decode(255)));
  EXPECT_EQ(E8M0::decode(134), 128.0f);
  EXPECT_EQ(0x1p112f * (256.0f * E8M0::decode(0)) * 128.0f, 1.0f);
}

TEST(ScaleBug, NanScaleHasAPayload) {  // B17
  volatile std::uint8_t run_time = 255;
  for (float x : {E8M0::decode(255), E8M0::decode(run_time), E8M0::reciprocal(run_time), UE4M3::decode(0x7f)}) {
    EXPECT_NE(Bits::from_float(x) & 0x007fffffu, 0u);
    EXPECT_EQ(Bits::from_float(x) & Bits::infinity, Bits::infinity);
  }
}

TEST(ScaleBug, ReciprocalIsExactAtBothEnds) {  // B18
  for (int b = 0; b < 255; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    EXPECT_EQ(static_cast<double>(E8M0::reciprocal(byte)), std::ldexp(1.0, 127 - b)) << b;
  }
  EXPECT_EQ(E4M3::encode(0x1p127f * E8M0::reciprocal(254)), 0x38);
  EXPECT_EQ(E4M3::encode(0x1p-127f * E8M0::reciprocal(0)), 0x38);
}

TEST(ScaleBug, SubnormalUE4M3DecodesExactly) {  // B23
  for (int b = 0; b < 0x7f; ++b) {
    const double value = b < 8 ? std::ldexp(b, -9) : std::ldexp(8 + b % 8, b / 8 - 10);
    EXPECT_EQ(static_cast<double>(UE4M3::decode(static_cast<std::uint8_t>(b))), value) << b;
  }
  EXPECT_EQ(UE4M3::decode(0x01), 0.001953125f);
  EXPECT_EQ(UE4M3::decode(0x07), 0.013671875f);
}

TEST(ScaleBug, FourPowersOfTwoMakeFourBytes) {  // B40
  const float scales[] = {0x1p-3f, 0x1p5f, 0x1p127f, 0x1p-126f};
  const int bytes[] = {0x7c, 0x84, 0xfe, 0x01};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(E8M0::encode_up(scales[i]), bytes[i]);
    EXPECT_EQ(E8M0::encode_down(scales[i]), bytes[i]);
  }
}

}  // namespace
