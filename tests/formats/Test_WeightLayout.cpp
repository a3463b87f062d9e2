#include <Golden.hpp>
#include <gtest/gtest.h>
#include <Microscale_WeightLayout.hpp>

#include <vector>

namespace ms = microscale;
using ms::Cdna4WeightMap;
using ms::WeightPosition;

namespace {

static_assert(Cdna4WeightMap{32, 128}.offset({0, 17, 65}) == 2 * 1024 + 1024 + 16 + 1);

TEST(WeightLayout, Cdna4MatchesTheReshapedIndexArray) {
  int seen = 0;
  ms::Test::for_each_golden_line("shuffles.txt", [&](std::istringstream& line) {
    std::int64_t rows, row_bytes;
    std::uint64_t hash;
    line >> std::dec >> rows >> row_bytes >> std::hex >> hash;
    ++seen;
    const Cdna4WeightMap map{rows, row_bytes};
    ASSERT_TRUE(map.can_preshuffle());
    std::vector<std::uint32_t> placed(static_cast<std::size_t>(rows * row_bytes), 0);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t byte = 0; byte < row_bytes; ++byte) {
        placed.at(static_cast<std::size_t>(map.offset({0, row, byte}))) =
            static_cast<std::uint32_t>(row * row_bytes + byte + 1);
      }
    }
    ms::Test::Fnv1a forward, backward;
    for (std::int64_t i = 0; i < rows * row_bytes; ++i) {
      forward.add(placed[static_cast<std::size_t>(i)]);
      const WeightPosition p = map.position(i);
      EXPECT_EQ(p.expert, 0);
      backward.add(static_cast<std::uint32_t>(p.row * row_bytes + p.byte + 1));
    }
    EXPECT_EQ(forward.value(), hash) << rows << "x" << row_bytes;
    EXPECT_EQ(backward.value(), hash) << rows << "x" << row_bytes;
  });
  EXPECT_EQ(seen, 16);
}

TEST(WeightLayout, Cdna4ExpertsFollowEachOther) {
  const Cdna4WeightMap map{48, 192};
  for (std::int64_t i = 0; i < 3 * 48 * 192; ++i) {
    const WeightPosition p = map.position(i);
    ASSERT_EQ(p.expert, i / (48 * 192));
    ASSERT_LT(p.row, 48);
    ASSERT_LT(p.byte, 192);
    ASSERT_EQ(map.offset(p), i);
  }
}

TEST(WeightLayout, Cdna4SaysWhatItCannotHold) {  // B34: rows of 16, 48 and 144 bytes are MXFP4 with K = 32, 96, 288
  for (std::int64_t row_bytes : {16, 48, 144})
    EXPECT_FALSE((Cdna4WeightMap{32, row_bytes}.can_preshuffle())) << row_bytes;
  EXPECT_FALSE((Cdna4WeightMap{17, 64}.can_preshuffle()));
  EXPECT_TRUE((Cdna4WeightMap{16, 64}.can_preshuffle()));
}

TEST(WeightLayout, Cdna4OffsetsPassTwoToThe31) {  // B43
  const Cdna4WeightMap map{7168, 2048};
  const WeightPosition p{383, 7167, 2047};
  const std::int64_t last = std::int64_t{384} * 7168 * 2048 - 1;
  EXPECT_EQ(map.offset(p), last);
  EXPECT_EQ(map.position(last), p);
}

}  // namespace
