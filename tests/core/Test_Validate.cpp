#include "TestData.hpp"
#include <Microscale_ExpertRouting.hpp>
#include <Microscale_GroupedQuantize.hpp>
#include <Microscale_Validate.hpp>

#include <cmath>
#include <stdexcept>

namespace {

using namespace microscale;
using namespace microscale::Test;
using Ints = std::vector<std::int32_t>;

template <class Exec>
class Validate : public testing::Test {};
TYPED_TEST_SUITE(Validate, Spaces);

template <class Format>
BlockScaledMatrix<Format, Space> ones(std::int64_t rows, std::int64_t cols, ScaleLayout layout) {
  BlockScaledMatrix<Format, Space> matrix("ones", rows, cols, layout);
  poison(matrix, 0x7f);
  const std::vector<float> values(static_cast<std::size_t>(rows * cols), 1.0f);
  quantize(typename Space::execution_space(), view_of<float, Kokkos::LayoutRight>(values, rows, cols), matrix);
  Kokkos::fence();
  return matrix;
}

// B79: statistics are over real blocks, not over the padded buffer.
TYPED_TEST(Validate, what_the_library_writes_is_ok_and_padding_is_not_counted) {
  const TypeParam exec;
  for (const ScaleLayout layout : all_layouts) {
    const auto nvfp4 = validate(exec, ones<NVFP4>(17, 512, layout));
    EXPECT_TRUE(nvfp4.ok()) << nvfp4.to_string();
    EXPECT_EQ(nvfp4.min_scale, 0x7e);
    EXPECT_EQ(nvfp4.max_scale, 0x7e);
    EXPECT_EQ(nvfp4.tensor_scale.encode, 2688.0f);
    const auto mxfp4 = validate(exec, ones<MXFP4>(17, 510, layout));
    EXPECT_TRUE(mxfp4.ok()) << mxfp4.to_string();
    EXPECT_EQ(mxfp4.min_scale, 125);
    EXPECT_EQ(mxfp4.max_scale, 125);
    EXPECT_EQ(mxfp4.to_string(), "ok; scale bytes 125 to 125");
    EXPECT_TRUE(validate(ones<MXFP6_E2M3>(9, 35, layout)).ok());
    EXPECT_TRUE(validate(exec, ones<MXFP6_E3M2_Bytes>(9, 35, layout)).ok());
    EXPECT_TRUE(validate(exec, ones<MXFP8_E5M2>(129, 33, layout)).ok());
  }
}

TYPED_TEST(Validate, empty_matrices_are_ok) {
  const TypeParam exec;
  for (const auto& [rows, cols] : {std::pair{0, 0}, std::pair{0, 9}, std::pair{9, 0}}) {
    const auto report = validate(exec, BlockScaledMatrix<NVFP4, Space>("m", rows, cols, ScaleLayout::tcgen));
    EXPECT_EQ(report.to_string(), "ok");
    EXPECT_EQ(report.min_scale, -1);
    EXPECT_EQ(report.max_scale, -1);
  }
}

TYPED_TEST(Validate, counts_nan_scales) {
  const TypeParam exec;
  const auto e8m0 = ones<MXFP4>(5, 100, ScaleLayout::cdna4);
  e8m0.handle().scale(2, 3) = 0xff;
  e8m0.handle().scale(4, 0) = 0xff;
  e8m0.handle().scale(1, 1) = 0x7f;  // 1.0
  const auto report = validate(exec, e8m0);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.nan_scales, 2);
  EXPECT_EQ(report.min_scale, 125);
  EXPECT_EQ(report.max_scale, 127);
  EXPECT_EQ(report.to_string(), "2 block(s) with a NaN scale; scale bytes 125 to 127");

  const auto ue4m3 = ones<NVFP4>(5, 100, ScaleLayout::tcgen);
  ue4m3.handle().scale(0, 6) = 0x7f;
  ue4m3.handle().scale(1, 0) = 0xff;  // NaN with bit 7
  ue4m3.handle().scale(2, 0) = 0x81;
  const auto other = validate(exec, ue4m3);
  EXPECT_FALSE(other.ok());
  EXPECT_EQ(other.nan_scales, 2);
  EXPECT_EQ(other.signed_scales, 2);
  EXPECT_EQ(other.min_scale, 1);
  EXPECT_EQ(other.max_scale, 0x7e);
}

TYPED_TEST(Validate, finds_tensor_scales_that_came_from_the_device) {
  const TypeParam exec;
  const std::vector<float> values(64, 1.0f);
  const auto source = view_of<float, Kokkos::LayoutRight>(values, 2, 32);
  const BlockScaledMatrix<NVFP4, Space> matrix("m", 2, 32);
  const Kokkos::View<float, Space> scale("scale");
  for (const float bad : {0.0f, -2.0f, NAN, INFINITY}) {
    scale() = bad;
    quantize(exec, source, matrix, {.tensor_scale = TensorScale::decode(scale)});
    const auto report = validate(exec, matrix);
    EXPECT_FALSE(report.tensor_scale_valid) << bad;
    EXPECT_FALSE(report.ok()) << bad;
    EXPECT_EQ(report.nan_scales, 4) << bad;
    EXPECT_EQ(report.to_string().rfind("the tensor scale (decode ", 0), 0u) << report.to_string();
  }
  scale() = 0.5f;
  quantize(exec, source, matrix, {.tensor_scale = TensorScale::decode(scale)});
  EXPECT_TRUE(validate(exec, matrix).ok());
  matrix.tensor_scale()() = {1.0f, 0.0f};  // the other half
  EXPECT_FALSE(validate(exec, matrix).tensor_scale_valid);
}

TYPED_TEST(Validate, finds_nonzero_padding_wherever_it_is) {
  const TypeParam exec;
  for (const ScaleLayout layout : all_layouts) {
    const auto matrix = ones<MXFP4>(17, 160, layout);  // 5 block columns
    const ScaleMap map = matrix.scale_map();
    std::int64_t padding = 0;
    for (std::int64_t offset = 0; offset < map.bytes(); ++offset) {
      const ScalePosition p = map.position(offset);
      if (p.row < 17 && p.col < 5) continue;
      ++padding;
      std::uint8_t& byte = matrix.scales().data()[offset];
      byte = 0xff;  // not a NaN block
      const auto report = validate(exec, matrix);
      ASSERT_EQ(report.padding_scales, 1) << name(layout) << " " << offset;
      ASSERT_EQ(report.nan_scales, 0);
      ASSERT_EQ(report.max_scale, 125);
      ASSERT_FALSE(report.ok());
      byte = 0;
      if (padding > 40) break;
    }
    EXPECT_TRUE(validate(exec, matrix).ok());
  }
}

TYPED_TEST(Validate, finds_bits_outside_of_codes) {
  const TypeParam exec;
  const auto fp4 = ones<MXFP4>(3, 35, ScaleLayout::linear);  // 17 and a half bytes
  fp4.data()(1, 17) |= 0x10;
  EXPECT_EQ(validate(exec, fp4).stray_bytes, 1);
  EXPECT_EQ(validate(exec, fp4).to_string(),
            "1 byte(s) of codes with bits outside of any code; scale bytes 125 to 125");
  fp4.data()(1, 17) &= 0x0f;
  fp4.data()(1, 16) = 0xff;  // two codes
  EXPECT_TRUE(validate(exec, fp4).ok());

  const auto fp6 = ones<MXFP6_E2M3>(2, 33, ScaleLayout::linear);  // 198 bits: 6 of the last byte
  fp6.data()(0, 24) |= 0x40;
  EXPECT_EQ(validate(exec, fp6).stray_bytes, 1);
  fp6.data()(0, 24) = 0x3f;
  EXPECT_TRUE(validate(exec, fp6).ok());

  const auto bytes = ones<MXFP6_E2M3_Bytes>(2, 33, ScaleLayout::linear);
  bytes.data()(0, 3) |= 0x40;
  bytes.data()(1, 32) |= 0x80;
  EXPECT_EQ(validate(exec, bytes).stray_bytes, 2);
}

TYPED_TEST(Validate, counts_elements_that_are_no_numbers) {
  const TypeParam exec;
  const auto e4m3 = ones<MXFP8_E4M3>(3, 40, ScaleLayout::linear);
  e4m3.data()(0, 39) = 0x7f;
  e4m3.data()(2, 0) = 0xff;
  e4m3.data()(2, 1) = 0x7e;
  EXPECT_EQ(validate(exec, e4m3).nan_codes, 2);
  EXPECT_EQ(validate(exec, e4m3).inf_codes, 0);
  EXPECT_FALSE(validate(exec, e4m3).ok());
  const auto e5m2 = ones<MXFP8_E5M2>(3, 40, ScaleLayout::linear);
  e5m2.data()(0, 0) = 0x7c;
  e5m2.data()(0, 1) = 0xfc;
  e5m2.data()(0, 2) = 0x7d;
  EXPECT_EQ(validate(exec, e5m2).inf_codes, 2);
  EXPECT_EQ(validate(exec, e5m2).nan_codes, 1);
  EXPECT_EQ(validate(exec, e5m2).to_string().rfind("1 NaN element(s); 2 infinite element(s); scale bytes ", 0), 0u);
}

Groups<Space> groups_of(const Ints& row_offsets, const Ints& expert_ids, const Ints& a_scale_offsets) {
  const auto copy = [](const Ints& values) {
    Kokkos::View<std::int32_t*, Space> view("array", values.size());
    std::copy(values.begin(), values.end(), view.data());
    return view;
  };
  return {copy(row_offsets), copy(expert_ids), copy(a_scale_offsets), static_cast<std::int64_t>(expert_ids.size())};
}

TYPED_TEST(Validate, grouped_scales_by_their_groups) {
  const TypeParam exec;
  const auto groups = groups_of({0, 100, 300, 350}, {0, 1, 2}, {0, 1, 1});
  const auto matrix = BlockScaledMatrix<MXFP4, Space>::grouped("m", 350, 70, 3, ScaleLayout::tcgen);
  poison(matrix, 0xff);
  const std::vector<float> values(350 * 70, 1.0f);
  grouped_quantize(exec, view_of<float, Kokkos::LayoutRight>(values, 350, 70), matrix, groups);
  const auto report = validate(exec, matrix, groups);
  EXPECT_TRUE(report.ok()) << report.to_string();
  EXPECT_EQ(report.min_scale, 125);
  EXPECT_EQ(report.max_scale, 125);
  // Row 99 is real, row 100 of the first slot's tile is padding; so is the last, spare tile.
  matrix.handle().scale(99, 2) = 0xff;
  matrix.handle().scale(100, 0) = 1;
  matrix.handle().scale(5 * 128 + 127, 3) = 1;
  const auto spoilt = validate(exec, matrix, groups);
  EXPECT_EQ(spoilt.nan_scales, 1);
  EXPECT_EQ(spoilt.padding_scales, 2);
  try {
    validate(exec, matrix);
    FAIL() << "nothing thrown";
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(),
                 "microscale::validate: matrix has grouped scales; expected the groups beside it: validate(exec, "
                 "matrix, groups)");
  }
  const auto linear = ones<MXFP4>(350, 70, ScaleLayout::linear);
  EXPECT_TRUE(validate(exec, linear, groups).ok());
}

TYPED_TEST(Validate, groups) {
  const TypeParam exec;
  const auto problems = [&](const Ints& offsets, const Ints& ids) {
    return validate(exec, groups_of(offsets, ids, {}), 20, 4).to_string();
  };
  EXPECT_EQ(problems({0, 8, 8, 20}, {3, -1, 0}), "ok");
  EXPECT_EQ(problems({2, 8, 12, 15}, {-1, -1, -1}), "ok");
  EXPECT_EQ(problems({-1, 8, 12, 20}, {0, 1, 2}), "row_offsets(0) is -1; expected 0 or more");
  EXPECT_EQ(problems({0, 12, 8, 20}, {0, 1, 2}), "row_offsets(2) is 8; expected at least 12, the one before");
  EXPECT_EQ(problems({0, 8, 12, 21}, {0, 1, 2}), "row_offsets(3) is 21; expected at most 20, the rows");
  EXPECT_EQ(problems({0, 8, 12, 20}, {0, 4, -2}),
            "expert_ids(1) is 4; expected -1, or 0 to 3; expert_ids(2) is -2; expected -1, or 0 to 3");
  EXPECT_EQ(problems({0, 8, 12, 20}, {0, 1, 0}), "expert_ids(2) is 0; expected an id that no other slot has");
  const Groups<Space> none;
  EXPECT_EQ(validate(exec, none, 20, 4).to_string(), "ok");
}

TYPED_TEST(Validate, scale_offsets_of_groups) {
  const TypeParam exec;
  const auto problems = [&](const Ints& offsets, const Ints& scale_offsets, const auto& matrix) {
    return validate(exec, groups_of(offsets, {0, 1, 2}, scale_offsets), matrix, 3).to_string();
  };
  const auto tcgen = BlockScaledMatrix<MXFP4, Space>::grouped("m", 350, 32, 3, ScaleLayout::tcgen);
  EXPECT_EQ(problems({0, 100, 300, 350}, {0, 1, 1}, tcgen), "ok");
  EXPECT_EQ(problems({0, 100, 100, 350}, {0, 99, 1}, tcgen), "ok");  // an empty slot has no tiles
  EXPECT_EQ(problems({0, 100, 300, 350}, {0, 1, 3}, tcgen),
            "a_scale_offsets(2) is 3; expected 1, as its scales begin at row of tiles 3");
  const BlockScaledMatrix<MXFP4, Space> linear("m", 350, 32);
  EXPECT_EQ(problems({0, 100, 300, 350}, {9, 9, 9}, linear), "ok");
  const auto small = BlockScaledMatrix<MXFP4, Space>::wrap(
      Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, Space>("d", 350, 16),
      Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, Space>("s", 3, 512), {}, 350, 32, ScaleLayout::tcgen, true);
  EXPECT_EQ(problems({0, 100, 300, 350}, {0, 1, 1}, small), "the scale buffer has 3 rows of tiles; expected 4");
}

TYPED_TEST(Validate, groups_of_a_routing_are_ok) {
  const TypeParam exec;
  Kokkos::View<std::int32_t**, Kokkos::LayoutRight, Space> ids("ids", 400, 3);
  Random random(1);
  for (std::size_t i = 0; i < ids.size(); ++i) ids.data()[i] = static_cast<std::int32_t>(random.below(12)) - 1;
  const auto routing = build_expert_offsets(exec, ids, 10);
  const auto matrix =
      BlockScaledMatrix<NVFP4, Space>::grouped("m", routing.rows(), 16, routing.experts(), routing.scale_layout());
  EXPECT_EQ(validate(exec, routing.groups(), matrix, routing.experts()).to_string(), "ok");
  EXPECT_EQ(validate(exec, routing.groups(), routing.rows(), routing.experts()).to_string(), "ok");
}

TYPED_TEST(Validate, an_empty_matrix_without_memory_and_a_huge_number_of_experts) {
  const TypeParam exec;
  EXPECT_EQ(validate(exec, BlockScaledMatrix<NVFP4, Space>()).to_string(), "ok");
  const Kokkos::View<std::int32_t**, Kokkos::LayoutRight, Space> ids("ids", 4, 1);
  const auto routing = build_expert_offsets(exec, ids, 2);
  EXPECT_EQ(validate(exec, routing.groups(), routing.rows(), std::int64_t{1} << 50).to_string(), "ok");
}

}  // namespace
