#include <Golden.hpp>
#include <gtest/gtest.h>
#include <Microscale_Block.hpp>
#include <Microscale_Half.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace ms = microscale;
using ms::BlockScaling;
using ms::NonFinite;
using ms::ScaleRule;
using ms::TensorScalePair;
namespace Bits = ms::Bits;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr ScaleRule rules[] = {ScaleRule::floor, ScaleRule::rceil, ScaleRule::ceil, ScaleRule::even};

constexpr std::uint8_t scale_at_compile_time() {
  const float values[] = {4.0f, -3.0f, 2.0f, 1.5f, 1.0f, 0.5f, 0.25f, -0.2f};
  std::uint8_t bytes[4] = {};
  const std::uint8_t scale = ms::quantize_block<ms::MXFP4>(values, 8, bytes);
  float back[8] = {};
  ms::dequantize_block<ms::MXFP4>(bytes, 8, scale, back);
  return back[0] == 4.0f && back[1] == -3.0f && bytes[0] == 0xd6 ? scale : 0;
}
static_assert(scale_at_compile_time() == 127);
static_assert(ms::pair_from_amax<ms::NVFP4>(2688.0f).decode == 1.0f);
static_assert(ms::pair_from_amax<ms::NVFP4>(0x1p-149f).encode == ms::float_max);
static_assert(ms::pair_from_decode(0x1p-149f).encode == ms::float_max);

template <class F>
struct Quantized {
  unsigned byte;
  std::vector<unsigned> codes;
  std::vector<std::uint8_t> packed;
};

/// quantize_block into a poisoned buffer, checked against encode_block and against what must not be touched.
template <class F>
Quantized<F> quantize(const std::vector<float>& values, const BlockScaling& scaling = {}) {
  const int count = static_cast<int>(values.size());
  const std::vector<float> exact(values);  // no room beyond the tail
  const auto used = static_cast<std::size_t>(ms::packed_bytes<F>(count));
  std::vector<std::uint8_t> bytes(used + 2, 0xa5);
  Quantized<F> result;
  result.byte = ms::quantize_block<F>(exact.data(), count, bytes.data(), scaling);
  EXPECT_EQ(bytes[used], 0xa5);
  EXPECT_EQ(bytes[used + 1], 0xa5);
  bytes.resize(used);
  for (int i = 0; i < count; ++i) result.codes.push_back(ms::read_code<F>(bytes.data(), i));

  std::vector<std::uint8_t> codes(values.size() + 1, 0xa5);
  EXPECT_EQ(ms::encode_block<F>(exact.data(), count, codes.data(), scaling), result.byte);
  EXPECT_EQ(codes.back(), 0xa5);
  codes.pop_back();
  EXPECT_TRUE(std::equal(codes.begin(), codes.end(), result.codes.begin(), result.codes.end()));
  result.packed = std::move(bytes);
  return result;
}

template <class F>
std::vector<float> dequantize(const Quantized<F>& q, float decode = 1.0f) {
  std::vector<float> values(q.codes.size());
  ms::dequantize_block<F>(q.packed.data(), static_cast<int>(values.size()), static_cast<std::uint8_t>(q.byte),
                          values.data(), decode);
  return values;
}

std::vector<float> to_floats(const std::vector<std::uint32_t>& bits) {
  std::vector<float> result;
  for (std::uint32_t b : bits) result.push_back(Bits::to_float(b));
  return result;
}

NonFinite policy_of(const std::string& word) { return word == "strict" ? NonFinite::strict : NonFinite::saturate; }

/// The MX format of an element: calls f(Format{}).
template <class F>
void with_mx_format(const std::string& element, F f) {
  if (element == "e2m1") return f(ms::MXFP4{});
  if (element == "e4m3") return f(ms::MXFP8_E4M3{});
  if (element == "e5m2") return f(ms::MXFP8_E5M2{});
  if (element == "e2m3") return f(ms::MXFP6_E2M3{});
  if (element == "e3m2") return f(ms::MXFP6_E3M2{});
  throw std::runtime_error("no MX format has the element " + element);
}

TEST(Block, MxMatchesExactArithmetic) {
  std::vector<std::vector<float>> inputs;
  int seen = 0;
  ms::Test::for_each_golden_line("mx_blocks.txt", [&](std::istringstream& line) {
    std::string word, element, rule;
    std::size_t id;
    unsigned byte;
    line >> word >> std::dec >> id >> std::hex;
    if (word == "input") {
      ASSERT_EQ(id, inputs.size());
      inputs.push_back(to_floats(ms::Test::rest_of<std::uint32_t>(line)));
      return;
    }
    line >> element >> rule >> std::dec >> byte >> std::hex;
    const auto codes = ms::Test::rest_of<unsigned>(line);
    const auto& values = inputs.at(id);
    ASSERT_EQ(codes.size(), values.size());
    ++seen;
    with_mx_format(element, [&]<class F>(F) {
      const auto q = quantize<F>(values, {.scale_rule = ms::Test::rule_of(rule), .non_finite = policy_of(word)});
      EXPECT_EQ(q.byte, byte) << F::name << " " << rule << " " << word << " input " << id;
      EXPECT_EQ(q.codes, codes) << F::name << " " << rule << " " << word << " input " << id;
    });
  });
  EXPECT_EQ(inputs.size(), 74u);
  EXPECT_GT(seen, 1700);
}

TEST(Block, Nvfp4MatchesTheOrderOfOperations) {
  TensorScalePair pair;
  int pairs = 0, blocks = 0;
  ms::Test::for_each_golden_line("nvfp4_blocks.txt", [&](std::istringstream& line) {
    std::string word, kind;
    line >> word;
    if (word == "pair") {
      std::uint32_t argument, encode, decode;
      line >> kind >> argument >> encode >> decode;
      const float x = Bits::to_float(argument);
      pair = kind == "dynamic"  ? ms::pair_from_amax<ms::NVFP4>(x)
             : kind == "decode" ? ms::pair_from_decode(x)
                                : ms::pair_from_encode(x);
      EXPECT_EQ(Bits::from_float(pair.encode), encode) << kind << " " << std::hex << argument;
      EXPECT_EQ(Bits::from_float(pair.decode), decode) << kind << " " << std::hex << argument;
      EXPECT_EQ(ms::is_valid(pair), decode < Bits::infinity) << kind << " " << std::hex << argument;
      ++pairs;
      return;
    }
    unsigned byte;
    char colon;
    line >> byte;
    const auto codes = ms::Test::rest_of<unsigned>(line);
    line >> colon;
    const auto values = to_floats(ms::Test::rest_of<std::uint32_t>(line));
    ASSERT_EQ(codes.size(), values.size());
    const auto q = quantize<ms::NVFP4>(values, {.non_finite = policy_of(word), .tensor_scale = pair});
    EXPECT_EQ(q.byte, byte) << word << " pair " << pairs << " block " << blocks;
    EXPECT_EQ(q.codes, codes) << word << " pair " << pairs << " block " << blocks;
    ++blocks;
  });
  EXPECT_GT(pairs, 200);
  EXPECT_GT(blocks, 500);
}

std::uint32_t canonical(float x) { return std::isnan(x) ? 0x7fc00000u : Bits::from_float(x); }
std::uint16_t canonical(ms::bf16 x) { return std::isnan(float(x)) ? 0x7fc0 : x.bits; }
std::uint16_t canonical(ms::half x) { return std::isnan(float(x)) ? 0x7e00 : x.bits; }

TEST(Block, DequantizesEveryScaleAndCode) {
  int seen = 0;
  ms::Test::for_each_golden_line("dequantize.txt", [&](std::istringstream& line) {
    std::string format, output;
    std::uint32_t decode;
    std::uint64_t hash;
    line >> format >> decode >> output >> hash;
    ++seen;
    const auto check = [&]<class F>(F) {
      ms::Test::Fnv1a fnv;
      for (int scale = 0; scale < 256; ++scale) {
        for (int code = 0; code < 1 << F::element::bits; ++code) {
          const auto c = static_cast<std::uint8_t>(code);
          std::uint8_t bytes[1];
          float value;
          ms::pack_codes<F>(&c, 1, bytes);
          ms::dequantize_block<F>(bytes, 1, static_cast<std::uint8_t>(scale), &value, Bits::to_float(decode));
          if (output == "float") fnv.add(canonical(value));
          if (output == "bf16") fnv.add(canonical(ms::bf16(value)));
          if (output == "half") fnv.add(canonical(ms::half(value)));
        }
      }
      EXPECT_EQ(fnv.value(), hash) << format << " to " << output << ", dec " << std::hex << decode;
    };
    if (format == "nvfp4") return check(ms::NVFP4{});
    with_mx_format(format, check);
  });
  EXPECT_EQ(seen, 3 * (5 + 7));
}

// Worked tables: the values given, then zeros to the end of the block.

template <class F>
void expect_block(std::vector<float> values, const std::vector<ScaleRule>& under, unsigned byte,
                  const std::vector<unsigned>& codes) {
  const std::size_t shown = values.size();
  values.resize(32, 0.0f);
  for (ScaleRule rule : under) {
    const auto q = quantize<F>(values, {.scale_rule = rule});
    EXPECT_EQ(q.byte, byte) << F::name << " rule " << static_cast<int>(rule);
    EXPECT_EQ(std::vector<unsigned>(q.codes.begin(), q.codes.begin() + static_cast<std::ptrdiff_t>(shown)), codes)
        << F::name << " rule " << static_cast<int>(rule);
    EXPECT_TRUE(std::all_of(q.codes.begin() + static_cast<std::ptrdiff_t>(shown), q.codes.end(),
                            [](unsigned c) { return c == 0; }));
  }
}

const std::vector<ScaleRule> all(std::begin(rules), std::end(rules));
const std::vector<ScaleRule> floor_only{ScaleRule::floor}, ceil_only{ScaleRule::ceil};
const std::vector<ScaleRule> not_floor{ScaleRule::rceil, ScaleRule::ceil, ScaleRule::even};
const std::vector<ScaleRule> not_ceil{ScaleRule::floor, ScaleRule::rceil, ScaleRule::even};

TEST(Block, WorkedTableMx) {
  using ms::MXFP4;
  using E4 = ms::MXFP8_E4M3;
  using E5 = ms::MXFP8_E5M2;
  const std::vector<float> a{4, -3, 2, 1.5, 1, 0.5, 0.25, -0.2f};
  expect_block<MXFP4>(a, all, 127, {6, 0xd, 4, 3, 2, 1, 0, 8});
  expect_block<E4>(a, all, 121, {0x78, 0xf4, 0x70, 0x6c, 0x68, 0x60, 0x58, 0xd5});
  expect_block<E5>(a, all, 114, {0x78, 0xf6, 0x74, 0x72, 0x70, 0x6c, 0x68, 0xe6});

  const std::vector<float> b{4 - 0x1p-22f, -3, 2, 1.5, 1, 0.5, 0.25, -0.2f};
  expect_block<MXFP4>(b, floor_only, 126, {7, 0xf, 6, 5, 4, 2, 1, 9});
  expect_block<MXFP4>(b, not_floor, 127, {6, 0xd, 4, 3, 2, 1, 0, 8});
  expect_block<E4>(b, floor_only, 120, {0x7e, 0xfc, 0x78, 0x74, 0x70, 0x68, 0x60, 0xdd});
  expect_block<E4>(b, not_floor, 121, {0x78, 0xf4, 0x70, 0x6c, 0x68, 0x60, 0x58, 0xd5});
  expect_block<E5>(b, floor_only, 113, {0x7b, 0xfa, 0x78, 0x76, 0x74, 0x70, 0x6c, 0xea});
  expect_block<E5>(b, not_floor, 114, {0x78, 0xf6, 0x74, 0x72, 0x70, 0x6c, 0x68, 0xe6});

  const std::vector<float> c{6, 5, 4.5, 3.5, 2.5, 1.75, 0.75, -5};
  expect_block<MXFP4>(c, not_ceil, 127, {7, 6, 6, 6, 4, 4, 2, 0xe});
  expect_block<MXFP4>(c, ceil_only, 128, {5, 4, 4, 4, 2, 2, 1, 0xc});
  expect_block<E4>(c, not_ceil, 121, {0x7c, 0x7a, 0x79, 0x76, 0x72, 0x6e, 0x64, 0xfa});
  expect_block<E4>(c, ceil_only, 122, {0x74, 0x72, 0x71, 0x6e, 0x6a, 0x66, 0x5c, 0xf2});
  expect_block<E5>(c, not_ceil, 114, {0x7a, 0x79, 0x78, 0x77, 0x75, 0x73, 0x6e, 0xf9});
  expect_block<E5>(c, ceil_only, 115, {0x76, 0x75, 0x74, 0x73, 0x71, 0x6f, 0x6a, 0xf5});

  const std::vector<float> d{7, 6.5, 5.5, -7, 3, 1, 0.5, 0.25};
  expect_block<MXFP4>(d, floor_only, 127, {7, 7, 7, 0xf, 5, 2, 1, 0});
  expect_block<MXFP4>(d, not_floor, 128, {6, 5, 5, 0xe, 3, 1, 0, 0});
  expect_block<E4>(d, not_ceil, 121, {0x7e, 0x7d, 0x7b, 0xfe, 0x74, 0x68, 0x60, 0x58});
  expect_block<E4>(d, ceil_only, 122, {0x76, 0x75, 0x73, 0xf6, 0x6c, 0x60, 0x58, 0x50});
  expect_block<E5>(d, not_ceil, 114, {0x7b, 0x7a, 0x7a, 0xfb, 0x76, 0x70, 0x6c, 0x68});
  expect_block<E5>(d, ceil_only, 115, {0x77, 0x76, 0x76, 0xf7, 0x72, 0x6c, 0x68, 0x64});

  const std::vector<float> e{0x1p-130f, -0x1p-131f, 0x1p-133f, 0x1p-149f, 0, 0, 0, 0};
  expect_block<MXFP4>(e, all, 0, {0, 8, 0, 0, 0, 0, 0, 0});
  expect_block<E4>(e, all, 0, {0x20, 0x98, 0x08, 0, 0, 0, 0, 0});
  expect_block<E5>(e, all, 0, {0x30, 0xac, 0x24, 0, 0, 0, 0, 0});

  const std::vector<float> f{ms::float_max, 0x1p127f, -0x1p126f, 1, 0, 0, 0, 0};
  expect_block<MXFP4>(f, floor_only, 252, {7, 6, 0xc, 0, 0, 0, 0, 0});
  expect_block<MXFP4>(f, not_floor, 253, {6, 4, 0xa, 0, 0, 0, 0, 0});
  expect_block<E4>(f, floor_only, 246, {0x7e, 0x78, 0xf0, 0, 0, 0, 0, 0});
  expect_block<E4>(f, not_floor, 247, {0x78, 0x70, 0xe8, 0, 0, 0, 0, 0});
  expect_block<E5>(f, floor_only, 239, {0x7b, 0x78, 0xf4, 0, 0, 0, 0, 0});
  expect_block<E5>(f, not_floor, 240, {0x78, 0x74, 0xf0, 0, 0, 0, 0, 0});

  const std::vector<float> g(8, -0.0f), h(8, 0.0f);
  expect_block<MXFP4>(g, all, 0, std::vector<unsigned>(8, 8));
  expect_block<E4>(g, all, 0, std::vector<unsigned>(8, 0x80));
  expect_block<E5>(g, all, 0, std::vector<unsigned>(8, 0x80));
  expect_block<MXFP4>(h, all, 0, std::vector<unsigned>(8, 0));

  const std::vector<float> i{4, -3.1f, 2.0625, 1.5, 1, 0.5, 0.0625, -0.2f};
  expect_block<ms::MXFP6_E2M3>(i, all, 127, {0x18, 0x34, 0x10, 0x0c, 0x08, 0x04, 0x00, 0x22});
  expect_block<ms::MXFP6_E3M2>(i, all, 125, {0x1c, 0x3a, 0x18, 0x16, 0x14, 0x10, 0x04, 0x2a});
  expect_block<ms::MXFP6_E2M3_Bytes>(i, all, 127, {0x18, 0x34, 0x10, 0x0c, 0x08, 0x04, 0x00, 0x22});

  const std::vector<float> j{7.75, 7.25, -7.5, 3.0625, 1, 0.9375, 0.0625, -0.1875};
  expect_block<ms::MXFP6_E2M3>(j, floor_only, 127, {0x1f, 0x1e, 0x3f, 0x14, 0x08, 0x08, 0x00, 0x22});
  expect_block<ms::MXFP6_E2M3>(j, not_floor, 128, {0x18, 0x16, 0x37, 0x0c, 0x04, 0x04, 0x00, 0x21});
  expect_block<ms::MXFP6_E3M2>(j, floor_only, 125, {0x1f, 0x1f, 0x3f, 0x1a, 0x14, 0x14, 0x04, 0x2a});
  expect_block<ms::MXFP6_E3M2>(j, not_floor, 126, {0x1c, 0x1b, 0x3c, 0x16, 0x10, 0x10, 0x02, 0x26});
}

TEST(Block, WorkedTableMxPacks) {
  std::vector<float> a{4, -3, 2, 1.5, 1, 0.5, 0.25, -0.2f};
  a.resize(32, 0.0f);
  std::vector<std::uint8_t> expected{0xd6, 0x34, 0x12, 0x80};
  expected.resize(16, 0);
  EXPECT_EQ(quantize<ms::MXFP4>(a).packed, expected);
}

TEST(Block, WorkedTableNvfp4) {
  const struct {
    float amax;
    std::vector<float> values;
    unsigned byte;
    std::vector<unsigned> codes;
  } rows[] = {
      {2688, {6, 5, 4.5, 3.5, 2.5, 1.75, 0.75, -5}, 0x38, {7, 6, 6, 6, 4, 4, 2, 0xe}},
      {2688, {1, 0.5, 0.25, 0.125, -0.0625, -0.75, 0.3f, 0.9f}, 0x23, {7, 5, 3, 1, 9, 0xe, 3, 7}},
      {2688, {2688, -1344, 672, 336}, 0x7e, {7, 0xd, 3, 2}},
      {2688, {6 * 0x1p-6f, 3 * 0x1p-6f}, 0x08, {7, 5}},
      {2688, {6 * 0x1p-9f, 3 * 0x1p-9f}, 0x01, {7, 5}},
      {2688, {9 * 0x1p-9f, 3 * 0x1p-9f}, 0x02, {6, 3}},
      {2688, {6 * 0x1p-10f, -3 * 0x1p-10f}, 0x00, {0, 8}},  // a byte of 00 gives codes 0, signs kept
      {2688, {0.0f, -0.0f}, 0x00, {0, 8}},
      {6, {6, 5, 4.5, 3.5, 2.5, 1.75, 0.75, -5}, 0x7e, {7, 6, 6, 6, 4, 4, 2, 0xe}},
      {6, {6, -3, 1.5, 0.75}, 0x7e, {7, 0xd, 3, 2}},
      {6, {1, 0.5, 0.25, 0.125, -0.0625, -0.75, 0.3f, 0.9f}, 0x69, {7, 5, 3, 2, 9, 0xe, 4, 7}},
      {1, {1, -0.5, 0.25, 0.125}, 0x7e, {7, 0xd, 3, 2}},
      {1, {1, 0.5, 0.25, 0.125, -0.0625, -0.75, 0.3f, 0.9f}, 0x7e, {7, 5, 3, 2, 9, 0xe, 4, 7}},
  };
  for (const auto& row : rows) {
    auto values = row.values;
    auto codes = row.codes;
    values.resize(16, 0.0f);
    codes.resize(16, 0);
    const auto q = quantize<ms::NVFP4>(values, {.tensor_scale = ms::pair_from_amax<ms::NVFP4>(row.amax)});
    EXPECT_EQ(q.byte, row.byte) << row.amax << " " << row.values[0];
    EXPECT_EQ(q.codes, codes) << row.amax << " " << row.values[0];
  }
}

template <class F>
class AnyBlock : public testing::Test {};
using Formats = testing::Types<ms::NVFP4, ms::MXFP4, ms::MXFP8_E4M3, ms::MXFP8_E5M2, ms::MXFP6_E2M3, ms::MXFP6_E3M2,
                               ms::MXFP6_E2M3_Bytes, ms::MXFP6_E3M2_Bytes>;
TYPED_TEST_SUITE(AnyBlock, Formats);

TYPED_TEST(AnyBlock, NonFiniteMakesANanBlockWhereverItIs) {
  using F = TypeParam;
  for (float bad : {nan, -nan, inf, -inf}) {
    for (int at = 0; at < F::block_size; ++at) {
      std::vector<float> values(static_cast<std::size_t>(F::block_size), 1.0f);
      values[static_cast<std::size_t>(at)] = bad;
      const auto q = quantize<F>(values);
      EXPECT_EQ(q.byte, F::scale::nan_byte) << F::name << " " << at;
      EXPECT_EQ(q.codes, std::vector<unsigned>(values.size(), 0)) << F::name << " " << at;
      for (float x : dequantize(q)) EXPECT_TRUE(std::isnan(x)) << F::name << " " << at;
    }
  }
}

TYPED_TEST(AnyBlock, NanScaleMakesEveryCodeNan) {
  using F = TypeParam;
  for (int code = 0; code < 1 << F::element::bits; ++code) {
    EXPECT_TRUE(std::isnan(
        ms::dequantize_code<F>(static_cast<std::uint8_t>(code), F::scale::decode(F::scale::nan_byte), 1.0f)));
  }
}

TYPED_TEST(AnyBlock, ZerosKeepTheirSigns) {
  using F = TypeParam;
  std::vector<float> values;
  for (int i = 0; i < F::block_size; ++i) values.push_back(i % 3 == 0 ? -0.0f : 0.0f);
  const auto q = quantize<F>(values);
  EXPECT_EQ(q.byte, 0u);
  const auto back = dequantize(q);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(q.codes[i], i % 3 == 0 ? unsigned{F::element::sign_bit} : 0u) << F::name;
    EXPECT_EQ(Bits::from_float(back[i]), Bits::from_float(values[i])) << F::name;
  }
}

// What a format can hold comes back as it was: each element value under each scale that quantize would choose for it.
TYPED_TEST(AnyBlock, QuantizingItsOwnValuesChangesNothing) {
  using F = TypeParam;
  ms::Test::SplitMix64 next(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<float> values(static_cast<std::size_t>(F::block_size));
    for (float& x : values) {
      x = std::ldexp(static_cast<float>(static_cast<std::int64_t>(next())), static_cast<int>(next() % 12) - 70);
    }
    const TensorScalePair pair = ms::pair_from_decode(0x1p-7f);
    const auto once = quantize<F>(values, {.tensor_scale = pair});
    const auto back = dequantize(once, F::tensor_scale ? pair.decode : 1.0f);
    float amax_in = 0, amax_out = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      amax_in = std::max(amax_in, std::abs(values[i]));
      amax_out = std::max(amax_out, std::abs(back[i]));
      EXPECT_EQ(std::signbit(back[i]), std::signbit(values[i]));
    }
    EXPECT_GT(amax_out, 0.7f * amax_in);  // worst case of the worked table: 20 percent
    EXPECT_LT(amax_out, 1.3f * amax_in);
    const auto twice = dequantize(quantize<F>(back, {.tensor_scale = pair}), F::tensor_scale ? pair.decode : 1.0f);
    EXPECT_EQ(back, twice) << F::name;
  }
}

TYPED_TEST(AnyBlock, TailsAreBlocksPaddedWithZeros) {
  using F = TypeParam;
  ms::Test::SplitMix64 next(6);
  for (int count = 0; count <= F::block_size; ++count) {
    std::vector<float> tail(static_cast<std::size_t>(count));
    for (float& x : tail) x = std::ldexp(static_cast<float>(static_cast<std::int64_t>(next())), -62);
    auto whole = tail;
    whole.resize(static_cast<std::size_t>(F::block_size), 0.0f);
    const auto short_block = quantize<F>(tail), full_block = quantize<F>(whole);
    EXPECT_EQ(short_block.byte, full_block.byte) << F::name << " " << count;
    EXPECT_TRUE(std::equal(short_block.codes.begin(), short_block.codes.end(), full_block.codes.begin()));
  }
}

// bf16 and half values, once as themselves and once as the float that they are equal to.
TYPED_TEST(AnyBlock, ResultDoesNotDependOnTheInputType) {
  using F = TypeParam;
  ms::Test::SplitMix64 next(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> as_bf16, as_half;
    for (int i = 0; i < F::block_size; ++i) {
      const float x = std::ldexp(static_cast<float>(static_cast<std::int64_t>(next())), -61);
      as_bf16.push_back(float(ms::bf16(x)));
      as_half.push_back(float(ms::half(float(ms::bf16(x)))));  // 8 significant bits fit in 11
    }
    EXPECT_EQ(as_bf16, as_half);
    EXPECT_EQ(quantize<F>(as_bf16).packed, quantize<F>(as_half).packed);
  }
}

TEST(Block, InvalidTensorScaleGivesNanBlocks) {
  const std::vector<float> values(16, 1.0f);
  const TensorScalePair invalid[] = {ms::pair_from_decode(0.0f),
                                     ms::pair_from_decode(-1.0f),
                                     ms::pair_from_decode(nan),
                                     ms::pair_from_decode(inf),
                                     ms::pair_from_encode(0.0f),
                                     ms::pair_from_encode(-2.0f),
                                     ms::pair_from_encode(nan),
                                     ms::pair_from_encode(inf),
                                     ms::pair_from_encode(0x1p-130f),
                                     ms::pair_from_encode(-0.0f),
                                     {0.0f, 1.0f},
                                     {1.0f, 0.0f},
                                     {inf, 1.0f},
                                     {nan, 1.0f},
                                     {1.0f, nan}};
  for (const TensorScalePair& pair : invalid) {
    EXPECT_FALSE(ms::is_valid(pair)) << pair.decode << " " << pair.encode;
    const auto q = quantize<ms::NVFP4>(values, {.tensor_scale = pair});
    EXPECT_EQ(q.byte, 0x7fu) << pair.decode << " " << pair.encode;
    EXPECT_EQ(q.codes, std::vector<unsigned>(16, 0));
  }
}

TEST(Block, MxIgnoresTheTensorScale) {
  const std::vector<float> values(32, 3.0f);
  const auto plain = quantize<ms::MXFP4>(values);
  const auto scaled = quantize<ms::MXFP4>(values, {.tensor_scale = ms::pair_from_decode(0.01f)});
  EXPECT_EQ(plain.byte, scaled.byte);
  EXPECT_EQ(plain.packed, scaled.packed);
}

// A format of our own is one struct.
struct Wide {
  using element = ms::E2M1;
  using scale = ms::E8M0;
  static constexpr int block_size = 64;
  static constexpr bool tensor_scale = false;
  static constexpr ms::Packing packing = ms::Packing::dense;
  static constexpr const char* name = "wide";
};
static_assert(ms::BlockFormat<Wide> && !ms::BlockFormat<float> && !ms::BlockFormat<ms::E2M1>);

TEST(Block, AMadeUpFormatQuantizes) {
  std::vector<float> values(64, 0.5f);
  values[63] = -12.0f;
  values[40] = 5.0f;  // 2.5 at scale 2: a tie, to 2
  const auto q = quantize<Wide>(values);
  EXPECT_EQ(q.byte, 128u);
  EXPECT_EQ(q.codes[63], 0xfu);
  EXPECT_EQ(q.codes[40], 4u);
  EXPECT_EQ(q.codes[0], 0u);
  EXPECT_EQ(q.packed.size(), 32u);
  EXPECT_EQ(dequantize(q)[63], -12.0f);
}

// From the bug log of other libraries.

TEST(BlockBug, ScaleIsNotTruncated) {  // B01
  std::vector<float> values(32, 0.0f);
  values[0] = 11.9f;
  for (ScaleRule rule : {ScaleRule::floor, ScaleRule::rceil, ScaleRule::even}) {
    const auto q = quantize<ms::MXFP4>(values, {.scale_rule = rule});
    EXPECT_EQ(q.byte, 128u);
    EXPECT_EQ(q.codes[0], 7u);
    EXPECT_EQ(dequantize(q)[0], 12.0f);
  }
}

TEST(BlockBug, BlockMaximumIsNotLostToNearestScales) {  // B02, B03
  std::vector<float> values(32, 0.0f);
  values[0] = 500.0f;
  auto q = quantize<ms::MXFP8_E4M3>(values);
  EXPECT_EQ(q.byte, 128u);
  EXPECT_EQ(q.codes[0], 0x78u);
  EXPECT_EQ(dequantize(q)[0], 512.0f);
  values[0] = 448.0f;
  q = quantize<ms::MXFP8_E4M3>(values);
  EXPECT_EQ(q.byte, 127u);
  EXPECT_EQ(q.codes[0], 0x7eu);
  values[0] = 240.0f;
  q = quantize<ms::MXFP8_E4M3>(values);
  EXPECT_EQ(q.byte, 127u);
  EXPECT_EQ(q.codes[0], 0x77u);
}

TEST(BlockBug, ExponentOffsetIsAppliedOnce) {  // B04
  const auto q = quantize<ms::MXFP4>(std::vector<float>(32, 1.0f));
  EXPECT_EQ(q.byte, 125u);
  EXPECT_EQ(q.codes, std::vector<unsigned>(32, 6));
  EXPECT_EQ(dequantize(q), std::vector<float>(32, 1.0f));
}

TEST(BlockBug, Nvfp4MultipliesByTheReciprocal) {  // B07: byte 07 under tensor scale 1 comes from an amax of 0.08203125
  std::vector<float> values(16, 0.0f);
  values[0] = 6 * 0.013671875f;
  values[1] = 0.02392577938735485f;
  const auto q = quantize<ms::NVFP4>(values);
  EXPECT_EQ(q.byte, 0x07u);
  EXPECT_EQ(q.codes[1], 4u);  // division would give 3
}

TEST(BlockBug, TensorScaleHoldsTheSix) {  // B10
  std::vector<float> values(16, 1.0f);
  values[5] = -2688.0f;
  const auto q = quantize<ms::NVFP4>(values, {.tensor_scale = ms::pair_from_amax<ms::NVFP4>(2688.0f)});
  EXPECT_EQ(q.byte, 0x7eu);
  EXPECT_EQ(q.codes[5], 0xfu);
}

TEST(BlockBug, ScaleByteZeroAndNanDequantize) {  // B15
  const std::uint8_t one = 0x38, zero = 0x00;
  float value = 0;
  ms::dequantize_block<ms::MXFP8_E4M3>(&one, 1, 0, &value);
  EXPECT_EQ(value, 0x1p-127f);
  ms::dequantize_block<ms::MXFP8_E4M3>(&one, 1, 255, &value);
  EXPECT_TRUE(std::isnan(value));
  value = 0;
  ms::dequantize_block<ms::MXFP8_E4M3>(&zero, 1, 255, &value);
  EXPECT_TRUE(std::isnan(value));
}

TEST(BlockBug, NanIsNotLostByTheMaximum) {  // B18
  std::vector<float> values(32, 1.0f);
  values[0] = nan;
  for (ScaleRule rule : rules) {
    const auto back = dequantize(quantize<ms::MXFP8_E4M3>(values, {.scale_rule = rule}));
    EXPECT_TRUE(std::all_of(back.begin(), back.end(), [](float x) { return std::isnan(x); }));
  }
}

TEST(BlockBug, ZeroBlockHasNoNanScale) {  // B19
  const TensorScalePair pair = ms::pair_from_amax<ms::NVFP4>(1e-3f);
  const auto zeros = quantize<ms::NVFP4>(std::vector<float>(16, 0.0f), {.tensor_scale = pair});
  EXPECT_EQ(zeros.byte, 0u);
  EXPECT_EQ(dequantize(zeros, pair.decode), std::vector<float>(16, 0.0f));
  const auto rest = quantize<ms::NVFP4>(std::vector<float>(16, 1e-3f), {.tensor_scale = pair});
  EXPECT_EQ(rest.byte, 0x7eu);
}

TEST(BlockBug, ZeroTensorDividesByNothing) {  // B22
  const TensorScalePair pair = ms::pair_from_amax<ms::NVFP4>(0.0f);
  EXPECT_EQ(pair.decode, 1.0f);
  EXPECT_EQ(pair.encode, 1.0f);
}

TEST(BlockBug, SubnormalBlockScaleCounts) {  // B23
  std::vector<float> values(16, 0.0f);
  values[3] = 6 * 0x1p-9f;
  const auto q = quantize<ms::NVFP4>(values);
  EXPECT_EQ(q.byte, 0x01u);
  EXPECT_EQ(q.codes[3], 7u);
  EXPECT_EQ(dequantize(q)[3], 0.01171875f);
}

TEST(BlockBug, BothTensorScaleConventionsMeanTheSame) {  // B69
  const TensorScalePair encode = ms::pair_from_encode(672.0f), decode = ms::pair_from_decode(1.0f / 672.0f);
  EXPECT_EQ(encode.decode, decode.decode);
  std::vector<float> values;
  for (int i = 0; i < 16; ++i) values.push_back(0.25f * static_cast<float>(i) - 2.0f);
  EXPECT_EQ(quantize<ms::NVFP4>(values, {.tensor_scale = encode}).packed,
            quantize<ms::NVFP4>(values, {.tensor_scale = decode}).packed);
  EXPECT_EQ(ms::pair_from_amax<ms::NVFP4>(4.0f).decode, 1.0f / 672.0f);
}

}  // namespace
