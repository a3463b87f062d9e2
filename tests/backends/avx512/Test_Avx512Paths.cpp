#include "Avx512Panels.hpp"
#include <Microscale_Avx512_Bf16Path.hpp>
#include <Microscale_Avx512_FmaPath.hpp>
#include <Microscale_Avx512_Panels.hpp>
#include <Microscale_Avx512_RealTile.hpp>

// The paths of the AVX-512 matmul, on the model of the processor, against the steps of docs/numerics.md, section 8,
// written out here one element at a time.
namespace {

using namespace microscale;
using namespace microscale::MICROSCALE_AVX512_NAMESPACE;
using namespace microscale::Test;

// The reference's element of A B^T, from the document: pieces that end where a block of either operand ends, fmaf in
// ascending k, the product of the UE4M3 scales, one scalbn by the sum of the E8M0 exponents, one addition.

float element(const Scaled& m, int r, int k) { return m.element(r, k); }
template <class T>
float element(const Plain<T>& m, int r, int k) {
  return m.value(r, k);
}
int block_of(const Scaled& m) { return m.block; }
template <class T>
int block_of(const Plain<T>&) {
  return 1 << 30;
}
void apply_scale(const Scaled& m, int r, int k, float& factor, int& exponent) {
  const std::uint8_t byte = m.scale(r, k / m.block);
  if (m.type == ScaleType::ue4m3)
    factor *= UE4M3::decode(byte);
  else if (byte == 255)
    factor = NAN;
  else
    exponent += byte - 127;
}
template <class T>
void apply_scale(const Plain<T>&, int, int, float&, int&) {}
double exact(const Scaled& m, int r, int k) {
  const std::uint8_t byte = m.scale(r, k / m.block);
  return m.type == ScaleType::ue4m3 ? double{m.element(r, k)} * double{UE4M3::decode(byte)}
                                    : std::ldexp(double{m.element(r, k)}, byte - 127);
}
template <class T>
double exact(const Plain<T>& m, int r, int k) {
  return m.value(r, k);
}

template <class A>
float reference(const A& a, int row, const Scaled& b, int col) {
  float sum = 0.0f;
  for (int k = 0; k < a.cols;) {
    float factor = 1.0f, dot = 0.0f;
    int exponent = 0;
    apply_scale(a, row, k, factor, exponent);
    apply_scale(b, col, k, factor, exponent);
    const int end = std::min({a.cols, (k / block_of(a) + 1) * block_of(a), (k / b.block + 1) * b.block});
    for (; k < end; ++k) dot = std::fmaf(element(a, row, k), element(b, col, k), dot);
    sum += static_cast<float>(std::scalbn(double{dot * factor}, exponent));
  }
  return sum;
}

/// The panels of all groups of an operand over the whole of K, for either path.
struct Bf16Panels {
  std::int64_t stride;
  Aligned<std::uint32_t> pairs;
  ExponentRange range;

  template <class Pack>
  Bf16Panels(int rows, int cols, const Pack& pack)
      : stride(16 * ((cols + 31) / 32 * 16)), pairs((rows + 15) / 16 * stride, 0xdeadbeef) {
    for (int g = 0; g < (rows + 15) / 16; ++g) range.include(pack(g, pairs.data() + g * stride));
  }
};
Bf16Panels bf16_panels(const Scaled& m) {
  return {m.rows, m.cols, [&](int g, std::uint32_t* panel) { return m.expand(g, panel); }};
}
Bf16Panels bf16_panels(const Plain<bf16>& m) {
  return {m.rows, m.cols, [&](int g, std::uint32_t* panel) { return pack_bf16(m.group(g), m.cols, panel); }};
}

struct OwnedFloatPanels {
  Aligned<float> values, scales;
  FloatPanels panels;
};
OwnedFloatPanels float_panels(const Scaled& m) {
  const int groups = m.padded_rows() / 16, stride = 16 * m.padded_cols(), scale_stride = 16 * m.padded_blocks();
  OwnedFloatPanels result{Aligned<float>(groups * stride), Aligned<float>(groups * scale_stride), {}};
  ExponentRange range;
  for (int g = 0; g < groups; ++g)
    range.include(m.expand(g, result.values.data() + g * stride, result.scales.data() + g * scale_stride));
  result.panels = {result.values.data(), stride, m.block, result.scales.data(), scale_stride, m.type, range};
  return result;
}
template <class T>
OwnedFloatPanels float_panels(const Plain<T>& m) {
  const int groups = (m.rows + 15) / 16, stride = 16 * ((m.cols + 15) / 16 * 16);
  OwnedFloatPanels result{Aligned<float>(groups * stride), {}, {}};
  for (int g = 0; g < groups; ++g) pack_floats(m.group(g), m.cols, result.values.data() + g * stride);
  result.panels.values = result.values.data();
  result.panels.stride = stride;
  return result;
}

/// C with room between its rows; what is around it stays poison.
struct Sums {
  int rows, cols, pitch;
  Aligned<float> data;
  Sums(int m, int n) : rows(m), cols((n + 15) / 16 * 16), pitch(cols + 16), data(m * pitch, -77.0f) {
    for (int r = 0; r < m; ++r) std::fill_n(data.data() + r * pitch, cols, 0.0f);
  }
  float operator()(int r, int c) const { return data[r * pitch + c]; }
  void expect_poison_kept() const {
    for (int r = 0; r < rows; ++r)
      for (int c = cols; c < pitch; ++c) EXPECT_EQ(data[r * pitch + c], -77.0f);
  }
};

template <class A>
Sums by_bf16(const A& a, const Scaled& b) {
  const Bf16Panels pa = bf16_panels(a), pb = bf16_panels(b);
  EXPECT_TRUE(products_fit(pa.range, pb.range));
  Sums c(a.rows, b.rows);
  multiply_bf16(a.rows, c.cols / 16, (a.cols + 1) / 2, pa.pairs.data(), pa.stride, pb.pairs.data(), pb.stride,
                c.data.data(), c.pitch);
  c.expect_poison_kept();
  return c;
}
template <class A>
Sums by_fma(const A& a, const Scaled& b) {
  const OwnedFloatPanels pa = float_panels(a), pb = float_panels(b);
  Sums c(a.rows, b.rows);
  multiply_fma(a.rows, c.cols / 16, a.cols, pa.panels, pb.panels, c.data.data(), c.pitch);
  c.expect_poison_kept();
  return c;
}

/// The bound of docs/numerics.md without tensor scales and alpha.
template <class A>
void expect_within_bound(const A& a, const Scaled& b) {
  const Sums c = by_bf16(a, b);
  const double roundings = std::min(a.cols, bf16_chunk) + (a.cols + bf16_chunk - 1) / bf16_chunk;
  for (int m = 0; m < a.rows; ++m)
    for (int n = 0; n < b.rows; ++n) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < a.cols; ++k) {
        const double product = exact(a, m, k) * exact(b, n, k);
        sum += product;
        magnitude += std::fabs(product);
      }
      ASSERT_LE(std::fabs(c(m, n) - sum), roundings * 0x1p-24 * magnitude) << m << ' ' << n;
    }
}
template <class A>
void expect_reference_bits(const A& a, const Scaled& b) {
  const Sums c = by_fma(a, b);
  for (int m = 0; m < a.rows; ++m)
    for (int n = 0; n < b.rows; ++n) ASSERT_TRUE(same(c(m, n), reference(a, m, b, n))) << m << ' ' << n;
}

template <class T>
Plain<T> random_plain(Random& random, int rows, int cols, int from, int to) {
  Plain<T> m(rows, cols, cols + 3, 1);
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < cols; ++k)
      m.at(r, k) = T(std::ldexp(static_cast<float>(random(-256, 256)), random(from, to) - 8));
  return m;
}

TEST(Avx512Bf16Path, AllPairsWithinTheBound) {
  Random random;
  for (Scaled& b : all_kinds(37, 96)) {
    b.type == ScaleType::e8m0 ? fill(b, random, 117, 132) : fill(b, random, 0, 126);
    for (Scaled& a : all_kinds(19, 96)) {
      a.type == ScaleType::e8m0 ? fill(a, random, 117, 132) : fill(a, random, 0, 126);
      expect_within_bound(a, b);
    }
    expect_within_bound(random_plain<bf16>(random, 19, 96, -12, 12), b);
  }
}

TEST(Avx512Bf16Path, RowsColumnsAndTails) {
  Random random;
  for (int rows : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31})
    for (int cols : {1, 16, 17, 48, 65})
      for (int k : {1, 2, 31, 50}) {
        Scaled b = scaled<E2M1>(cols, k, 32, ScaleType::e8m0, 4);
        fill(b, random, 117, 132);
        expect_within_bound(random_plain<bf16>(random, rows, k, -12, 12), b);
      }
}

TEST(Avx512Bf16Path, LongK) {
  Random random;
  for (int k : {255, 256, 257, 512, 1000}) {
    Scaled b = scaled<E4M3>(5, k, 32, ScaleType::e8m0, 8);
    fill(b, random, 117, 132);
    expect_within_bound(random_plain<bf16>(random, 3, k, -12, 12), b);
  }
  // Chunks are summed apart: 1 is lost when it is added to 2^24 one at a time, and is not when 256 of them are.
  Plain<bf16> a(1, 512, 512, 1);
  Scaled b = scaled<E4M3>(1, 512, 32, ScaleType::e8m0, 8);
  for (int i = 0; i < 512; ++i) a.at(0, i) = bf16(i == 0 ? 0x1p24f : i < 256 ? 0.0f : 1.0f), b.code(0, i) = 0x38;
  EXPECT_EQ(by_bf16(a, b)(0, 0), 0x1p24f + 256);
}

TEST(Avx512Bf16Path, ExactWhereSumsAre) {
  // The document's examples: 20, and 256 * 2^-127 by 2^112 over K = 128.
  Scaled a = scaled<E2M1>(1, 32, 16, ScaleType::ue4m3, 4), b = a;
  for (int k = 0; k < 32; ++k) a.code(0, k) = 2, b.code(0, k) = 1;
  a.scale(0, 0) = UE4M3::encode(2.0f);
  a.scale(0, 1) = UE4M3::encode(0.5f);
  EXPECT_EQ(by_bf16(a, b)(0, 0), 20.0f);

  Plain<bf16> large(1, 128, 128, 1);
  for (auto& x : large.data) x = bf16(0x1p112f);
  Scaled small = scaled<E4M3>(1, 128, 32, ScaleType::e8m0, 8);
  for (auto& c : small.codes) c = E4M3::encode(256.0f);
  for (auto& s : small.scales) s = 0;
  EXPECT_EQ(by_fma(large, small)(0, 0), 1.0f);
  // 2^112 by codes that might be as small as 2^-9 * 2^-127 is left to the other path.
  EXPECT_FALSE(products_fit(bf16_panels(large).range, bf16_panels(small).range));
}

TEST(Avx512Bf16Path, WhatIsSafe) {
  const auto fit = [](int a_low, int a_high, int b_low, int b_high) {
    return products_fit({a_low, a_high}, {b_low, b_high});
  };
  EXPECT_TRUE(fit(-50, 47, -62, 47));  // products down to 2^-112, whose last bit is 2^-126; 2^31 of them up to 2^96
  EXPECT_FALSE(fit(-51, 47, -62, 47));
  EXPECT_FALSE(fit(-50, 47, -63, 47));
  EXPECT_FALSE(fit(-50, 48, -62, 47));
  EXPECT_FALSE(fit(-50, 47, -62, 48));
  EXPECT_TRUE(fit(-126, 0, 14, 94));
  EXPECT_FALSE(fit(-127, 0, 30, 31));  // subnormal
  EXPECT_TRUE(fit(0, 127, -100, -33));
  EXPECT_FALSE(fit(0, 128, -100, -60));  // not a finite bf16
}

TEST(Avx512Bf16Path, SmallestSafeProductsAreExact) {
  // (2^-50 + 2^-57) (2^-62 + 2^-69) - 2^-112 - 2^-119 - 2^-119 leaves 2^-126, the smallest normal number.
  Plain<bf16> a(1, 4, 4, 1), b(1, 4, 4, 1);
  const float xs[] = {0x1.02p-50f, -0x1p-50f, -0x1p-50f, 0x1p-50f},
              ys[] = {0x1.02p-62f, 0x1p-62f, 0x1.04p-69f, 0x1p-69f};
  Aligned<std::uint32_t> pa(16 * 16), pb(16 * 16);
  double sum = 0;
  for (int k = 0; k < 4; ++k) a.at(0, k) = bf16(xs[k]), b.at(0, k) = bf16(ys[k]), sum += double{xs[k]} * double{ys[k]};
  pack_bf16(a.group(0), 4, pa.data());
  pack_bf16(b.group(0), 4, pb.data());
  Sums c(1, 1);
  multiply_bf16(1, 1, 2, pa.data(), 256, pb.data(), 256, c.data.data(), c.pitch);
  EXPECT_EQ(c(0, 0), static_cast<float>(sum));
}

TEST(Avx512Bf16Path, NotNumbers) {
  Random random;
  const int k = 64;
  Plain<bf16> a = random_plain<bf16>(random, 9, k, -3, 3);
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < k; ++j)
      if (a.value(i, j) == 0.0f) a.at(i, j) = bf16(1.0f);
  a.at(1, 5) = bf16(inf);
  a.at(2, 6) = bf16(-inf);
  a.at(3, 7) = bf16(NAN);
  a.at(4, 9) = bf16(inf);
  a.at(4, 40) = bf16(-inf);
  a.at(5, 11) = bf16(0.0f);
  Scaled b = scaled<E5M2>(20, k, 32, ScaleType::e8m0, 8);
  fill(b, random, 120, 130);
  for (auto& c : b.codes)
    if ((c & 0x7f) == 0) c = 0x3c;
  b.code(0, 5) = 0x00;   // 0 by Inf
  b.code(1, 11) = 0x7c;  // Inf by 0
  b.code(2, 20) = 0x7c;
  b.code(3, 20) = 0xfc;
  b.code(4, 20) = 0x7f;  // NaN
  b.scale(5, 1) = 255;   // NaN
  for (int i = 0; i < 32; ++i) b.code(6, i) = 0;
  b.scale(6, 0) = 255;  // zeros under NaN
  for (int i = 32; i < 64; ++i) b.code(7, i) = 0;
  b.scale(7, 1) = 0;
  const Sums c = by_bf16(a, b), d = by_fma(a, b);
  for (int m = 0; m < 9; ++m)
    for (int n = 0; n < 20; ++n) {
      const float expected = reference(a, m, b, n);
      EXPECT_TRUE(same(d(m, n), expected)) << m << ' ' << n;
      if (std::isfinite(expected))
        EXPECT_TRUE(std::isfinite(c(m, n)));
      else
        EXPECT_TRUE(same(c(m, n), expected)) << m << ' ' << n << ": " << c(m, n);
    }

  // UE4M3: NaN scales, and Inf by a block whose scale is 0.
  Scaled n = scaled<E2M1>(3, k, 16, ScaleType::ue4m3, 4);
  fill(n, random, 1, 126);
  n.scale(0, 2) = 0x7f;
  n.scale(1, 0) = 0xff;
  n.scale(2, 0) = 0;
  const Sums e = by_bf16(a, n), f = by_fma(a, n);
  for (int m = 0; m < 9; ++m)
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(same(f(m, i), reference(a, m, n, i)));
      EXPECT_EQ(std::isnan(e(m, i)), std::isnan(reference(a, m, n, i))) << m << ' ' << i;
      EXPECT_EQ(std::isinf(e(m, i)), std::isinf(reference(a, m, n, i))) << m << ' ' << i;
    }
}

TEST(Avx512FmaPath, ReferenceBitsForAllPairs) {
  Random random;
  for (Scaled& b : all_kinds(37, 80)) {
    fill(b, random, 0, b.type == ScaleType::e8m0 ? 254 : 127);
    for (Scaled& a : all_kinds(11, 80)) {
      fill(a, random, 0, a.type == ScaleType::e8m0 ? 254 : 127);
      expect_reference_bits(a, b);
    }
    expect_reference_bits(random_plain<float>(random, 11, 80, -140, 120), b);
    expect_reference_bits(random_plain<half>(random, 11, 80, -24, 14), b);
    expect_reference_bits(random_plain<bf16>(random, 11, 80, -140, 120), b);
  }
}

TEST(Avx512FmaPath, OrdinaryValues) {
  Random random;
  for (Scaled& b : all_kinds(50, 200)) {
    b.type == ScaleType::e8m0 ? fill(b, random, 110, 140) : fill(b, random, 0, 126);
    Plain<float> a(7, 200, 1, 7);  // columns contiguous
    for (int r = 0; r < 7; ++r)
      for (int k = 0; k < 200; ++k) a.at(r, k) = static_cast<float>(random(-1000000, 1000000)) * 0x1.1p-12f;
    expect_reference_bits(a, b);
  }
}

TEST(Avx512FmaPath, RowsColumnsAndTails) {
  Random random;
  for (int rows : {1, 2, 3, 5, 8, 15, 16, 17, 26})
    for (int cols : {1, 16, 33, 48, 65})
      for (int k : {1, 15, 16, 33, 64}) {
        Scaled b = scaled<E2M1>(cols, k, 16, ScaleType::ue4m3, 4);
        fill(b, random, 0, 126);
        expect_reference_bits(random_plain<half>(random, rows, k, -10, 10), b);
      }
}

TEST(Avx512FmaPath, BlocksThatEndInDifferentPlaces) {
  Random random;
  for (int a_block : {8, 16, 24, 32, 64})
    for (int b_block : {8, 16, 24, 32, 64}) {
      Scaled a = scaled<E5M2>(4, 192, a_block, ScaleType::e8m0, 8),
             b = scaled<E4M3>(4, 192, b_block, ScaleType::ue4m3, 8);
      fill(a, random, 100, 150);
      fill(b, random, 0, 126);
      expect_reference_bits(a, b);
    }
}

TEST(Avx512FmaPath, GoesOnWhereItStopped) {
  Random random;
  Scaled b = scaled<E4M3>(16, 96, 32, ScaleType::e8m0, 8);
  fill(b, random, 120, 130);
  Plain<float> a(3, 96, 96, 1);
  for (auto& x : a.data) x = static_cast<float>(random(-1000000, 1000000)) * 0x1.1p-12f;
  const OwnedFloatPanels pa = float_panels(a), pb = float_panels(b);
  Sums c(3, 16);
  FloatPanels tail_a = pa.panels, tail_b = pb.panels;
  multiply_fma(3, 1, 32, tail_a, tail_b, c.data.data(), c.pitch);
  tail_a.values += 16 * 32;
  tail_b.values += 16 * 32;
  tail_b.scales += 16;
  multiply_fma(3, 1, 64, tail_a, tail_b, c.data.data(), c.pitch);
  for (int m = 0; m < 3; ++m)
    for (int n = 0; n < 16; ++n) EXPECT_TRUE(same(c(m, n), reference(a, m, b, n)));
}

// Tiles of products of operands.

Operand operand_of(const Plain<bf16>& m) {
  Operand result;
  result.format = bfloat16_id;
  result.rows = m.rows;
  result.cols = m.cols;
  result.data = const_cast<bf16*>(m.data.data());
  result.row_stride = m.row_stride;
  result.col_stride = m.col_stride;
  return result;
}
/// Codes of 8 bits only: they lie in memory as they do in Scaled.
Operand operand_of(const Scaled& m, FormatId format) {
  Operand result;
  result.format = format;
  result.rows = m.rows;
  result.cols = m.cols;
  result.data = const_cast<std::uint8_t*>(m.codes.data());
  result.row_stride = m.cols;
  result.scales = const_cast<std::uint8_t*>(m.scales.data());
  result.scale_pitch = m.blocks();
  return result;
}

template <class A>
void check_tile(const A& a, const Operand& a_operand, const Scaled& b, const Operand& b_operand, bool fits) {
  const auto scratch = std::make_unique<TileScratch>();
  std::memset(static_cast<void*>(scratch.get()), 0xff, sizeof(TileScratch));  // NaN wherever nothing is written
  const PanelSource a_source(a_operand), b_source(b_operand);
  for (const auto& [row, rows, column, columns] :
       {std::array<int, 4>{0, a.rows, 0, b.rows}, {a.rows - 3, 3, b.rows / 16 * 16, b.rows % 16}}) {
    const TileOfProduct tile{a_source, row, rows, b_source, column, columns, a.cols};
    Sums by_bf16(rows, columns), by_choice(rows, columns), by_fma(rows, columns);
    EXPECT_EQ(add_tile_bf16(tile, *scratch, by_bf16.data.data(), by_bf16.pitch), fits);
    std::fill_n(by_choice.data.data(), by_choice.cols, 5.0f);  // what was there before is of no matter
    multiply_tile(tile, true, *scratch, by_choice.data.data(), by_choice.pitch);
    multiply_tile(tile, false, *scratch, by_fma.data.data(), by_fma.pitch);
    by_choice.expect_poison_kept();
    by_fma.expect_poison_kept();
    const double roundings = std::min(a.cols, bf16_chunk) + (a.cols + bf16_chunk - 1) / bf16_chunk;
    for (int m = 0; m < rows; ++m)
      for (int n = 0; n < columns; ++n) {
        const float expected = reference(a, row + m, b, column + n);
        ASSERT_TRUE(same(by_fma(m, n), expected)) << m << ' ' << n;
        if (!fits) {
          ASSERT_TRUE(same(by_choice(m, n), expected)) << m << ' ' << n;
          continue;
        }
        double sum = 0, magnitude = 0;
        for (int k = 0; k < a.cols; ++k) {
          const double product = exact(a, row + m, k) * exact(b, column + n, k);
          sum += product;
          magnitude += std::fabs(product);
        }
        ASSERT_LE(std::fabs(by_choice(m, n) - sum), roundings * 0x1p-24 * magnitude) << m << ' ' << n;
      }
  }
}

TEST(Avx512RealTile, SlabsRowsAndColumns) {
  Random random;
  for (const int k : {1, 127, 256, 300, 521}) {
    Scaled b = scaled<E4M3>(53, k, 32, ScaleType::e8m0, 8), a = scaled<E5M2>(21, k, 32, ScaleType::e8m0, 8);
    fill(a, random, 120, 134);
    fill(b, random, 120, 134);
    check_tile(a, operand_of(a, format_id<MXFP8_E5M2>), b, operand_of(b, format_id<MXFP8_E4M3>), true);
    const Plain<bf16> plain = random_plain<bf16>(random, 21, k, -12, 12);
    check_tile(plain, operand_of(plain), b, operand_of(b, format_id<MXFP8_E4M3>), true);
  }
}

TEST(Avx512RealTile, OneValueOutOfRangeAndTheTileHasTheReferencesBits) {
  Random random;
  const int k = 300;
  for (const int byte : {0, 254}) {
    Scaled b = scaled<E4M3>(53, k, 32, ScaleType::e8m0, 8);
    Plain<bf16> a = random_plain<bf16>(random, 21, k, -12, 12);
    fill(b, random, 120, 134);
    b.scale(51, 9) = static_cast<std::uint8_t>(byte);
    b.code(51, 290) = 0x38;
    check_tile(a, operand_of(a), b, operand_of(b, format_id<MXFP8_E4M3>), false);
    for (int i = 288; i < k; ++i) b.code(51, i) = 0x80;  // zeros again
    check_tile(a, operand_of(a), b, operand_of(b, format_id<MXFP8_E4M3>), true);
    a.at(19, 270) = bf16(byte == 0 ? 0x1p-130f : 0x1p110f);
    check_tile(a, operand_of(a), b, operand_of(b, format_id<MXFP8_E4M3>), false);
  }
}

}  // namespace
