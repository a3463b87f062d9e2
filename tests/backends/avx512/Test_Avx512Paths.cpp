#include <gtest/gtest.h>
#include <Microscale_Avx512_Bf16Path.hpp>
#include <Microscale_Avx512_Expand.hpp>
#include <Microscale_Avx512_FmaPath.hpp>
#include <Microscale_Avx512_Panels.hpp>
#include <Microscale_Avx512_RealTile.hpp>
#include <Microscale_Block.hpp>
#include <Microscale_ScaleLayout.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

// The AVX-512 matmul's paths on the model of the processor: panels against the decoders of formats/, products against
// the steps of docs/numerics.md, section 8, written out here one element at a time.
namespace {

using namespace microscale;
using namespace microscale::MICROSCALE_AVX512_NAMESPACE;

constexpr float inf = std::numeric_limits<float>::infinity();

template <class T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{64}); }
  bool operator==(const AlignedAllocator&) const { return true; }
};
template <class T>
using Aligned = std::vector<T, AlignedAllocator<T>>;

std::uint32_t bits(float x) { return Bits::from_float(x); }
float value_of_bf16(std::uint32_t half) { return Bits::to_float(half << 16); }

/// Equal bits; any NaN equals any other.
testing::AssertionResult same(float a, float b) {
  if (bits(a) == bits(b) || (std::isnan(a) && std::isnan(b))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << " (" << std::hexfloat << a << ") is not " << b;
}

/// A block-scaled operand of the tests: one code a byte, and one scale byte a block.
struct Scaled {
  int rows, cols, block;
  ScaleType type;
  const ElementTable* table;
  float (*decode)(std::uint8_t);
  int width;  ///< bits of a code in a unit
  std::vector<std::uint8_t> codes, scales;

  int padded_rows() const { return (rows + 15) / 16 * 16; }
  int padded_cols() const { return (cols + 31) / 32 * 32; }
  int blocks() const { return (cols + block - 1) / block; }
  int padded_blocks() const { return (padded_cols() + block - 1) / block; }
  std::uint8_t& code(int r, int k) { return codes[r * cols + k]; }
  std::uint8_t code(int r, int k) const { return codes[r * cols + k]; }
  std::uint8_t& scale(int r, int b) { return scales[r * blocks() + b]; }
  std::uint8_t scale(int r, int b) const { return scales[r * blocks() + b]; }
  float element(int r, int k) const { return decode(code(r, k)); }
  float scale_value(int r, int b) const {
    return type == ScaleType::e8m0 ? E8M0::decode(scale(r, b)) : UE4M3::decode(scale(r, b));
  }
  float value(int r, int k) const { return element(r, k) * scale_value(r, k / block); }

  /// The codes of a group as dwords of its rows, element i of a row in bits [i * width, (i + 1) * width).
  Aligned<std::uint8_t> unit(int group) const {
    const int row_bytes = padded_cols() * width / 8;
    Aligned<std::uint8_t> result(16 * row_bytes);
    for (int i = 0; i < 16 && 16 * group + i < rows; ++i)
      for (int k = 0; k < cols; ++k)
        for (int b = 0; b < width; ++b) {
          const int bit = k * width + b, byte = bit / 8;
          if (code(16 * group + i, k) >> b & 1)
            result[byte / 4 * 64 + 4 * i + byte % 4] |= static_cast<std::uint8_t>(1 << (bit % 8));
        }
    return result;
  }
  Aligned<std::uint8_t> unit_scales(int group) const {
    Aligned<std::uint8_t> result(16 * padded_blocks(), type == ScaleType::e8m0 ? 127 : 0x38);
    for (int i = 0; i < 16 && 16 * group + i < rows; ++i)
      for (int b = 0; b < blocks(); ++b) result[16 * b + i] = scale(16 * group + i, b);
    return result;
  }

  ExponentRange expand(int group, std::uint32_t* panel) const {
    const auto u = unit(group), s = unit_scales(group);
    switch (width) {
      case 4:
        return expand_bf16<4>(*table, type, block, u.data(), s.data(), padded_cols(), panel);
      case 6:
        return expand_bf16<6>(*table, type, block, u.data(), s.data(), padded_cols(), panel);
      default:
        return expand_bf16<8>(*table, type, block, u.data(), s.data(), padded_cols(), panel);
    }
  }
  ExponentRange expand(int group, float* panel, float* panel_scales) const {
    const auto u = unit(group), s = unit_scales(group);
    switch (width) {
      case 4:
        return expand_floats<4>(*table, type, block, u.data(), s.data(), padded_cols(), panel, panel_scales);
      case 6:
        return expand_floats<6>(*table, type, block, u.data(), s.data(), padded_cols(), panel, panel_scales);
      default:
        return expand_floats<8>(*table, type, block, u.data(), s.data(), padded_cols(), panel, panel_scales);
    }
  }
};

template <class Element>
Scaled scaled(int rows, int cols, int block, ScaleType type, int width) {
  Scaled result{
      rows,  cols, block, type, find_element_table(Element::id), [](std::uint8_t c) { return Element::decode(c); },
      width, {},   {}};
  result.codes.assign(rows * cols, 0);
  result.scales.assign(rows * result.blocks(), type == ScaleType::e8m0 ? 127 : 0x38);
  return result;
}

struct Random {
  std::mt19937 engine{7};
  int operator()(int from, int to) { return std::uniform_int_distribution<int>(from, to)(engine); }
};

/// Random finite codes; scales of every block within [from, to].
void fill(Scaled& m, Random& random, int from, int to) {
  for (auto& c : m.codes) do {
      c = static_cast<std::uint8_t>(random(0, (1 << m.width) - 1));
    } while (!std::isfinite(m.decode(c)));
  for (auto& s : m.scales) s = static_cast<std::uint8_t>(random(from, to));
}

/// One operand of each element, packing, scale type and block size.
std::vector<Scaled> all_kinds(int rows, int cols) {
  return {scaled<E2M1>(rows, cols, 32, ScaleType::e8m0, 4),  scaled<E2M1>(rows, cols, 16, ScaleType::ue4m3, 4),
          scaled<E4M3>(rows, cols, 32, ScaleType::e8m0, 8),  scaled<E5M2>(rows, cols, 32, ScaleType::e8m0, 8),
          scaled<E2M3>(rows, cols, 32, ScaleType::e8m0, 8),  scaled<E3M2>(rows, cols, 32, ScaleType::e8m0, 8),
          scaled<E2M3>(rows, cols, 32, ScaleType::e8m0, 6),  scaled<E3M2>(rows, cols, 32, ScaleType::e8m0, 6),
          scaled<E4M3>(rows, cols, 16, ScaleType::ue4m3, 8), scaled<E2M1>(rows, cols, 32, ScaleType::e8m0, 8)};
}

/// Every code of an element (with whatever bits a byte has above it) in every row and place.
void fill_with_all_codes(Scaled& m) {
  for (int r = 0; r < m.rows; ++r)
    for (int k = 0; k < m.cols; ++k) m.code(r, k) = static_cast<std::uint8_t>((k + 37 * r) % (1 << m.width));
}

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
T from_float(float x) {
  return T(x);
}

/// A plain matrix with strides, poison between its elements.
template <class T>
struct Plain {
  int rows, cols;
  std::int64_t row_stride, col_stride;
  std::vector<T> data;

  Plain(int m, int k, std::int64_t rs, std::int64_t cs)
      : rows(m), cols(k), row_stride(rs), col_stride(cs), data((m - 1) * rs + (k - 1) * cs + 1, T(NAN)) {}
  T& at(int r, int k) { return data[r * row_stride + k * col_stride]; }
  float value(int r, int k) const { return static_cast<float>(data[r * row_stride + k * col_stride]); }
  PlainGroup<T> group(int g) const {
    return {data.data() + 16 * g * row_stride, row_stride, col_stride, rows - 16 * g < 16 ? rows - 16 * g : 16};
  }
};

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
