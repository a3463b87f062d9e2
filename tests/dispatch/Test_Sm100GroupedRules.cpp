#include <gtest/gtest.h>
#include <Microscale_Sm100_GroupedRules.hpp>

#include <cstdint>
#include <limits>
#include <string>

// Expected values are written out from the published rules, not computed.
namespace microscale::Impl {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
constexpr Sm100Kind nvfp4 = Sm100Kind::mxf4nvf4, mxfp4 = Sm100Kind::mxf4, mxfp8 = Sm100Kind::mxf8f6f4;

TEST(Sm100GroupedRules, TheDataIsWhatWasPublished) {
  EXPECT_EQ(DECODE_AVG_M, 8);
  EXPECT_EQ(SMALL_PREFILL_AVG_M, 64);
  EXPECT_EQ(DECODE_DEFAULT_STAGES, 6);
  const std::int64_t rows[][4] = {
      {4096, 7168, 64, 6}, {4096, 7168, -1, 7}, {7168, 2048, 64, 6}, {7168, 2048, -1, 6}, {7168, 256, -1, 6}};
  ASSERT_EQ(std::size(NVFP4_TUNED_STAGES), std::size(rows));
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    EXPECT_EQ(NVFP4_TUNED_STAGES[i].n, rows[i][0]);
    EXPECT_EQ(NVFP4_TUNED_STAGES[i].k, rows[i][1]);
    EXPECT_EQ(NVFP4_TUNED_STAGES[i].regime, rows[i][2]);
    EXPECT_EQ(NVFP4_TUNED_STAGES[i].stages, rows[i][3]);
  }
}

TEST(Sm100GroupedRules, RegimesAreInclusive) {
  const struct {
    std::int64_t total, experts;
    Sm100Regime regime;
  } cases[] = {
      {7, 1, Sm100Regime::decode},
      {8, 1, Sm100Regime::decode},
      {9, 1, Sm100Regime::small_prefill},
      {63, 1, Sm100Regime::small_prefill},
      {64, 1, Sm100Regime::small_prefill},
      {65, 1, Sm100Regime::large_prefill},
      {255, 32, Sm100Regime::decode},
      {256, 32, Sm100Regime::decode},
      {257, 32, Sm100Regime::small_prefill},
      {2047, 32, Sm100Regime::small_prefill},
      {2048, 32, Sm100Regime::small_prefill},
      {2049, 32, Sm100Regime::large_prefill},
      // An average of 8 + 1/3 is above 8, though 25 / 3 is 8 in whole numbers; 64 + 1/3 likewise.
      {24, 3, Sm100Regime::decode},
      {25, 3, Sm100Regime::small_prefill},
      {192, 3, Sm100Regime::small_prefill},
      {193, 3, Sm100Regime::large_prefill},
  };
  for (const auto& c : cases) EXPECT_EQ(sm100_regime(c.total, c.experts), c.regime) << c.total << " / " << c.experts;
}

TEST(Sm100GroupedRules, NothingIsDividedAndNothingOverflows) {
  EXPECT_EQ(sm100_regime(0, 0), Sm100Regime::decode);
  EXPECT_EQ(sm100_regime(0, 32), Sm100Regime::decode);
  EXPECT_EQ(sm100_regime(1, 0), Sm100Regime::large_prefill);
  EXPECT_EQ(sm100_regime(largest, 0), Sm100Regime::large_prefill);
  EXPECT_EQ(sm100_regime(largest, 1), Sm100Regime::large_prefill);
  EXPECT_EQ(sm100_regime(largest, largest), Sm100Regime::decode);
  EXPECT_EQ(sm100_regime(1, largest), Sm100Regime::decode);
  // 2^60 experts of 8 rows are one row more than there are numbers for, and 2^57 of 64.
  constexpr std::int64_t one = 1;
  EXPECT_EQ(sm100_regime(largest, one << 60), Sm100Regime::decode);
  EXPECT_EQ(sm100_regime(largest, (one << 60) - 1), Sm100Regime::small_prefill);
  EXPECT_EQ(sm100_regime(largest, one << 57), Sm100Regime::small_prefill);
  EXPECT_EQ(sm100_regime(largest, (one << 57) - 1), Sm100Regime::large_prefill);
  // What is negative counts as 0.
  EXPECT_EQ(sm100_regime(-1, 32), Sm100Regime::decode);
  EXPECT_EQ(sm100_regime(smallest, smallest), Sm100Regime::decode);
  EXPECT_EQ(sm100_regime(1, -1), Sm100Regime::large_prefill);
  EXPECT_EQ(sm100_regime(largest, smallest), Sm100Regime::large_prefill);
}

TEST(Sm100GroupedRules, EveryShapeOfThePublishedTable) {
  const Sm100Regime decode = Sm100Regime::decode, small = Sm100Regime::small_prefill,
                    large = Sm100Regime::large_prefill;
  const struct {
    std::int64_t n, k;
    Sm100Regime regime;
    Sm100GroupedChoice expected;
  } cases[] = {
      {4096, 7168, decode, {true, 8, 1, 6}},
      {4096, 7168, small, {true, 64, 2, 6}},
      {4096, 7168, large, {true, 128, 2, 7}},
      {7168, 2048, decode, {true, 8, 1, 6}},
      {7168, 2048, small, {true, 64, 2, 6}},
      {7168, 2048, large, {true, 128, 2, 6}},
      {7168, 256, decode, {true, 8, 1, 6}},
      {7168, 256, small, {true, 64, 2, -1}},  // no wildcard: automatic
      {7168, 256, large, {true, 128, 2, 6}},
      {512, 7168, decode, {true, 64, 2, 6}},
      {512, 7168, small, {true, 128, 2, 6}},
      {512, 7168, large, {true, 128, 2, 6}},
      {2048, 4096, decode, {true, 8, 1, 6}},
      {2048, 4096, small, {true, 64, 2, -1}},
      {2048, 4096, large, {true, 128, 2, -1}},
      // Neighbours of rows.
      {4095, 7168, small, {true, 64, 2, -1}},
      {4097, 7168, large, {true, 128, 2, -1}},
      {4096, 7167, large, {true, 128, 2, -1}},
      {4096, 7169, small, {true, 64, 2, -1}},
      {7168, 2047, large, {true, 128, 2, -1}},
      {7168, 2049, small, {true, 64, 2, -1}},
      {7167, 2048, small, {true, 64, 2, -1}},
      {7169, 2048, large, {true, 128, 2, -1}},
      {7168, 255, large, {true, 128, 2, -1}},
      {7168, 257, large, {true, 128, 2, -1}},
      {7167, 256, large, {true, 128, 2, -1}},
      {7168, 4096, large, {true, 128, 2, -1}},  // n and k are not exchanged
      {2048, 7168, large, {true, 128, 2, -1}},
      {511, 7168, decode, {true, 8, 1, 6}},
      {513, 7168, small, {true, 64, 2, -1}},
      {512, 7167, large, {true, 128, 2, -1}},
      {512, 7169, decode, {true, 8, 1, 6}},
      {7168, 512, decode, {true, 8, 1, 6}},
  };
  for (const auto& c : cases)
    EXPECT_EQ(sm100_grouped_choice(nvfp4, c.n, c.k, c.regime), c.expected)
        << c.n << " x " << c.k << ", " << static_cast<int>(c.regime);
}

TEST(Sm100GroupedRules, MxFormatsHaveRegimesAndTheirFormerConfigurationByName) {
  for (const Sm100Kind kind : {mxfp4, mxfp8}) {
    EXPECT_EQ(sm100_grouped_choice(kind, 4096, 7168, 256, 32), (Sm100GroupedChoice{true, 8, 1, 6}));
    EXPECT_EQ(sm100_grouped_choice(kind, 4096, 7168, 257, 32), (Sm100GroupedChoice{true, 64, 2, -1}));
    EXPECT_EQ(sm100_grouped_choice(kind, 4096, 7168, 2048, 32), (Sm100GroupedChoice{true, 64, 2, -1}));
    EXPECT_EQ(sm100_grouped_choice(kind, 4096, 7168, 2049, 32), (Sm100GroupedChoice{true, 128, 2, -1}));
    EXPECT_EQ(sm100_grouped_choice(kind, 512, 7168, 1, 32), (Sm100GroupedChoice{true, 8, 1, 6}));
    // Measured for these two: 6 where 12 would fit.
    EXPECT_EQ(sm100_grouped_choice(kind, 6144, 6144, 16, 8).stages, 6);
    EXPECT_EQ(sm100_grouped_choice(kind, 6144, 3072, 16, 8).stages, 6);
  }
  ASSERT_TRUE(sm100_grouped_choice_named("mx_fixed"));
  EXPECT_EQ(*sm100_grouped_choice_named("mx_fixed"), (Sm100GroupedChoice{false, 128, 1, -1}));
  EXPECT_FALSE(sm100_grouped_choice_named("mx"));
  EXPECT_FALSE(sm100_grouped_choice_named(""));
}

TEST(Sm100GroupedRules, KnobsCountOnlyWhenTheyOverride) {
  const Sm100GroupedChoice knobs{false, 32, 1, 3};
  EXPECT_EQ(sm100_grouped_choice(nvfp4, 4096, 7168, 100000, 32, true, knobs), knobs);
  EXPECT_EQ(sm100_grouped_choice(nvfp4, 512, 7168, 0, 0, true, knobs), knobs);
  EXPECT_EQ(sm100_grouped_choice(nvfp4, 4096, 7168, 100000, 32, false, knobs), (Sm100GroupedChoice{true, 128, 2, 7}));
  // The knobs' own defaults.
  EXPECT_EQ(sm100_grouped_choice(nvfp4, 4096, 7168, 100000, 32, true), (Sm100GroupedChoice{true, 8, 1, -1}));
}

TEST(Sm100GroupedRules, StagesAsManyAsFit) {
  // Reported: NVFP4 decode 10, MXFP8 decode 12, NVFP4 large prefill 7.
  EXPECT_EQ(sm100_grouped_config(nvfp4, {true, 8, 1, -1}).stages, 10);
  EXPECT_EQ(sm100_grouped_config(nvfp4, {true, 8, 1, 0}).stages, 10);
  EXPECT_EQ(sm100_grouped_config(mxfp8, {true, 8, 1, -1}).stages, 12);
  EXPECT_EQ(sm100_grouped_config(nvfp4, {true, 128, 2, -1}).stages, 7);
  EXPECT_EQ(sm100_grouped_config(nvfp4, {true, 8, 1, 4}).stages, 4);
}

TEST(Sm100GroupedRules, TheWholeConfiguration) {
  EXPECT_EQ(to_string(sm100_grouped_config(nvfp4, {true, 8, 1, 6})),
            "mma 128x8 swapped, cta_group 1, cluster 1x1, small_bn, k_group 1, stages 6, accumulators 2, clc 2, "
            "swizzle 8");
  EXPECT_EQ(to_string(sm100_grouped_config(nvfp4, {true, 128, 2, 7})),
            "mma 256x128 swapped, cta_group 2, cluster 2x1, k_group 1, stages 7, accumulators 2, clc 2, swizzle 8");
  // One accumulator above 128 columns.
  EXPECT_EQ(sm100_grouped_config(nvfp4, {true, 256, 1, 2}).accumulator_stages, 1);
}

TEST(Sm100GroupedRules, WhatAnMmaCanBe) {
  const auto runs = [](Sm100GroupedChoice choice) {
    return violated_rule(sm100_grouped_config(nvfp4, choice), {nvfp4, 7168, true}) == nullptr;
  };
  for (int n = -8; n <= 520; n += 4) {
    const bool one = n == 8 || n == 16 || n == 32 || n == 64 || n == 128 || n == 256;
    const bool pair = n == 64 || n == 128 || n == 256;
    EXPECT_EQ(runs({true, n, 1, 2}), one) << n;
    EXPECT_EQ(runs({false, n, 1, 2}), one) << n;
    EXPECT_EQ(runs({true, n, 2, 2}), pair) << n;
    EXPECT_FALSE(runs({false, n, 2, 2})) << n;  // a pair needs swapped operands
  }
  for (const int group : {0, 3, 4, -1}) EXPECT_FALSE(runs({true, 64, group, 2})) << group;
}

TEST(Sm100GroupedRules, SharedAndTensorMemoryAreFilledAndNotOverfilled) {
  // NVFP4 decode, a stage: A 128 x 128 bytes, B 8 x 128, scales 2 x 128 x 16, barriers 32.
  Sm100Config decode = sm100_grouped_config(nvfp4, {true, 8, 1, -1});
  EXPECT_EQ(sm100_stage_bytes(nvfp4, decode), 16384 + 1024 + 2 * 2048 + 32);
  // MXFP8 has a quarter of the scales.
  EXPECT_EQ(sm100_stage_bytes(mxfp8, decode), 16384 + 1024 + 2 * 512 + 32);
  // Each of a pair has half of B, but all of its scales: of 256 rows here.
  const Sm100Config wide = sm100_grouped_config(nvfp4, {true, 256, 2, 5});
  EXPECT_EQ(sm100_stage_bytes(nvfp4, wide), 16384 + 16384 + 2048 + 4096 + 32);
  // 256 columns of one accumulator, and 5 stages of 16 + 32 columns.
  EXPECT_EQ(sm100_tensor_columns(nvfp4, wide), 256 + 5 * 48);
  EXPECT_EQ(sm100_tensor_columns(mxfp4, wide), 256 + 5 * 24);
  EXPECT_EQ(sm100_tensor_columns(mxfp8, wide), 256 + 5 * 12);
  EXPECT_EQ(violated_rule(wide, {nvfp4, 7168, true}), nullptr);

  ++decode.stages;
  EXPECT_STREQ(violated_rule(decode, {nvfp4, 7168, true}), "stages need more shared memory than 232448 bytes");
  Sm100Config tensor = sm100_grouped_config(nvfp4, {true, 64, 1, 7});
  EXPECT_EQ(violated_rule(tensor, {nvfp4, 7168, true}), nullptr);
  tensor.mma_n = 128;  // 2 x 128 + 5 x 32 = 416 columns, of shared memory 5 stages
  tensor.stages = 5;
  EXPECT_EQ(violated_rule(tensor, {nvfp4, 7168, true}), nullptr);
  tensor.mma_n = 256;  // two accumulators of 256 columns leave none for scales
  tensor.stages = 1;
  tensor.accumulator_stages = 2;
  EXPECT_STREQ(violated_rule(tensor, {nvfp4, 7168, true}),
               "accumulators and scales need more than 512 columns of tensor memory");
  tensor.accumulator_stages = 1;
  EXPECT_EQ(violated_rule(tensor, {nvfp4, 7168, true}), nullptr);
}

TEST(Sm100Kind, IsRoutedByFormats) {
  const FormatId formats[] = {{{2, 1, Specials::none}, 16, ScaleType::ue4m3, true, Packing::dense},  // NVFP4
                              {{2, 1, Specials::none}, 32, ScaleType::e8m0, false, Packing::dense},  // MXFP4
                              {{4, 3, Specials::nan_only}, 32, ScaleType::e8m0, false, Packing::dense},
                              {{5, 2, Specials::ieee}, 32, ScaleType::e8m0, false, Packing::dense},
                              {{2, 3, Specials::none}, 32, ScaleType::e8m0, false, Packing::dense},
                              {{3, 2, Specials::none}, 32, ScaleType::e8m0, false, Packing::dense},
                              {{2, 3, Specials::none}, 32, ScaleType::e8m0, false, Packing::byte},
                              bfloat16_id};
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) {
      const auto kind = sm100_kind(formats[i], formats[j]);
      if (i == 0 && j == 0)
        EXPECT_EQ(kind, nvfp4);
      else if (i == 1 && j == 1)
        EXPECT_EQ(kind, mxfp4);
      else if (1 <= i && i <= 5 && 1 <= j && j <= 5)
        EXPECT_EQ(kind, mxfp8) << i << ", " << j;
      else
        EXPECT_EQ(kind, std::nullopt) << i << ", " << j;
    }
}

}  // namespace
}  // namespace microscale::Impl
