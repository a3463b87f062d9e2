#include <Golden.hpp>
#include <gtest/gtest.h>
#include <Microscale_Packing.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace ms = microscale;

namespace {

static_assert(ms::code_bits<ms::NVFP4> == 4 && ms::code_bits<ms::MXFP8_E5M2> == 8 &&
              ms::code_bits<ms::MXFP6_E2M3> == 6);
static_assert(ms::code_bits<ms::MXFP6_E2M3_Bytes> == 8);
static_assert(ms::packed_bytes<ms::MXFP4>(33) == 17 && ms::packed_bytes<ms::MXFP6_E3M2>(5) == 4);
static_assert(ms::packed_bytes<ms::MXFP6_E3M2>(32) == 24 && ms::packed_bytes<ms::MXFP6_E3M2_Bytes>(32) == 32);
static_assert(ms::block_count<ms::NVFP4>(0) == 0 && ms::block_count<ms::NVFP4>(17) == 2);

constexpr ms::FormatId nvfp4_id{{2, 1, ms::Specials::none}, 16, ms::ScaleType::ue4m3, true, ms::Packing::dense};
static_assert(ms::format_id<ms::NVFP4> == nvfp4_id);
static_assert(!(ms::format_id<ms::NVFP4> == ms::format_id<ms::MXFP4>));
static_assert(!(ms::format_id<ms::MXFP6_E2M3> == ms::format_id<ms::MXFP6_E2M3_Bytes>));

constexpr std::uint8_t first_of(std::uint8_t a, std::uint8_t b) {
  const std::uint8_t codes[] = {a, b};
  std::uint8_t byte = 0;
  ms::pack_codes<ms::MXFP4>(codes, 2, &byte);
  return byte;
}
static_assert(first_of(0x2, 0x4) == 0x42);

template <class F>
class Packing : public testing::Test {};
using Formats = testing::Types<ms::NVFP4, ms::MXFP4, ms::MXFP8_E4M3, ms::MXFP8_E5M2, ms::MXFP6_E2M3, ms::MXFP6_E3M2,
                               ms::MXFP6_E2M3_Bytes, ms::MXFP6_E3M2_Bytes>;
TYPED_TEST_SUITE(Packing, Formats);

// One long number, code i shifted left by i * width, cut into bytes from the least significant end.
template <class F>
std::vector<std::uint8_t> packed_by_bits(const std::vector<std::uint8_t>& codes) {
  const auto width = static_cast<std::size_t>(F::packing == ms::Packing::byte ? 8 : F::element::bits);
  std::vector<bool> bits;
  for (std::uint8_t code : codes) {
    for (std::size_t b = 0; b < width; ++b) bits.push_back((code >> b) & 1);
  }
  std::vector<std::uint8_t> bytes((bits.size() + 7) / 8, 0);
  for (std::size_t b = 0; b < bits.size(); ++b) {
    if (bits[b]) bytes[b / 8] = static_cast<std::uint8_t>(bytes[b / 8] | (1u << (b % 8)));
  }
  return bytes;
}

TYPED_TEST(Packing, IsAStreamOfBitsAndInverts) {
  using F = TypeParam;
  ms::Test::SplitMix64 next(17);
  for (int count = 0; count <= 130; ++count) {
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(count));
    for (auto& code : codes) code = static_cast<std::uint8_t>(next() >> (64 - F::element::bits));
    const auto expected = packed_by_bits<F>(codes);
    ASSERT_EQ(ms::packed_bytes<F>(count), static_cast<std::int64_t>(expected.size())) << count;

    std::vector<std::uint8_t> bytes(expected.size() + 4,
                                    0xa5);  // poison: unused bits must be cleared, no byte more written
    ms::pack_codes<F>(codes.data(), count, bytes.data());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes.begin())) << F::name << " " << count;
    EXPECT_EQ(std::count(bytes.end() - 4, bytes.end(), 0xa5), 4) << F::name << " " << count;

    std::vector<std::uint8_t> exact(bytes.begin(), bytes.end() - 4);  // a read beyond it is caught by AddressSanitizer
    std::vector<std::uint8_t> back(codes.size() + 1, 0x5a);
    ms::unpack_codes<F>(exact.data(), count, back.data());
    EXPECT_TRUE(std::equal(codes.begin(), codes.end(), back.begin())) << F::name << " " << count;
    EXPECT_EQ(back.back(), 0x5a);
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(ms::read_code<F>(exact.data(), i), codes[static_cast<std::size_t>(i)])
          << F::name << " " << count << " " << i;
    }
  }
}

TYPED_TEST(Packing, BytesOfARowPassTwoToThe31) {
  using F = TypeParam;
  const std::int64_t width = F::packing == ms::Packing::byte ? 8 : F::element::bits;
  EXPECT_EQ(ms::packed_bytes<F>(std::int64_t{1} << 40), (std::int64_t{1} << 37) * width);
  EXPECT_EQ(ms::packed_bytes<F>((std::int64_t{1} << 40) + 1), (std::int64_t{1} << 37) * width + 1);
  // Neither may the number of bits overflow on the way.
  EXPECT_EQ(ms::packed_bytes<F>(std::int64_t{1} << 61), (std::int64_t{1} << 58) * width);
}

// From the bug log of other libraries.

TEST(PackingBug, EvenElementIsTheLowNibble) {  // B36
  EXPECT_EQ(first_of(ms::E2M1::encode(1.0f), ms::E2M1::encode(2.0f)), 0x42);
  EXPECT_EQ(first_of(ms::E2M1::encode(0.5f), ms::E2M1::encode(-6.0f)), 0xf1);
}

TEST(PackingBug, FourSixBitCodesFillThreeBytesInOrder) {
  const std::uint8_t codes[] = {0x01, 0x02, 0x3f, 0x20};
  std::uint8_t bytes[3] = {};
  ms::pack_codes<ms::MXFP6_E2M3>(codes, 4, bytes);
  EXPECT_EQ(bytes[0], 0x81);  // 000001, and the low two bits of 000010
  EXPECT_EQ(bytes[1], 0xf0);
  EXPECT_EQ(bytes[2], 0x83);
}

}  // namespace
