#include <Microscale_Roofline.hpp>
#include <Microscale_Shape.hpp>
#include <Test_Dispatch.hpp>

// Bytes, operations and times of a problem, all worked by hand.
namespace microscale::Test {
namespace {

const Device& device(const std::string& name) {
  for (const Device& d : devices())
    if (name == d.name) return d;
  throw std::logic_error(name);
}

Shape matmul(FormatId a, FormatId b, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.operation = Operation::matmul, .a = a, .b = b, .c = bfloat16_id, .m = m, .n = n, .k = k};
}

Shape grouped(std::int64_t m, std::int64_t experts, Hints hints) {
  Shape shape = matmul(format_id<NVFP4>, format_id<NVFP4>, m, 4096, 7168);
  shape.operation = Operation::grouped_matmul;
  shape.groups = experts;
  shape.hints = hints;
  return shape;
}

TEST(Work, CountsCodesScalesAndPlainValuesOnce) {
  const Work work = work_of(shaped_problem(matmul(format_id<MXFP4>, format_id<MXFP4>, 128, 256, 4096)));
  EXPECT_EQ(work.flops, 268435456);             // 2 * 128 * 256 * 4096
  EXPECT_EQ(work.bytes_a, 128 * (2048 + 128));  // half a byte an element, and one for 32
  EXPECT_EQ(work.bytes_b, 256 * (2048 + 128));
  EXPECT_EQ(work.bytes_c, 128 * 256 * 2);
  EXPECT_EQ(work.bytes(), 901120);
  EXPECT_DOUBLE_EQ(work.intensity(), 268435456.0 / 901120);
}

TEST(Work, CountsTailsAndThePaddingOfTiles) {
  Shape shape = matmul(format_id<MXFP6_E2M3>, bfloat16_id, 3, 5, 33);
  // 33 codes of 6 bits are 198 bits: 25 bytes, and two scales.
  EXPECT_EQ(work_of(shaped_problem(shape)).bytes_a, 3 * (25 + 2));
  EXPECT_EQ(work_of(shaped_problem(shape)).bytes_b, 5 * 33 * 2);
  shape = matmul(format_id<NVFP4>, format_id<NVFP4>, 1, 129, 48);
  shape.scale_layout = ScaleLayout::tcgen;  // 128 x 4 tiles: 3 scales a row become 4, one row 128
  EXPECT_EQ(work_of(shaped_problem(shape)).bytes_a, 24 + 128 * 4);
  EXPECT_EQ(work_of(shaped_problem(shape)).bytes_b, 129 * 24 + 256 * 4);
}

TEST(Work, ReadsCOnlyUnderBeta) {
  Problem p = shaped_problem(matmul(format_id<MXFP4>, format_id<MXFP4>, 16, 32, 64));
  p.epilogue.beta = 0.5f;
  EXPECT_EQ(work_of(p).bytes_c, 2 * 16 * 32 * 2);
}

TEST(Work, BatchesAreMultiples) {
  Problem p = shaped_problem(matmul(format_id<MXFP4>, format_id<MXFP4>, 16, 32, 64));
  p.operation = Operation::batched_matmul;
  p.a.batch = p.c.batch = 5;  // and one b for all
  const Work work = work_of(p);
  EXPECT_EQ(work.flops, 5 * 2 * 16 * 32 * 64);
  EXPECT_EQ(work.bytes_a, 5 * 16 * (32 + 2));
  EXPECT_EQ(work.bytes_b, 32 * (32 + 2));
  EXPECT_EQ(work.bytes_c, 5 * 16 * 32 * 2);
}

TEST(Work, GroupsReadTheExpertsInUse) {
  constexpr double expert = 4096 * (3584 + 448);  // bytes of one expert's weights
  const Work all = work_of(shaped_problem(grouped(256, 32, {256, 32})));
  EXPECT_EQ(all.flops, 15032385536);  // 2 * 256 * 4096 * 7168
  EXPECT_EQ(all.bytes_a, 256 * (3584 + 448));
  EXPECT_EQ(all.bytes_b, 32 * expert);
  EXPECT_EQ(all.bytes_c, 256 * 4096 * 2);
  EXPECT_EQ(work_of(shaped_problem(grouped(1000, 32, {256, 8}))).bytes_b, 8 * expert);
  EXPECT_EQ(work_of(shaped_problem(grouped(1000, 32, {256, 8}))).bytes_c, 256 * 4096 * 2);
  EXPECT_EQ(work_of(shaped_problem(grouped(1000, 32, {}))).bytes_b, 32 * expert);
  EXPECT_EQ(work_of(shaped_problem(grouped(1000, 32, {}))).flops, 2.0 * 1000 * 4096 * 7168);
  EXPECT_EQ(work_of(shaped_problem(grouped(4, 32, {4, 32}))).bytes_b, 4 * expert);      // no more than rows
  EXPECT_EQ(work_of(shaped_problem(grouped(1000, 8, {256, 32}))).bytes_b, 8 * expert);  // nor than there are
}

TEST(Work, QuantizeMultipliesNothing) {
  const Work work = work_of(
      shaped_problem({.operation = Operation::quantize, .a = float32_id, .c = format_id<NVFP4>, .m = 100, .k = 200}));
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.bytes_a, 80000);
  EXPECT_EQ(work.bytes_b, 0);
  EXPECT_EQ(work.bytes_c, 100 * (100 + 13));
  EXPECT_EQ(work.intensity(), 0);
}

TEST(Work, NothingOverflows) {
  constexpr std::int64_t huge = 2147483647;
  const Work work = work_of(shaped_problem(matmul(format_id<MXFP8_E4M3>, format_id<MXFP8_E4M3>, huge, huge, huge)));
  EXPECT_DOUBLE_EQ(work.flops, 2 * std::pow(2147483647.0, 3));
  EXPECT_GT(work.bytes(), 0);
}

TEST(Roofline, IsTheLongerOfTwoTimes) {
  const Problem p = shaped_problem(matmul(format_id<MXFP4>, format_id<MXFP4>, 128, 256, 4096));
  const Roofline b200 = roofline(p, device("B200"));
  EXPECT_EQ(b200.precision, Precision::fp4);
  EXPECT_DOUBLE_EQ(b200.memory_seconds, 901120 / 8.0e12);
  EXPECT_DOUBLE_EQ(b200.compute_seconds, 268435456 / 9.0e15);
  EXPECT_TRUE(b200.memory_bound());
  EXPECT_EQ(b200.seconds(), b200.memory_seconds);
  const Roofline large =
      roofline(shaped_problem(matmul(format_id<MXFP4>, format_id<MXFP4>, 8192, 8192, 8192)), device("B200"));
  EXPECT_FALSE(large.memory_bound());
  EXPECT_DOUBLE_EQ(large.seconds(), 2 * std::pow(8192.0, 3) / 9.0e15);
}

TEST(Roofline, DevicesMultiplyInWhatTheyHave) {
  const auto on = [](const char* name, FormatId a, FormatId b) { return precision_on(device(name), a, b); };
  const FormatId nvfp4 = format_id<NVFP4>, mxfp4 = format_id<MXFP4>, mxfp6 = format_id<MXFP6_E3M2>,
                 mxfp8 = format_id<MXFP8_E5M2>;
  EXPECT_EQ(on("B200", nvfp4, nvfp4), Precision::fp4_block16);
  EXPECT_EQ(on("B200", mxfp4, mxfp4), Precision::fp4);
  EXPECT_EQ(on("B200", mxfp8, mxfp4), Precision::fp8);
  EXPECT_EQ(on("B200", mxfp8, nvfp4), Precision::bf16);  // UE4M3 scales go with fp4 only
  EXPECT_EQ(on("B200", float16_id, mxfp4), Precision::bf16);
  EXPECT_EQ(on("B200", float32_id, mxfp4), Precision::fp32);
  EXPECT_EQ(on("MI355X", mxfp6, mxfp4), Precision::fp6);
  EXPECT_EQ(on("MI355X", mxfp4, mxfp8), Precision::fp8);
  EXPECT_EQ(on("MI355X", nvfp4, nvfp4), Precision::bf16);  // scaled instructions have blocks of 32 only
  EXPECT_EQ(on("H200", mxfp8, mxfp8), Precision::bf16);
  EXPECT_EQ(on("H200", bfloat16_id, mxfp4), Precision::bf16);
  const Device scalar{"scalar", "", 1, 1e9, {0, 0, 0, 0, 0, 1e9}, ""};
  EXPECT_EQ(precision_on(scalar, mxfp4, mxfp4), Precision::fp32);
  for (const Device& d : devices()) {
    EXPECT_GT(d.flops_per_second.back(), 0) << d.name;
    EXPECT_GT(d.units, 0) << d.name;
    EXPECT_STRNE(d.source, "") << d.name;
  }
}

TEST(Waves, CountTilesOfC) {
  Device ten = device("B200");
  ten.units = 10;
  const Problem p = shaped_problem(matmul(format_id<MXFP4>, format_id<MXFP4>, 300, 500, 64));
  const auto waves = [&](const Problem& problem, const Config& config) {
    const std::optional<Waves> w = predicted_waves(problem, config, ten);
    return w ? std::pair(w->tiles, w->waves) : std::pair(-1.0, -1.0);
  };
  EXPECT_EQ(waves(p, {.tile_m = 128, .tile_n = 128}), std::pair(12.0, 2.0));  // 3 x 4
  EXPECT_EQ(waves(p, {.tile_m = 128, .tile_n = 128, .split_k = 2}), std::pair(24.0, 3.0));
  EXPECT_EQ(waves(p, {.tile_m = 300, .tile_n = 50}), std::pair(10.0, 1.0));
  EXPECT_EQ(waves(p, {.tile_m = 128}), std::pair(-1.0, -1.0));
  // Swapped, tiles are 128 columns of C by 64 rows: 4 x 5.
  EXPECT_EQ(waves(p, {.tile_m = 128, .tile_n = 64, .swap_ab = true}), std::pair(20.0, 2.0));
  // Pairs of units share a tile: five at a time. Or each unit has two: twenty.
  EXPECT_EQ(waves(p, {.tile_m = 128, .tile_n = 128, .cta_group = 2}), std::pair(12.0, 3.0));
  EXPECT_EQ(waves(p, {.tile_m = 128, .tile_n = 128, .split_k = 2, .groups_per_unit = 2}), std::pair(24.0, 2.0));
  // 8 experts of 100 / 8 = 13 rows at most, 4096 / 128 = 32 tiles each.
  EXPECT_EQ(waves(shaped_problem(grouped(100, 8, {})), {.tile_m = 16, .tile_n = 128}), std::pair(256.0, 26.0));
}

TEST(Shape, IsAProblemOfTheLibrary) {
  Shape shape = grouped(100, 8, {50, 4});
  shape.c = format_id<NVFP4>;
  shape.scale_layout = ScaleLayout::tcgen;
  const Problem p = shaped_problem(shape);
  EXPECT_EQ(p.operation, Operation::grouped_matmul);
  EXPECT_EQ(p.a.row_stride, 3584);
  EXPECT_EQ(p.a.scale_pitch, 448 * 128);
  EXPECT_TRUE(p.a.grouped_scales && p.c.grouped_scales && p.groups.a_scale_offsets);
  EXPECT_FALSE(p.b.grouped_scales);
  EXPECT_EQ(p.b.batch, 8);
  EXPECT_EQ(p.b.batch_stride, 4096 * 3584);
  EXPECT_EQ(p.b.scale_batch_stride, 4096 * 448);
  EXPECT_EQ(p.quantize.source, TensorScaleSource::given);
  EXPECT_EQ(p.groups.slots, 8);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p.b.data), 256u);
  EXPECT_TRUE(p.b.tensor_scale != nullptr);
}

}  // namespace
}  // namespace microscale::Test
