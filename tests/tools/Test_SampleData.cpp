#include <gtest/gtest.h>
#include <Microscale.hpp>
#include <Microscale_SampleData.hpp>

#include <cmath>

// The operands that tune measures with: numbers of ordinary size in every format, nothing past the end of a row, and
// groups that cover all rows.
namespace microscale::tools {
namespace {

using Exec = SampleData::Exec;

/// Bytes at an address that the execution space can reach.
std::vector<std::uint8_t> read(const void* data, std::int64_t bytes) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(bytes));
  const Kokkos::View<const std::uint8_t*, Exec, Kokkos::MemoryUnmanaged> there(static_cast<const std::uint8_t*>(data),
                                                                               result.size());
  Kokkos::deep_copy(
      Kokkos::View<std::uint8_t*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(result.data(), result.size()), there);
  return result;
}

/// One that is no number shows up in every sum it is in.
template <class F>
void expect_ordinary_blocks(std::int64_t rows, std::int64_t cols) {
  const Shape shape{.a = format_id<F>, .b = format_id<F>, .c = bfloat16_id, .m = rows, .n = 2, .k = cols};
  const SampleData data(shape);
  const Operand& a = data.problem().a;
  const std::int64_t row_bytes = packed_bytes<F>(cols), blocks = block_count<F>(cols);
  const auto codes = read(a.data, rows * row_bytes), scales = read(a.scales, rows * blocks);
  int distinct = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::uint8_t* row = codes.data() + i * row_bytes;
    for (std::int64_t k = 0; k < cols; ++k) {
      const float code = F::element::decode(read_code<F>(row, k));
      const float scale = F::scale::decode(scales[static_cast<std::size_t>(i * blocks + k / F::block_size)]);
      EXPECT_TRUE(std::isfinite(code * scale)) << F::name << " at " << i << ", " << k;
      EXPECT_LT(std::abs(code * scale), 1e4f) << F::name;
      distinct += code != F::element::decode(read_code<F>(row, 0));
    }
    // The last byte holds nothing that a longer row would read.
    const std::int64_t used = cols * bits_per_code(format_id<F>) % 8;
    if (used != 0) {
      EXPECT_EQ(row[row_bytes - 1] >> used, 0) << F::name;
    }
    for (std::int64_t k = 0; F::packing == Packing::byte && k < cols; ++k) {
      EXPECT_LT(row[k], 64) << F::name;
    }
  }
  EXPECT_GT(distinct, rows * cols / 2) << F::name;
}

TEST(SampleData, BlocksAreOrdinaryNumbers) {
  expect_ordinary_blocks<NVFP4>(5, 37);
  expect_ordinary_blocks<MXFP4>(5, 65);
  expect_ordinary_blocks<MXFP6_E2M3>(3, 37);
  expect_ordinary_blocks<MXFP6_E3M2_Bytes>(3, 37);
  expect_ordinary_blocks<MXFP8_E4M3>(3, 100);
  expect_ordinary_blocks<MXFP8_E5M2>(3, 100);
}

TEST(SampleData, PlainValuesAreBetweenAHalfAndOne) {
  const auto check = [](FormatId format, auto decode, int bytes) {
    const SampleData data({.a = format, .b = format_id<MXFP4>, .c = float32_id, .m = 7, .n = 2, .k = 33});
    const auto memory = read(data.problem().a.data, 7 * 33 * bytes);
    bool negative = false;
    for (std::size_t i = 0; i < 7 * 33; ++i) {
      std::uint32_t bits = 0;
      for (int b = bytes - 1; b >= 0; --b)
        bits = bits << 8 | memory[i * static_cast<std::size_t>(bytes) + static_cast<std::size_t>(b)];
      const float value = decode(bits);
      negative |= value < 0;
      EXPECT_GE(std::abs(value), 0.5f);
      EXPECT_LT(std::abs(value), 1.0f);
    }
    EXPECT_TRUE(negative);
  };
  check(
      float32_id, [](std::uint32_t bits) { return Kokkos::bit_cast<float>(bits); }, 4);
  check(
      bfloat16_id, [](std::uint32_t bits) { return Kokkos::bit_cast<float>(bits << 16); }, 2);
  // binary16 in this range: sign, exponent -1, ten bits of fraction
  check(
      float16_id,
      [](std::uint32_t bits) {
        EXPECT_EQ(bits >> 10 & 31, 14u);
        const float magnitude = std::ldexp(1.0f + static_cast<float>(bits & 1023) / 1024, -1);
        return bits >> 15 ? -magnitude : magnitude;
      },
      2);
}

TEST(SampleData, GroupsCoverAllRows) {
  Shape shape{.operation = Operation::grouped_matmul,
              .a = format_id<NVFP4>,
              .b = format_id<NVFP4>,
              .c = bfloat16_id,
              .m = 1001,
              .n = 4,
              .k = 64,
              .groups = 7,
              .scale_layout = ScaleLayout::tcgen};
  const SampleData data(shape);
  const Problem& p = data.problem();
  const auto ints = [](const std::int32_t* at, std::int64_t count) {
    std::vector<std::int32_t> result(static_cast<std::size_t>(count));
    const auto bytes = read(at, count * 4);
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  };
  const std::vector<std::int32_t> offsets = ints(p.groups.row_offsets, 8), ids = ints(p.groups.expert_ids, 7);
  EXPECT_EQ(offsets, (std::vector<std::int32_t>{0, 143, 286, 429, 572, 715, 858, 1001}));
  EXPECT_EQ(ids, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6}));
  // Each group of 143 rows takes two rows of tiles of 128; the offsets correct row_begin / 128 = 0, 1, 2, 3, 4, 5, 6.
  EXPECT_EQ(ints(p.groups.a_scale_offsets, 7), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read(p.b.tensor_scale, 7 * 8).size(), 56u);
  EXPECT_EQ(p.execution, Impl::execution_kind<Exec>());
  EXPECT_EQ(p.concurrency, Exec().concurrency());
}

TEST(SampleData, WorkspaceGrows) {
  SampleData data({.a = format_id<MXFP4>, .b = format_id<MXFP4>, .c = float32_id, .m = 1, .n = 1, .k = 32});
  EXPECT_EQ(data.workspace(0), nullptr);
  void* const first = data.workspace(100);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(data.workspace(50), first);
  EXPECT_NE(data.workspace(1000), nullptr);
  EXPECT_THROW(
      SampleData(
          {.a = format_id<MXFP4>, .b = format_id<MXFP4>, .c = float32_id, .m = 2147483647, .n = 1, .k = 2147483647}),
      std::bad_alloc);
}

}  // namespace
}  // namespace microscale::tools
