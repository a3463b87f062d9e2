#include <gtest/gtest.h>
#include <Microscale_Sm100_DenseRules.hpp>

#include <cstdint>
#include <limits>
#include <string>

// Expected values are written out from the published tables, or worked by hand where a comment says how.
namespace microscale::Impl {
namespace {

constexpr Sm100Kind nvfp4 = Sm100Kind::mxf4nvf4, mxfp4 = Sm100Kind::mxf4, mxfp8 = Sm100Kind::mxf8f6f4;

std::string chosen(Sm100Kind kind, std::int64_t m, std::int64_t n, std::int64_t k) {
  return to_string(sm100_dense_config(kind, m, n, k));
}

TEST(Sm100DenseRules, EveryTunedRowAtBothEnds) {
  // Stages where the table leaves them open: (232448 - 17408 for C) / 21536 a stage of 256 x 16 are 9, in pairs 8.
  const struct {
    std::int64_t n, k, least, most;
    const char* expected;
  } rows[] = {
      {18432, 7168, 1, 16,
       "mma 256x16 swapped, cta_group 2, cluster 2x1, small_bn, k_group 2, stages 8, accumulators 1, clc 0, swizzle "
       "8"},
      {18432, 7168, 17, 32,
       "mma 256x32 swapped, cta_group 2, cluster 2x1, small_bn, k_group 2, stages 8, accumulators 1, clc 0, swizzle 8"},
      {18432, 7168, 33, 64,
       "mma 256x64 swapped, cta_group 2, cluster 2x1, small_bn, k_group 2, stages 8, accumulators 2, clc 0, swizzle 8"},
      {18432, 7168, 65, 68,
       "mma 256x96 swapped, cta_group 2, cluster 2x1, small_bn, k_group 2, stages 8, accumulators 2, clc 0, swizzle 8"},
      {4096, 7168, 32, 128,
       "mma 256x64 swapped, cta_group 2, cluster 2x2, k_group 1, stages 8, accumulators 2, clc 0, swizzle 0"},
      {7168, 8192, 65, 128,
       "mma 256x64 swapped, cta_group 2, cluster 2x2, k_group 1, stages 8, accumulators 2, clc 0, swizzle 0"},
      {7168, 18432, 2, 31,
       "mma 256x64 swapped, cta_group 2, cluster 2x1, k_group 1, stages 8, accumulators 2, clc 0, swizzle 0"},
      {7168, 18432, 64, 128,
       "mma 256x64 swapped, cta_group 2, cluster 2x2, k_group 1, stages 8, accumulators 2, clc 0, swizzle 0"},
      {36864, 7168, 1, 8,
       "mma 128x8 swapped, cta_group 1, cluster 1x1, small_bn, k_group 2, stages 8, accumulators 2, clc 2, swizzle 8"},
      {36864, 7168, 9, 16,
       "mma 128x16 swapped, cta_group 1, cluster 1x1, small_bn, k_group 2, stages 8, accumulators 2, clc 2, swizzle 8"},
      {36864, 7168, 17, 24,
       "mma 128x24 swapped, cta_group 1, cluster 1x1, small_bn, k_group 2, stages 8, accumulators 2, clc 2, swizzle 8"},
      {36864, 7168, 25, 32,
       "mma 128x32 swapped, cta_group 1, cluster 1x1, small_bn, k_group 2, stages 8, accumulators 2, clc 2, swizzle 8"},
      {5376, 21504, 1, 1,
       "mma 256x16 swapped, cta_group 2, cluster 2x1, small_bn, k_group 2, stages 8, accumulators 1, clc 0, swizzle "
       "8"},
      {43008, 5376, 1, 1,
       "mma 128x8 swapped, cta_group 1, cluster 1x1, small_bn, k_group 3, stages 9, accumulators 1, clc 0, swizzle 8"},
  };
  ASSERT_EQ(sm100_dense_rows(nvfp4).size(), std::size(rows));
  for (const auto& r : rows) {
    EXPECT_EQ(chosen(nvfp4, r.least, r.n, r.k), r.expected) << r.n << " x " << r.k << ", m " << r.least;
    EXPECT_EQ(chosen(nvfp4, r.most, r.n, r.k), r.expected) << r.n << " x " << r.k << ", m " << r.most;
    // No row is for a neighbour of the shape, nor for another format.
    for (const auto& [n, k] : {std::pair{r.n - 1, r.k}, {r.n + 1, r.k}, {r.n, r.k - 1}, {r.n, r.k + 1}})
      EXPECT_EQ(sm100_dense_row(nvfp4, r.least, n, k), nullptr);
    EXPECT_EQ(sm100_dense_row(mxfp4, r.least, r.n, r.k), nullptr);
    EXPECT_EQ(sm100_dense_row(mxfp8, r.least, r.n, r.k), nullptr);
  }
}

TEST(Sm100DenseRules, RowsEndWhereTheyEnd) {
  const auto has_row = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return sm100_dense_row(nvfp4, m, n, k) != nullptr;
  };
  EXPECT_FALSE(has_row(0, 18432, 7168));
  EXPECT_TRUE(has_row(68, 18432, 7168));
  EXPECT_FALSE(has_row(69, 18432, 7168));
  EXPECT_FALSE(has_row(31, 4096, 7168));
  EXPECT_FALSE(has_row(129, 4096, 7168));
  EXPECT_FALSE(has_row(64, 7168, 8192));
  EXPECT_FALSE(has_row(129, 7168, 8192));
  EXPECT_FALSE(has_row(1, 7168, 18432));
  EXPECT_FALSE(has_row(32, 7168, 18432));  // the gap
  EXPECT_FALSE(has_row(63, 7168, 18432));
  EXPECT_FALSE(has_row(129, 7168, 18432));
  EXPECT_FALSE(has_row(33, 36864, 7168));
  EXPECT_FALSE(has_row(2, 5376, 21504));
  EXPECT_FALSE(has_row(2, 43008, 5376));
}

TEST(Sm100DenseRules, MxFormatsHaveOneRowEach) {
  EXPECT_EQ(chosen(mxfp4, 1, 7168, 16384),
            "mma 256x64 swapped, cta_group 2, cluster 2x1, k_group 1, stages 9, accumulators 2, clc 0, swizzle 0");
  EXPECT_EQ(chosen(mxfp8, 1, 7168, 16384),
            "mma 256x64 swapped, cta_group 2, cluster 2x1, k_group 1, stages 9, accumulators 2, clc 0, swizzle 0");
  EXPECT_EQ(sm100_dense_rows(mxfp4).size(), 1u);
  EXPECT_EQ(sm100_dense_rows(mxfp8).size(), 1u);
  EXPECT_EQ(sm100_dense_row(mxfp4, 2, 7168, 16384), nullptr);
  EXPECT_EQ(sm100_dense_row(nvfp4, 1, 7168, 16384), nullptr);
}

TEST(Sm100DenseRules, FewRowsHaveTheirKernel) {
  // K of 4096 is 16 stages of 256 elements: in fours. 10 stages fit, of which 8 are in fours.
  const std::string fours =
      "mma 128x8 swapped, cta_group 1, cluster 1x1, small_bn, k_group 4, stages 8, accumulators 1, clc 0, swizzle 8";
  for (const std::int64_t m : {0, 1, 8, 9, 16}) EXPECT_EQ(chosen(nvfp4, m, 2304, 4096), fours) << m;
  EXPECT_EQ(chosen(nvfp4, 17, 2304, 4096),
            "mma 128x64 swapped, cta_group 1, cluster 1x1, k_group 1, stages 7, accumulators 2, clc 0, swizzle 0");
  // 6144 are 24 of NVFP4 and 48 of MXFP8; 1536 are 6, in pairs; 1280 are 5; 1281 begin a sixth.
  EXPECT_EQ(sm100_small_bn_config(nvfp4, 6144).k_group, 4);
  EXPECT_EQ(sm100_small_bn_config(mxfp8, 6144).k_group, 4);
  EXPECT_EQ(sm100_small_bn_config(nvfp4, 1536).k_group, 2);
  EXPECT_EQ(sm100_small_bn_config(nvfp4, 1280).k_group, 1);
  EXPECT_EQ(sm100_small_bn_config(nvfp4, 1281).k_group, 2);
  EXPECT_EQ(sm100_small_bn_config(mxfp8, 1280).k_group, 2);  // 10 of 128
  EXPECT_EQ(sm100_small_bn_config(nvfp4, 1280).stages, 10);
}

TEST(Sm100DenseRules, WavesOfPairsAndOfSingles) {
  EXPECT_EQ(sm100_waves(256, 256, 256, 256, 2), 1);
  EXPECT_EQ(sm100_waves(256, 74 * 64, 256, 64, 2), 1);      // 74 pairs
  EXPECT_EQ(sm100_waves(256, 74 * 64 + 1, 256, 64, 2), 2);  // 75 tiles
  EXPECT_EQ(sm100_waves(257, 37 * 64, 256, 64, 2), 1);
  EXPECT_EQ(sm100_waves(513, 37 * 64, 256, 64, 2), 2);
  EXPECT_EQ(sm100_waves(148 * 128, 64, 128, 64, 1), 1);
  EXPECT_EQ(sm100_waves(148 * 128 + 1, 64, 128, 64, 1), 2);
  EXPECT_EQ(sm100_waves(0, 64, 128, 64, 1), 0);
  EXPECT_GT(sm100_waves(std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max(), 256, 64, 2),
            std::int64_t{1} << 56);
}

TEST(Sm100DenseRules, TheSearchTakesFewWavesThenSmallTiles) {
  // m 256, n 4096: 16, 22, 32 and 64 tiles of 256, 192, 128 and 64 columns are all one wave: the smallest. Swapped,
  // 16 x 4 tiles of 256 x 64 are one wave too, but no smaller.
  EXPECT_EQ(chosen(nvfp4, 256, 4096, 4096),
            "mma 256x64, cta_group 2, cluster 2x1, k_group 1, stages 8, accumulators 2, clc 0, swizzle 0");
  // m 512, n 4096: 2 x 32 tiles of 128 are one wave, 2 x 64 of 64 are two.
  EXPECT_EQ(chosen(nvfp4, 512, 4096, 4096),
            "mma 256x128, cta_group 2, cluster 2x1, k_group 1, stages 7, accumulators 2, clc 0, swizzle 0");
  // m 100, n 16384: 64 tiles of 256 are one wave, 86 of 192 two. Swapped: 64 tiles of 256 x 128 are one wave, and the
  // two columns of 64 make 128 tiles.
  EXPECT_EQ(chosen(nvfp4, 100, 16384, 4096),
            "mma 256x128 swapped, cta_group 2, cluster 2x1, k_group 1, stages 7, accumulators 2, clc 0, swizzle 0");
  // m 300, n 16384: 2 x 64 of 256 are two waves, 2 x 86 of 192 three. Swapped: 64 x 2 of 256 and of 192 are two, 64 x 3
  // of 128 three.
  EXPECT_EQ(chosen(nvfp4, 300, 16384, 4096),
            "mma 256x192 swapped, cta_group 2, cluster 2x1, k_group 1, stages 6, accumulators 1, clc 2, swizzle 0");
  // m 4096, n 4096: 16 x 16 tiles of 256 are 4 waves, 16 x 22 are 5.
  EXPECT_EQ(sm100_heuristic_config(nvfp4, 4096, 4096, 4096).mma_n, 256);
  EXPECT_EQ(sm100_heuristic_config(nvfp4, 4096, 4096, 4096).clc_stages, 2);
  // n below 64 has tiles of 64; between, no wider than needed: 100 columns are 128 or 64.
  EXPECT_EQ(sm100_heuristic_config(nvfp4, 512, 1, 4096).mma_n, 64);
  EXPECT_EQ(sm100_heuristic_config(nvfp4, 74 * 256, 100, 4096).mma_n, 128);
}

TEST(Sm100DenseRules, PairsFrom32Rows) {
  EXPECT_EQ(sm100_heuristic_config(nvfp4, 31, 4096, 4096).cta_group, 1);
  EXPECT_EQ(sm100_heuristic_config(nvfp4, 31, 4096, 4096).mma_n, 64);
  EXPECT_TRUE(sm100_heuristic_config(nvfp4, 31, 4096, 4096).swap_ab);
  EXPECT_EQ(sm100_heuristic_config(nvfp4, 32, 4096, 4096).cta_group, 2);
  // The domain of the search has no end.
  EXPECT_EQ(sm100_heuristic_config(nvfp4, 8193, 4096, 4096).mma_n, 256);
}

TEST(Sm100DenseRules, KGroupIsForSmallTiles) {
  EXPECT_EQ(sm100_k_group(128, 8, 1, 4), 4);  // 1024 elements
  EXPECT_EQ(sm100_k_group(128, 8, 1, 6), 2);
  EXPECT_EQ(sm100_k_group(128, 8, 1, 5), 1);
  EXPECT_EQ(sm100_k_group(256, 8, 2, 8), 4);   // a multiprocessor of the pair has 1024
  EXPECT_EQ(sm100_k_group(128, 16, 1, 4), 2);  // 2048
  EXPECT_EQ(sm100_k_group(128, 48, 1, 4), 2);  // 6144
  EXPECT_EQ(sm100_k_group(128, 56, 1, 4), 1);  // 7168
  EXPECT_EQ(sm100_k_group(256, 48, 2, 4), 2);
  EXPECT_EQ(sm100_k_group(128, 64, 1, 4), 1);  // the smallest tile of the search
}

TEST(Sm100DenseRules, SwizzleFromFourWavesOn) {
  EXPECT_EQ(sm100_block_swizzle(0, 4096, 256), 0);
  EXPECT_EQ(sm100_block_swizzle(3, 4096, 256), 0);
  // 32 blocks of 128 rows, n tiles of 256. In order: min(148, 32) * 128 + 5 * 256 = 5376. By 2: 32 * 128 + 2 * 3 * 256 =
  // 5632. By 4: 32 * 128 + 4 * 2 * 256 = 6144. By 8: 19 * 128 + 8 * 256 = 4480.
  EXPECT_EQ(sm100_block_swizzle(4, 4096, 256), 8);
  // 4 blocks: 512 + 37 * 64 = 2880; 512 + 2 * 19 * 64 = 2944; 512 + 4 * 10 * 64 = 3072; 512 + 8 * 5 * 64 = 3072.
  EXPECT_EQ(sm100_block_swizzle(4, 512, 64), 1);
  // 64 blocks, tiles of 64: 64 * 128 + 3 * 64 = 8384; 64 * 128 + 2 * 2 * 64 = 8448; 37 * 128 + 4 * 64 = 4992;
  // 19 * 128 + 8 * 64 = 2944.
  EXPECT_EQ(sm100_block_swizzle(9, 8192, 64), 8);
  // 37 blocks, tiles of 256: 37 * 128 + 4 * 256 = 5760; 37 * 128 + 2 * 2 * 256 = 5760; 37 * 128 + 4 * 256 = 5760;
  // 19 * 128 + 8 * 256 = 4480: the smallest, and the first of equals otherwise.
  EXPECT_EQ(sm100_block_swizzle(4, 37 * 128, 256), 8);
}

TEST(Sm100Constraints, SayWhatIsWrong) {
  const Sm100Config good = sm100_dense_config(nvfp4, 512, 4096, 4096);
  const Sm100Problem problem{nvfp4, 4096, false};
  ASSERT_EQ(violated_rule(good, problem), nullptr);
  const auto broken = [&](auto change) {
    Sm100Config c = good;
    change(c);
    const char* words = violated_rule(c, problem);
    return std::string(words ? words : "nothing");
  };
  EXPECT_EQ(broken([](Sm100Config& c) { c.cta_group = 3; }), "cta_group is 1 or 2");
  EXPECT_EQ(broken([](Sm100Config& c) { c.mma_m = 128; }), "tile_m is 128 for each of cta_group");
  for (const int n : {0, -64, 8, 32, 96, 100, 320})
    EXPECT_EQ(broken([&](Sm100Config& c) { c.mma_n = n; }), "no instruction of this kernel has this tile_n") << n;
  EXPECT_EQ(broken([](Sm100Config& c) { c.cluster_n = 3; }), "a cluster has 1, 2, 4 or 8 thread blocks");
  EXPECT_EQ(broken([](Sm100Config& c) { c.cluster_n = 8; }), "a cluster has 1, 2, 4 or 8 thread blocks");
  EXPECT_EQ(broken([](Sm100Config& c) { c.cluster_m = 1; }), "cluster is a multiple of cta_group");
  EXPECT_EQ(broken([](Sm100Config& c) { c.k_group = 5; }), "k_group is 1 to 4");
  EXPECT_EQ(broken([](Sm100Config& c) { c.k_group = 3; }), "k_group divides the stages that K takes");
  EXPECT_EQ(broken([](Sm100Config& c) { c.k_group = 2; }), "k_group divides stages");  // 7 of them
  EXPECT_EQ(broken([](Sm100Config& c) { c.stages = 0; }), "there is no room for a stage");
  EXPECT_EQ(broken([](Sm100Config& c) { c.stages = 8; }), "stages need more shared memory than 232448 bytes");
  EXPECT_EQ(broken([](Sm100Config& c) { c.stages = 2147483647; }), "stages need more shared memory than 232448 bytes");
  EXPECT_EQ(broken([](Sm100Config& c) { c.accumulator_stages = 3; }), "accumulator_stages is 1 or 2");
  EXPECT_EQ(broken([](Sm100Config& c) { c.clc_stages = 5; }), "scheduler_stages is up to 4");
  EXPECT_EQ(broken([](Sm100Config& c) { c.block_swizzle = 3; }), "block_swizzle is 1, 2, 4 or 8");
  // The kernel for narrow tiles: a pair has at least 16 columns, in 16s.
  Sm100Config small = sm100_small_bn_config(nvfp4, 4096);
  for (const int n : {8, 16, 24, 32, 48, 64, 96, 128}) {
    small.mma_n = n;
    small.stages = 4;
    small.cta_group = small.cluster_m = 1;
    small.mma_m = 128;
    EXPECT_EQ(violated_rule(small, problem), nullptr) << n;
    small.cta_group = small.cluster_m = 2;
    small.mma_m = 256;
    EXPECT_EQ(violated_rule(small, problem) == nullptr, n != 8 && n != 24) << n;
  }
}

}  // namespace
}  // namespace microscale::Impl
