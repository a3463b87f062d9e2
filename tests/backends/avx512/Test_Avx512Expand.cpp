#include "Avx512Panels.hpp"
#include <Microscale_Avx512_Bf16Path.hpp>
#include <Microscale_Avx512_Panels.hpp>
#include <Microscale_ScaleLayout.hpp>

// The panels of the AVX-512 matmul, on the model of the processor, against the decoders of formats/.
namespace {

using namespace microscale;
using namespace microscale::MICROSCALE_AVX512_NAMESPACE;
using namespace microscale::Test;

TEST(Avx512Expand, FloatsOfAllCodes) {
  for (Scaled& m : all_kinds(16, 256)) {
    fill_with_all_codes(m);
    Aligned<float> panel(16 * 256, -99.0f), scales(16 * m.blocks());
    m.expand(0, panel.data(), scales.data());
    for (int k = 0; k < 256; ++k)
      for (int r = 0; r < 16; ++r)
        ASSERT_TRUE(same(panel[16 * k + r], m.element(r, k))) << "code " << int(m.code(r, k)) << " width " << m.width;
  }
}

TEST(Avx512Expand, Bf16OfAllCodesUnderAllScales) {
  for (Scaled& m : all_kinds(16, 256)) {
    fill_with_all_codes(m);
    for (int byte = 0; byte < 256; ++byte) {
      for (int r = 0; r < 16; ++r)
        for (int b = 0; b < m.blocks(); ++b) m.scale(r, b) = static_cast<std::uint8_t>(byte);
      Aligned<std::uint32_t> panel(16 * 128, 0xdeadbeef);
      const ExponentRange range = m.expand(0, panel.data());
      for (int k = 0; k < 256; ++k)
        for (int r = 0; r < 16; ++r) {
          const float expected = m.element(r, k) * m.scale_value(r, k / m.block);
          if (std::isfinite(expected) && expected != 0) {
            ASSERT_GE(std::ilogb(expected), range.low) << byte;
            ASSERT_LE(std::ilogb(expected), range.high) << byte;
          }
          if (range.low < -126 || range.high > 127) continue;  // no bf16 product will be made of it
          const std::uint32_t pair = panel[k / 2 * 16 + r];
          ASSERT_TRUE(same(value_of_bf16(k % 2 == 0 ? pair & 0xffff : pair >> 16), expected))
              << "code " << int(m.code(r, k)) << " scale " << byte << " width " << m.width;
        }
      const bool e8m0 = m.type == ScaleType::e8m0;
      if (e8m0 && byte == 255) {
        EXPECT_GT(range.low, range.high);
      }
      if (e8m0 && byte != 255) {  // as wide as the element's values, no wider
        float smallest = inf, largest = 0;
        for (int c = 0; c < 256; ++c) {
          const float x = std::fabs(m.decode(static_cast<std::uint8_t>(c)));
          if (x > 0 && x < smallest) smallest = x;
          if (std::isfinite(x) && x > largest) largest = x;
        }
        EXPECT_EQ(range.low, std::ilogb(smallest) + byte - 127);
        EXPECT_EQ(range.high, std::ilogb(largest) + byte - 127);
      }
    }
  }
}

TEST(Avx512Expand, EveryBlockHasItsOwnScale) {
  Random random;
  for (Scaled& m : all_kinds(16, 128)) {
    if (m.type == ScaleType::e8m0)
      fill(m, random, 127 - 60, 127 + 60);
    else
      fill(m, random, 0, 255);
    Aligned<std::uint32_t> panel(16 * 64);
    m.expand(0, panel.data());
    for (int k = 0; k < 128; ++k)
      for (int r = 0; r < 16; ++r) {
        const std::uint32_t pair = panel[k / 2 * 16 + r];
        ASSERT_TRUE(same(value_of_bf16(k % 2 == 0 ? pair & 0xffff : pair >> 16), m.value(r, k)));
      }
    Aligned<float> values(16 * 128), scales(16 * m.blocks(), -99.0f);
    m.expand(0, values.data(), scales.data());
    for (int b = 0; b < m.blocks(); ++b)
      for (int r = 0; r < 16; ++r) EXPECT_TRUE(same(scales[16 * b + r], m.scale_value(r, b)));
  }
}

TEST(Avx512Expand, ScaleBytes) {
  Aligned<std::uint8_t> bytes(256);
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  for (int i = 0; i < 256; i += 16) {
    Aligned<float> e8m0(16), ue4m3(16);
    _mm512_store_ps(e8m0.data(), e8m0_values(scale_bytes(&bytes[i])));
    _mm512_store_ps(ue4m3.data(), ue4m3_values(scale_bytes(&bytes[i])));
    for (int j = 0; j < 16; ++j) {
      EXPECT_TRUE(same(e8m0[j], E8M0::decode(bytes[i + j]))) << i + j;
      EXPECT_TRUE(same(ue4m3[j], UE4M3::decode(bytes[i + j]))) << i + j;
    }
  }
}

TEST(Avx512Expand, ZeroBlocksDoNotWidenTheRange) {
  Random random;
  for (Scaled& m : all_kinds(16, 96)) {
    if (m.type != ScaleType::e8m0) continue;
    fill(m, random, 120, 130);
    const auto clear = [&](int row, int block, std::uint8_t byte) {
      const auto minus_zero = static_cast<std::uint8_t>(1 << (m.width == 8 && m.table->sign == 0 ? 5 : m.width - 1));
      for (int k = 32 * block; k < 32 * block + 32; ++k) m.code(row, k) = k % 2 == 0 ? 0 : minus_zero;
      m.scale(row, block) = byte;
    };
    if (m.decode(static_cast<std::uint8_t>(1 << (m.width == 8 && m.table->sign == 0 ? 5 : m.width - 1))) != 0.0f)
      continue;  // the sign bit is elsewhere: FP4 in bytes
    Aligned<std::uint32_t> panel(16 * 48);
    const ExponentRange usual = m.expand(0, panel.data());
    EXPECT_GE(usual.low, -50);
    clear(3, 1, 0);
    clear(7, 2, 254);
    const ExponentRange range = m.expand(0, panel.data());
    EXPECT_GE(range.low, usual.low);
    EXPECT_LE(range.high, usual.high);
    for (int k = 32; k < 64; ++k) EXPECT_EQ(panel[k / 2 * 16 + 3] & 0x7fff7fff, 0u);
    // One code that is not zero makes the block count.
    m.code(3, 63) = 1;
    const ExponentRange wide = m.expand(0, panel.data());
    EXPECT_LT(wide.low, -127);
    EXPECT_FALSE(products_fit(wide, {0, 0}));
  }
}

template <class T>
void check_plain_packing() {
  Random random;
  for (const auto& [rows, cols, row_stride, col_stride] : {std::array<int, 4>{16, 64, 64, 1},
                                                           {16, 64, 67, 1},
                                                           {5, 33, 40, 1},
                                                           {1, 1, 1, 1},
                                                           {7, 31, 1, 9},
                                                           {16, 48, 100, 2}}) {
    Plain<T> m(rows, cols, row_stride, col_stride);
    for (int r = 0; r < rows; ++r)
      for (int k = 0; k < cols; ++k) m.at(r, k) = T(static_cast<float>(random(-1000, 1000)) * 0.125f);
    m.at(0, 0) = T(inf);
    m.at(rows - 1, cols - 1) = T(NAN);
    const auto expected = [&](int r, int k) { return r < rows && k < cols ? m.value(r, k) : 0.0f; };

    const int floats = (cols + 15) / 16 * 16;
    Aligned<float> panel(16 * floats + 16, -99.0f);
    pack_floats(m.group(0), cols, panel.data());
    for (int k = 0; k < floats; ++k)
      for (int r = 0; r < 16; ++r) ASSERT_TRUE(same(panel[16 * k + r], expected(r, k))) << r << ' ' << k;
    EXPECT_EQ(panel[16 * floats], -99.0f);

    if constexpr (std::is_same_v<T, bf16>) {
      const int padded = (cols + 31) / 32 * 32;
      Aligned<std::uint32_t> pairs(8 * padded + 16, 0xdeadbeef);
      pack_bf16(m.group(0), cols, pairs.data());
      for (int k = 0; k < padded; ++k)
        for (int r = 0; r < 16; ++r) {
          const std::uint32_t pair = pairs[k / 2 * 16 + r];
          ASSERT_TRUE(same(value_of_bf16(k % 2 == 0 ? pair & 0xffff : pair >> 16), expected(r, k))) << r << ' ' << k;
        }
      EXPECT_EQ(pairs[8 * padded], 0xdeadbeef);
    }
  }
}

TEST(Avx512Expand, PlainRows) {
  check_plain_packing<float>();
  check_plain_packing<half>();
  check_plain_packing<bf16>();
}

TEST(Avx512Expand, RangeOfPlainRows) {
  const auto range_of = [](std::initializer_list<float> values) {
    Plain<bf16> m(3, 40, 40, 1);
    for (auto& x : m.data) x = bf16(0.0f);
    int i = 0;
    for (const float x : values) m.at(i % 3, (11 * i) % 40) = bf16(x), ++i;
    Aligned<std::uint32_t> panel(16 * 32);
    return pack_bf16(m.group(0), 40, panel.data());
  };
  const auto expect = [&](std::initializer_list<float> values, int low, int high) {
    const ExponentRange range = range_of(values);
    EXPECT_EQ(range.low, low);
    EXPECT_EQ(range.high, high);
  };
  expect({1.0f}, 0, 0);
  expect({-1.9921875f, 0.5f}, -1, 0);
  expect({0x1p-50f, -0x1.8p60f, -0.0f}, -50, 60);
  expect({0x1p-126f, inf, NAN}, -126, -126);
  expect({0x1.fep127f, -0x1p-3f}, -3, 127);
  EXPECT_LT(range_of({1.0f, 0x1p-127f}).low, -126);  // subnormals of bf16
  EXPECT_LT(range_of({1.0f, -0x1p-133f}).low, -126);
  for (const ExponentRange nothing : {range_of({}), range_of({-0.0f, inf, -inf, NAN})}) {
    EXPECT_GT(nothing.low, nothing.high);
    EXPECT_TRUE(products_fit(nothing, {-126, 127 - 127}));
    EXPECT_TRUE(products_fit(nothing, nothing));
  }
}

// Panels of operands as backends get them.

template <class F>
void check_block_operand(ScaleLayout layout, int rows, int cols, int scale_shift) {
  Random random;
  const int pitch = static_cast<int>(packed_bytes<F>(cols)) + 5, blocks = static_cast<int>(block_count<F>(cols));
  const ScaleMap map{layout, rows + scale_shift, blocks};
  std::vector<std::uint8_t> data(rows * pitch, 0xa5), scales(map.bytes() + map.tile_rows() * 7, 0xff);
  const std::int64_t scale_pitch = map.tile_row_bytes() + 7;
  const auto scale = [&](int r, int b) -> std::uint8_t& {
    const int row = r + scale_shift;
    return scales[tile_row(layout, row) * scale_pitch + map.offset_in_tile_row(row, b)];
  };
  std::vector<std::vector<std::uint8_t>> codes(rows, std::vector<std::uint8_t>(cols));
  for (int r = 0; r < rows; ++r) {
    for (auto& c : codes[r]) c = static_cast<std::uint8_t>(random(0, (1 << F::element::bits) - 1));
    pack_codes<F>(codes[r].data(), cols, &data[r * pitch]);
    for (int b = 0; b < blocks; ++b) scale(r, b) = static_cast<std::uint8_t>(random(100, 120));
  }
  Operand m;
  m.format = format_id<F>;
  m.rows = rows;
  m.cols = cols;
  m.data = data.data();
  m.row_stride = pitch;
  m.scales = scales.data();
  m.scale_layout = layout;
  m.scale_pitch = scale_pitch;

  // The prepared form: all dwords of codes, then all scales.
  const int groups = (rows + 15) / 16, dwords = (cols + 31) / 32 * code_bits<F>;
  Aligned<std::uint8_t> prepared(groups * (dwords * 64 + blocks * 16), F::scale::type == ScaleType::e8m0 ? 127 : 0x38);
  std::fill_n(prepared.begin(), groups * dwords * 64, std::uint8_t{0});
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < packed_bytes<F>(cols); ++i)
      prepared[(r / 16 * dwords + i / 4) * 64 + r % 16 * 4 + i % 4] = data[r * pitch + i];
    for (int b = 0; b < blocks; ++b) prepared[groups * dwords * 64 + (r / 16 * blocks + b) * 16 + r % 16] = scale(r, b);
  }
  Operand repacked = m;
  repacked.prepared = prepared.data();
  repacked.data = nullptr;
  repacked.scales = nullptr;

  const int stretch = cols > 130 ? max_stretch : 64;
  for (const PanelSource& source : {PanelSource(m, scale_shift), PanelSource(repacked)})
    for (int row = 0; row < rows; row += 16)
      for (int k = 0; k < cols; k += stretch) {
        const int count = std::min(cols - k, stretch), here = std::min(rows - row, 16);
        Aligned<std::uint32_t> pairs(8 * stretch + 16, 0xdeadbeef);
        Aligned<float> floats(16 * stretch + 16, -99.0f), panel_scales(2 * stretch + 16, -99.0f);
        source.bf16_pairs(row, here, k, count, pairs.data());
        source.floats(row, here, k, count, floats.data(), panel_scales.data());
        for (int r = 0; r < 16; ++r)
          for (int i = 0; i < count; ++i) {
            const bool exists = r < here;
            const float element = exists ? F::element::decode(codes[row + r][k + i]) : 0.0f;
            const float s = exists ? F::scale::decode(scale(row + r, (k + i) / F::block_size)) : 1.0f;
            const std::uint32_t pair = pairs[i / 2 * 16 + r];
            ASSERT_TRUE(same(value_of_bf16(i % 2 == 0 ? pair & 0xffff : pair >> 16), element * s)) << r << ' ' << k + i;
            ASSERT_TRUE(same(floats[16 * i + r], element)) << r << ' ' << k + i;
            ASSERT_TRUE(same(panel_scales[16 * (i / F::block_size) + r], s)) << r << ' ' << k + i;
          }
        if (count % 2 != 0) {  // the odd one's partner
          for (int r = 0; r < 16; ++r) ASSERT_EQ(pairs[count / 2 * 16 + r] & 0x7fff0000, 0u);
        }
        EXPECT_EQ(pairs[8 * stretch], 0xdeadbeef);
        EXPECT_EQ(floats[16 * stretch], -99.0f);
      }
}

template <class F>
void check_block_operands() {
  for (const ScaleLayout layout : {ScaleLayout::linear, ScaleLayout::tcgen, ScaleLayout::cdna4, ScaleLayout::tile_8x4})
    for (const int shift : {0, 128, 37}) {
      check_block_operand<F>(layout, 16, 128, shift);
      check_block_operand<F>(layout, 37, 123, shift);
      check_block_operand<F>(layout, 18, 1203, shift);
      check_block_operand<F>(layout, 1, 1, shift);
    }
}

TEST(Avx512Panels, BlockOperands) {
  check_block_operands<NVFP4>();
  check_block_operands<MXFP4>();
  check_block_operands<MXFP8_E4M3>();
  check_block_operands<MXFP8_E5M2>();
  check_block_operands<MXFP6_E2M3>();
  check_block_operands<MXFP6_E3M2>();
  check_block_operands<MXFP6_E2M3_Bytes>();
  check_block_operands<MXFP6_E3M2_Bytes>();
}

template <class T>
void check_plain_operand(FormatId format) {
  Random random;
  for (const bool transposed : {false, true}) {
    Plain<T> m(21, 70, transposed ? 1 : 73, transposed ? 23 : 1);
    for (int r = 0; r < 21; ++r)
      for (int k = 0; k < 70; ++k) m.at(r, k) = T(static_cast<float>(random(-1000, 1000)) * 0.125f);
    Operand operand;
    operand.format = format;
    operand.rows = 21;
    operand.cols = 70;
    operand.data = m.data.data();
    operand.row_stride = m.row_stride;
    operand.col_stride = m.col_stride;
    const PanelSource source(operand);
    Aligned<float> floats(16 * 48);
    source.floats(16, 5, 32, 38, floats.data(), nullptr);
    for (int k = 0; k < 48; ++k)
      for (int r = 0; r < 16; ++r)
        ASSERT_TRUE(same(floats[16 * k + r], r < 5 && k < 38 ? m.value(16 + r, 32 + k) : 0.0f));
    if constexpr (std::is_same_v<T, bf16>) {
      Aligned<std::uint32_t> pairs(16 * 32);
      const ExponentRange range = source.bf16_pairs(0, 16, 32, 38, pairs.data());
      for (int k = 0; k < 38; ++k)
        for (int r = 0; r < 16; ++r) {
          const std::uint32_t pair = pairs[k / 2 * 16 + r];
          const float x = m.value(r, 32 + k);
          ASSERT_TRUE(same(value_of_bf16(k % 2 == 0 ? pair & 0xffff : pair >> 16), x));
          if (x != 0.0f) {
            EXPECT_GE(std::ilogb(x), range.low);
            EXPECT_LE(std::ilogb(x), range.high);
          }
        }
    }
  }
}

TEST(Avx512Panels, PlainOperands) {
  check_plain_operand<float>(float32_id);
  check_plain_operand<half>(float16_id);
  check_plain_operand<bf16>(bfloat16_id);
}

}  // namespace
