#include <Golden.hpp>
#include <gtest/gtest.h>
#include <Microscale_ScaleLayout.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ms = microscale;
using ms::ScaleLayout;
using ms::ScaleMap;
using ms::ScalePosition;

namespace {

constexpr ScaleLayout layouts[] = {ScaleLayout::linear, ScaleLayout::tcgen, ScaleLayout::cdna4, ScaleLayout::tile_8x4};

static_assert(ScaleMap{ScaleLayout::tcgen, 256, 16}.offset(161, 5) == 2581);
static_assert(ScaleMap{ScaleLayout::tcgen, 256, 16}.position(2581) == ScalePosition{161, 5});
static_assert(ScaleMap{ScaleLayout::tcgen, 0, 4}.bytes() == 0 && ScaleMap{ScaleLayout::tcgen, 4, 0}.bytes() == 0);

ScaleLayout layout_of(const std::string& text) {
  for (ScaleLayout layout : layouts) {
    if (text == name(layout)) return layout;
  }
  throw std::runtime_error("no layout is called " + text);
}

/// Hash of what lies at each byte: logical index + 1, or 0 for padding. By the inverse map.
std::uint64_t hash_by_position(const ScaleMap& map) {
  ms::Test::Fnv1a fnv;
  for (std::int64_t i = 0; i < map.bytes(); ++i) {
    const ScalePosition p = map.position(i);
    const bool inside = p.row < map.rows && p.col < map.cols;
    fnv.add(static_cast<std::uint32_t>(inside ? p.row * map.cols + p.col + 1 : 0));
  }
  return fnv.value();
}

/// The same by the forward map.
std::uint64_t hash_by_offset(const ScaleMap& map) {
  std::vector<std::uint32_t> placed(static_cast<std::size_t>(map.bytes()), 0);
  for (std::int64_t row = 0; row < map.rows; ++row) {
    for (std::int64_t col = 0; col < map.cols; ++col) {
      placed.at(static_cast<std::size_t>(map.offset(row, col))) = static_cast<std::uint32_t>(row * map.cols + col + 1);
    }
  }
  ms::Test::Fnv1a fnv;
  for (std::uint32_t value : placed) fnv.add(value);
  return fnv.value();
}

TEST(ScaleLayout, EveryByteIsWhereOthersPutIt) {
  int seen = 0;
  ms::Test::for_each_golden_line("layouts.txt", [&](std::istringstream& line) {
    std::string text;
    std::int64_t rows, cols, bytes;
    std::uint64_t hash;
    line >> text >> std::dec >> rows >> cols >> bytes >> std::hex >> hash;
    const ScaleMap map{layout_of(text), rows, cols};
    ++seen;
    ASSERT_EQ(map.bytes(), bytes) << text << " " << rows << "x" << cols;
    EXPECT_EQ(hash_by_offset(map), hash) << text << " " << rows << "x" << cols;
    EXPECT_EQ(hash_by_position(map), hash) << text << " " << rows << "x" << cols;
  });
  EXPECT_EQ(seen, 4 * 24 * 17);
}

TEST(ScaleLayout, PositionInvertsOffsetInPaddingToo) {
  for (ScaleLayout layout : layouts) {
    const auto tile = ms::scale_tile(layout);
    for (std::int64_t rows : {1, 31, 33, 130, 257}) {
      for (std::int64_t cols : {1, 4, 5, 9}) {
        const ScaleMap map{layout, rows, cols};
        std::vector<int> hits(static_cast<std::size_t>(map.bytes()), 0);
        for (std::int64_t row = 0; row < map.tile_rows() * tile.rows; ++row) {
          for (std::int64_t col = 0; col < map.padded_cols(); ++col) {
            const std::int64_t offset = map.offset(row, col);
            ++hits.at(static_cast<std::size_t>(offset));
            ASSERT_EQ(map.position(offset), (ScalePosition{row, col})) << name(layout) << " " << row << "," << col;
            ASSERT_EQ(row / tile.rows * map.tile_row_bytes() + map.offset_in_tile_row(row, col), offset);
          }
        }
        EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), map.bytes()) << name(layout) << " " << rows << "x" << cols;
      }
    }
  }
}

TEST(ScaleLayout, AnyTailFitsItsBuffer) {
  for (ScaleLayout layout : layouts) {
    const auto tile = ms::scale_tile(layout);
    for (std::int64_t rows = 0; rows <= 130; ++rows) {
      for (std::int64_t cols = 0; cols <= 130; ++cols) {
        const ScaleMap map{layout, rows, cols};
        const auto up = [](std::int64_t n, std::int64_t unit) { return n % unit == 0 ? n : n + unit - n % unit; };
        ASSERT_EQ(map.bytes(), up(rows, tile.rows) * up(cols, tile.cols)) << name(layout) << " " << rows << "x" << cols;
        if (rows == 0 || cols == 0) continue;
        for (const ScalePosition p :
             {ScalePosition{rows - 1, cols - 1}, ScalePosition{rows - 1, 0}, ScalePosition{0, cols - 1}}) {
          const std::int64_t offset = map.offset(p.row, p.col);
          ASSERT_LT(offset, map.bytes()) << name(layout) << " " << rows << "x" << cols;
          ASSERT_EQ(map.position(offset), p) << name(layout) << " " << rows << "x" << cols;
        }
      }
    }
  }
}

TEST(ScaleLayout, WorkedTable128x4) {
  const ScaleMap map{ScaleLayout::tcgen, 130, 5};
  const std::pair<ScalePosition, std::int64_t> rows[] = {
      {{0, 0}, 0},  {{0, 3}, 3},   {{0, 4}, 512},   {{1, 0}, 16},     {{31, 0}, 496},
      {{32, 0}, 4}, {{33, 2}, 22}, {{127, 3}, 511}, {{128, 0}, 1024}, {{129, 4}, 1552}};
  for (const auto& [p, offset] : rows) EXPECT_EQ(map.offset(p.row, p.col), offset) << p.row << "," << p.col;

  const struct {
    std::int64_t rows, k, block, bytes;
  } buffers[] = {{0, 64, 16, 0},      {1, 16, 16, 512},   {1, 32, 32, 512},       {17, 512, 16, 4096},
                 {130, 80, 16, 2048}, {128, 64, 16, 512}, {129, 2880, 32, 23552}, {300, 7168, 16, 172032}};
  for (const auto& b : buffers) {
    EXPECT_EQ((ScaleMap{ScaleLayout::tcgen, b.rows, b.k / b.block}.bytes()), b.bytes) << b.rows << "x" << b.k;
  }
}

TEST(ScaleLayout, FourScalesOfARowAreOneAlignedWordInTcgen) {
  const ScaleMap map{ScaleLayout::tcgen, 300, 12};
  for (std::int64_t row = 0; row < 300; ++row) {
    for (std::int64_t col = 0; col < 12; col += 4) {
      const std::int64_t first = map.offset(row, col);
      ASSERT_EQ(first % 4, 0);
      for (int i = 1; i < 4; ++i) ASSERT_EQ(map.offset(row, col + i), first + i);
    }
  }
}

TEST(ScaleLayout, RowTilesOfTcgenAreSubviews) {
  const ScaleMap whole{ScaleLayout::tcgen, 400, 7};
  const ScaleMap part{ScaleLayout::tcgen, 400 - 256, 7};
  for (std::int64_t row = 0; row < part.rows; ++row) {
    for (std::int64_t col = 0; col < 7; ++col) {
      ASSERT_EQ(whole.offset(256 + row, col), 2 * whole.tile_row_bytes() + part.offset(row, col));
    }
  }
}

// Grouped activations: golden.txt says what every byte of the buffer must hold.
TEST(ScaleLayout, GroupedRowsStartOnFreshTiles) {
  std::vector<std::int64_t> counts, begins;
  std::vector<std::int64_t> corrections;
  int cases = 0, buffers = 0;
  ms::Test::for_each_golden_line("grouped.txt", [&](std::istringstream& line) {
    line >> std::dec;
    std::string word;
    line >> word;
    if (word == "slots") {
      ++cases;
      std::size_t n;
      char colon;
      line >> n;
      counts = begins = corrections = {};
      std::int64_t value;
      for (std::size_t i = 0; i < n; ++i) counts.push_back((line >> value, value));
      line >> colon;
      for (std::size_t i = 0; i <= n; ++i) begins.push_back((line >> value, value));
      line >> colon;
      for (std::size_t i = 0; i < n; ++i) corrections.push_back((line >> value, value));
      ASSERT_TRUE(line) << "short line";
      std::int64_t tiles = 0;
      for (std::size_t e = 0; e < n; ++e) {
        EXPECT_EQ(ms::grouped_scale_offset(ScaleLayout::tcgen, begins[e], tiles), corrections[e]) << "slot " << e;
        EXPECT_GE(corrections[e], 0);
        tiles += (counts[e] + 127) / 128;
      }
      EXPECT_LE(tiles, ms::grouped_tile_rows_bound(ScaleLayout::tcgen, begins[n], static_cast<std::int64_t>(n)));
      return;
    }
    ASSERT_EQ(word, "columns");
    ++buffers;
    std::int64_t cols, tiles;
    std::uint64_t hash;
    line >> cols >> tiles >> std::hex >> hash;
    const ScaleMap map{ScaleLayout::tcgen, tiles * 128, cols};
    std::vector<std::uint32_t> placed(static_cast<std::size_t>(map.bytes()), 0);
    for (std::size_t e = 0; e < counts.size(); ++e) {
      for (std::int64_t row = begins[e]; row < begins[e + 1]; ++row) {
        const std::int64_t scale_row = ms::grouped_scale_row(ScaleLayout::tcgen, row, begins[e], corrections[e]);
        for (std::int64_t col = 0; col < cols; ++col) {
          placed.at(static_cast<std::size_t>(map.offset(scale_row, col))) =
              static_cast<std::uint32_t>(row * cols + col + 1);
        }
      }
    }
    ms::Test::Fnv1a fnv;
    for (std::uint32_t value : placed) fnv.add(value);
    EXPECT_EQ(fnv.value(), hash) << "case " << cases << ", " << cols << " columns";
  });
  EXPECT_EQ(cases, 9);
  EXPECT_EQ(buffers, 36);
}

TEST(ScaleLayout, GroupedLinearScalesNeedNoCorrection) {
  EXPECT_EQ(ms::grouped_tile_rows_bound(ScaleLayout::linear, 37, 5), 37);
  EXPECT_EQ(ms::grouped_scale_offset(ScaleLayout::linear, 100, 100), 0);
  EXPECT_EQ(ms::grouped_scale_row(ScaleLayout::linear, 120, 100, 0), 120);
}

// The stated bound, with the sum of ceil(count / tile rows): groups of one row are the worst case.
TEST(ScaleLayout, GroupedBoundHoldsForTheWorstSplit) {
  for (ScaleLayout layout : {ScaleLayout::tcgen, ScaleLayout::cdna4, ScaleLayout::tile_8x4}) {
    const std::int64_t r = ms::scale_tile(layout).rows;
    for (std::int64_t groups : {1, 2, 8, 300}) {
      for (std::int64_t count : {std::int64_t{0}, std::int64_t{1}, r - 1, r, r + 1}) {
        const std::int64_t needed = groups * ((count + r - 1) / r);
        EXPECT_LE(needed, ms::grouped_tile_rows_bound(layout, groups * count, groups)) << name(layout);
      }
    }
  }
}

// From the bug log of other libraries.

TEST(ScaleLayoutBug, EightRowTilesPadRowsToEight) {  // B27
  const ScaleMap map{ScaleLayout::tile_8x4, 9, 5};
  EXPECT_EQ(map.bytes(), 128);
  EXPECT_EQ(map.offset(0, 0), 0);
  EXPECT_EQ(map.offset(7, 3), 31);
  EXPECT_EQ(map.offset(8, 0), 64);
  EXPECT_EQ(map.offset(9, 4), 100);
}

TEST(ScaleLayoutBug, ColumnPaddingComesFromColumns) {  // B28
  const ScaleMap mx{ScaleLayout::tcgen, 129, 90};
  EXPECT_EQ(mx.tile_rows() * 128, 256);
  EXPECT_EQ(mx.padded_cols(), 92);
  EXPECT_EQ(mx.bytes(), 23552);
  const ScaleMap nv{ScaleLayout::tcgen, 200, 2880 / 16};
  EXPECT_EQ(nv.tile_rows() * 128, 256);
  EXPECT_EQ(nv.padded_cols(), 180);
}

TEST(ScaleLayoutBug, CellStrideIsThePaddedWidth) {  // B26: K = 288 has 9 scale columns, padded to 16
  const ScaleMap map{ScaleLayout::cdna4, 64, 9};
  EXPECT_EQ(map.tile_row_bytes(), 32 * 16);
  EXPECT_EQ(map.offset(32, 0), 512);
  EXPECT_EQ(map.offset(32, 8), 768);
}

TEST(ScaleLayoutBug, OffsetsPassTwoToThe31) {  // B43
  const ScaleMap map{ScaleLayout::tcgen, 40'000'128, 448};
  EXPECT_EQ(map.offset(40'000'000, 0), 17'920'000'000);
  EXPECT_EQ(map.position(17'920'000'000), (ScalePosition{40'000'000, 0}));
  for (ScaleLayout layout : layouts) {
    const ScaleMap large{layout, 5'000'000'001, 100'000'003};
    for (const ScalePosition p : {ScalePosition{5'000'000'000, 100'000'002}, ScalePosition{4'294'967'297, 77}}) {
      const std::int64_t offset = large.offset(p.row, p.col);
      EXPECT_GT(offset, std::int64_t{1} << 57) << name(layout);
      EXPECT_LT(offset, large.bytes()) << name(layout);
      EXPECT_EQ(large.position(offset), p) << name(layout);
    }
  }
  EXPECT_EQ(ms::grouped_scale_row(ScaleLayout::tcgen, 5'000'000'001, 5'000'000'000, 7),
            5'000'000'000 / 128 * 128 + 7 * 128 + 1);
}

}  // namespace
