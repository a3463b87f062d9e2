#include <gtest/gtest.h>
#include <Microscale_Cdna4_Rules.hpp>

#include <cstdint>
#include <limits>
#include <string>

// Expected values are written out from the published bands, or worked by hand where a comment says how.
namespace microscale::Impl {
namespace {

constexpr Cdna4Problem fp4(std::int64_t m, std::int64_t n, std::int64_t k) { return {4, 4, m, n, k, false}; }
constexpr Cdna4Problem fp8(std::int64_t m, std::int64_t n, std::int64_t k) { return {8, 8, m, n, k, false}; }

std::string dense(const Cdna4Problem& p) { return to_string(cdna4_dense_config(p)); }

std::string grouped(std::int64_t n, std::int64_t k, std::int64_t estimate, std::int64_t most_rows = 128) {
  return to_string(cdna4_grouped_config({4, 4, 4096, n, k, true}, estimate, most_rows));
}

const std::string narrow = "16x32x512, waves 16x16, split_k 1, a workgroup a tile";
const std::string wide = "128x128x128, waves 64x64, split_k 1, a workgroup a tile";
const std::string low = "64x32x512, waves 64x32, split_k 1, a workgroup a tile";
std::string split16(int parts) {
  return "16x128x256, waves 16x64, split_k " + std::to_string(parts) + ", a workgroup a tile";
}
std::string split64(int parts) {
  return "64x128x256, waves 64x32, split_k " + std::to_string(parts) + ", a workgroup a tile";
}

TEST(Cdna4Rules, DenseBandsEndWhereTheyEnd) {
  // 8192 columns are 256 tiles of 32: one for each compute unit. 4096 of K are 16 tiles of 256, in 8 parts of 2.
  EXPECT_EQ(dense(fp4(16, 8192, 2048)), narrow);
  EXPECT_EQ(dense(fp4(0, 8192, 2048)), narrow);
  EXPECT_EQ(dense(fp4(16, 8161, 2048)), narrow);      // still 256 tiles
  EXPECT_EQ(dense(fp4(16, 8160, 2048)), split16(4));  // 255 of them
  EXPECT_EQ(dense(fp4(17, 8192, 2048)), split64(4));
  EXPECT_EQ(dense(fp4(16, 8192, 3072)), narrow);
  EXPECT_EQ(dense(fp4(16, 8192, 3584)), split16(7));  // 14 tiles
  EXPECT_EQ(dense(fp4(16, 8192, 4096)), split16(8));
  EXPECT_EQ(dense(fp4(16, 8192, 2304)), split16(3));  // 9 tiles, no multiple of 512
  EXPECT_EQ(dense(fp4(16, 4096, 4096)), split16(8));
  EXPECT_EQ(dense(fp4(17, 4096, 4096)), split64(8));
  EXPECT_EQ(dense(fp4(64, 4096, 4096)), split64(8));
  EXPECT_EQ(dense(fp4(65, 4096, 4096)), wide);
  EXPECT_EQ(dense(fp4(16, 4096, 512)), low);  // 2 tiles make no 2 parts of 2
  EXPECT_EQ(dense(fp4(64, 4096, 512)), low);
  EXPECT_EQ(dense(fp4(65, 4096, 512)), wide);
  EXPECT_EQ(dense(fp4(16, 4096, 256)), wide);
  EXPECT_EQ(dense(fp4(16, 4096, 1280)), wide);  // 5 tiles have no divisor but 5
  EXPECT_EQ(dense(fp4(16, 4096, 384)), wide);
}

TEST(Cdna4Rules, KIsSplitWhileWorkgroupsAreFew) {
  EXPECT_EQ(cdna4_split_count(128, 7168), 14);  // 28 tiles in parts of 2
  EXPECT_EQ(cdna4_split_count(128, 1024), 2);
  EXPECT_EQ(cdna4_split_count(128, 1023), 1);
  EXPECT_EQ(cdna4_split_count(128, 1025), 1);
  EXPECT_EQ(cdna4_split_count(128, 768), 1);  // 3 tiles
  // 512 workgroups at most: 128 columns of tiles in 4 parts, 129 in 2 (16 tiles are no multiple of 3).
  EXPECT_EQ(cdna4_split_count(16384, 4096), 4);
  EXPECT_EQ(cdna4_split_count(16385, 4096), 2);
  EXPECT_EQ(cdna4_split_count(32768, 4096), 2);
  EXPECT_EQ(cdna4_split_count(32769, 4096), 1);
  // 128 tiles in 64 parts: 8 columns of tiles; 9 have 512 / 9 = 56, of which 32 divides.
  EXPECT_EQ(cdna4_split_count(1024, 32768), 64);
  EXPECT_EQ(cdna4_split_count(1025, 32768), 32);
  EXPECT_EQ(cdna4_split_count(0, 4096), 1);
  EXPECT_EQ(cdna4_split_count(128, 0), 1);
  EXPECT_EQ(cdna4_split_count(std::numeric_limits<std::int64_t>::max(), 4096), 1);
  // The largest K that is a multiple of 256: 2^55 - 1 tiles = 23 x 31 x 89 x 881 x 3191 x 201961.
  EXPECT_EQ(cdna4_split_count(128, std::numeric_limits<std::int64_t>::max() / 256 * 256), 89);
}

TEST(Cdna4Rules, Fp8HasTunedTiles) {
  const std::string a = "16x32x256, waves 16x16", b = "32x128x256, waves 32x32", c = "64x64x256, waves 32x32",
                    d = "16x64x256, waves 16x16", direct = ", split_k 1, a workgroup a tile";
  EXPECT_EQ(dense(fp8(1, 6144, 2048)), a + direct);
  EXPECT_EQ(dense(fp8(16, 6144, 2048)), a + direct);
  EXPECT_EQ(dense(fp8(17, 6144, 2048)), b + direct);
  EXPECT_EQ(dense(fp8(32, 6144, 2048)), b + direct);
  EXPECT_EQ(dense(fp8(33, 6144, 2048)), c + direct);
  EXPECT_EQ(dense(fp8(128, 6144, 2048)), c + direct);
  EXPECT_EQ(dense(fp8(129, 6144, 2048)), wide);
  EXPECT_EQ(dense(fp8(16, 2304, 6144)), d + direct);
  EXPECT_EQ(dense(fp8(16, 2560, 6144)), d + direct);
  EXPECT_EQ(dense(fp8(17, 2560, 6144)), split64(12));
  EXPECT_EQ(dense(fp8(16, 2432, 6144)), split16(12));
  EXPECT_EQ(dense(fp8(16, 6144, 2304)), split16(3));
  EXPECT_EQ(dense(fp4(16, 6144, 2048)), split16(4));
  EXPECT_EQ(dense({8, 4, 16, 6144, 2048, false}), split16(4));
}

TEST(Cdna4Rules, GroupedBandsOfUpAndGate) {
  const std::string direct = ", a workgroup a tile, direct_b";
  EXPECT_EQ(grouped(4096, 7168, 0), "16x64x512, waves 16x16, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(4096, 7168, -5), "16x64x512, waves 16x16, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(4096, 7168, 1), "16x64x512, waves 16x16, split_k 1, persistent 1, direct_b");
  EXPECT_EQ(grouped(4096, 7168, 2), "16x64x512, waves 16x16, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(4096, 7168, 20), "16x64x512, waves 16x16, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(4096, 7168, 21), "16x128x512, waves 16x32, split_k 1, persistent 2, streaming, direct_b");
  EXPECT_EQ(grouped(4096, 7168, 1023), "16x128x512, waves 16x32, split_k 1, persistent 2, streaming, direct_b");
  EXPECT_EQ(grouped(4096, 7168, 1024), "32x128x512, waves 32x32, split_k 1, persistent 2, streaming, direct_b");
  EXPECT_EQ(grouped(4096, 7168, 2047), "32x128x512, waves 32x32, split_k 1, persistent 2, streaming, direct_b");
  EXPECT_EQ(grouped(4096, 7168, 2048), "64x128x512, waves 64x64, split_k 1, persistent 2, streaming, direct_b");
  EXPECT_EQ(grouped(4096, 7168, 4095), "64x128x512, waves 64x64, split_k 1, persistent 2, streaming, direct_b");
  EXPECT_EQ(grouped(4096, 7168, 4096), "64x128x512, waves 64x64, split_k 1" + direct);
  EXPECT_EQ(grouped(4096, 7168, std::numeric_limits<std::int64_t>::max()),
            "64x128x512, waves 64x64, split_k 1" + direct);
}

TEST(Cdna4Rules, GroupedBandsOfDown) {
  EXPECT_EQ(grouped(7168, 2048, 0), "16x64x512, waves 16x16, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 1), "16x64x512, waves 16x16, split_k 1, persistent 1, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 2), "16x64x512, waves 16x16, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 3), "16x64x512, waves 16x16, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 4), "16x128x512, waves 16x32, split_k 1, persistent 2, streaming, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 1023), "16x128x512, waves 16x32, split_k 1, persistent 2, streaming, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 1024), "32x128x512, waves 32x32, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 2047), "32x128x512, waves 32x32, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 2048), "64x128x512, waves 64x64, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 3072), "64x128x512, waves 64x64, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 3073), "128x128x512, waves 128x64, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 6144), "128x128x512, waves 128x64, split_k 1, persistent 2, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 6145), "64x128x512, waves 64x64, split_k 1, persistent 2, deep_prefetch, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 9216), "64x128x512, waves 64x64, split_k 1, persistent 2, deep_prefetch, direct_b");
  EXPECT_EQ(grouped(7168, 2048, 9217),
            "64x128x512, waves 64x64, split_k 1, a workgroup a tile, deep_prefetch, direct_b");
}

TEST(Cdna4Rules, GroupedOtherwise) {
  const std::string persistent = "64x128x512, waves 64x64, split_k 1, persistent 2, direct_b";
  EXPECT_EQ(grouped(2048, 7168, 4095), persistent);
  EXPECT_EQ(grouped(7168, 4096, 0), persistent);
  EXPECT_EQ(grouped(4096, 2048, 1), persistent);
  EXPECT_EQ(grouped(4064, 7168, 4096), "64x128x512, waves 64x64, split_k 1, a workgroup a tile, direct_b");
  // Neither N a multiple of 32 nor K one of 512: the dense kernel for each expert.
  EXPECT_EQ(grouped(4100, 7168, 1, 64), "64x128x512, waves 64x64, split_k 1, a workgroup a tile");
  EXPECT_EQ(grouped(4100, 7168, 1, 65), wide);
  EXPECT_EQ(grouped(4096, 7040, 1, 64), wide);
}

TEST(Cdna4Constraints, SayWhatIsWrong) {
  const Cdna4Config good = cdna4_dense_config(fp4(64, 4096, 4096));
  const auto broken = [&](auto change, Cdna4Problem problem = fp4(64, 4096, 4096)) {
    Cdna4Config c = good;
    change(c);
    const char* words = violated_rule(c, problem);
    return std::string(words ? words : "nothing");
  };
  EXPECT_EQ(broken([](Cdna4Config&) {}), "nothing");
  for (const int size : {0, -16, 2048})
    EXPECT_EQ(broken([&](Cdna4Config& c) { c.bm = size; }), "tiles are from 1 to 1024");
  EXPECT_EQ(broken([](Cdna4Config& c) { c.wm = 24; }), "warp_m and warp_n are multiples of 16");
  EXPECT_EQ(broken([](Cdna4Config& c) { c.wn = 48; }), "warp_m divides tile_m, and warp_n tile_n");
  EXPECT_EQ(broken([](Cdna4Config& c) { c.bk = 64; }), "tile_k is a multiple of 128");
  EXPECT_EQ(broken([](Cdna4Config& c) { c.bk = 768; }), "tile_k divides K");
  EXPECT_EQ(broken([](Cdna4Config& c) { c.wn = 128; }), "a wave has at most 4 x 4 MFMAs");
  EXPECT_EQ(broken([](Cdna4Config& c) { c.split_k = 0; }), "split_k is at least 1");
  EXPECT_EQ(broken([](Cdna4Config& c) { c.split_k = 3; }), "split_k divides the tiles along K");
  EXPECT_EQ(broken([](Cdna4Config& c) { c.split_k = 16; }), "a part of K has at least 2 tiles");
  EXPECT_EQ(broken([](Cdna4Config& c) { c.groups_per_cu = 1; }), "only the grouped kernel is persistent");
  EXPECT_EQ(broken([](Cdna4Config& c) { c.direct_b = true; }),
            "only the grouped kernel takes b from memory to registers");
  // 8 parts of 1024 x 4096 floats are 128 MiB: the most.
  EXPECT_EQ(broken([](Cdna4Config&) {}, fp4(1024, 4096, 4096)), "nothing");
  EXPECT_EQ(broken([](Cdna4Config&) {}, fp4(1025, 4096, 4096)), "partial sums need more than 128 MiB");
  // 16 rows of 128 bytes are 128 pieces of 16 bytes, for 128 threads; tiles of 16 columns would make 512 threads.
  Cdna4Config few = cdna4_dense_config(fp4(16, 4096, 4096));
  EXPECT_EQ(violated_rule(few, fp4(16, 4096, 4096)), nullptr);
  few.wn = 16;
  EXPECT_STREQ(violated_rule(few, fp4(16, 4096, 4096)), "more threads than pieces of a tile of a");
  // 128 x 1024 bytes of a, twice, are 256 KiB.
  Cdna4Config deep = cdna4_grouped_config({8, 8, 4096, 7168, 2048, true}, 6144, 100);
  EXPECT_EQ(cdna4_lds_bytes(deep, {8, 8, 4096, 7168, 2048, true}), 2 * 128 * 512);
  EXPECT_EQ(violated_rule(deep, {8, 8, 4096, 7168, 2048, true}), nullptr);
  deep.bk = 1024;
  EXPECT_STREQ(violated_rule(deep, {8, 8, 4096, 7168, 2048, true}), "tiles need more LDS than 160 KiB");
  EXPECT_EQ(cdna4_workspace_bytes(good, 64, 4096), 8 * 64 * 4096 * 4);
  EXPECT_EQ(cdna4_workspace_bytes(deep, 64, 4096), 0);
}

}  // namespace
}  // namespace microscale::Impl
