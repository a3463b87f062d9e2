#include <gtest/gtest.h>
#include <Microscale_BlockFormat.hpp>
#include <Microscale_Dispatch.hpp>
#include <Microscale_Names.hpp>
#include <Microscale_Roofline.hpp>
#include <Microscale_Shape.hpp>
#include <Microscale_Target.hpp>

#include <cstdint>
#include <string>
#include <vector>

// What the targets for GPUs say of problems, on a machine that has none.
namespace microscale::Test {
namespace {

constexpr FormatId nvfp4 = format_id<NVFP4>, mxfp4 = format_id<MXFP4>, e4m3 = format_id<MXFP8_E4M3>,
                   e5m2 = format_id<MXFP8_E5M2>, fp6 = format_id<MXFP6_E2M3>, fp6_bytes = format_id<MXFP6_E2M3_Bytes>;

const Backend& sm90() { return Impl::sm90_target(nullptr); }
const Backend& sm100() { return Impl::sm100_target(nullptr); }
const Backend& cdna4() { return Impl::cdna4_target(nullptr); }

Problem matmul(FormatId a, FormatId b, ScaleLayout layout, std::int64_t m = 512, std::int64_t n = 4096,
               std::int64_t k = 4096, FormatId c = bfloat16_id) {
  return shaped_problem({.a = a, .b = b, .c = c, .m = m, .n = n, .k = k, .scale_layout = layout});
}

Problem grouped(FormatId format, ScaleLayout layout, std::int64_t m, std::int64_t experts, Hints hints,
                std::int64_t n = 4096, std::int64_t k = 7168) {
  return shaped_problem({.operation = Operation::grouped_matmul,
                         .a = format,
                         .b = format,
                         .c = bfloat16_id,
                         .m = m,
                         .n = n,
                         .k = k,
                         .groups = experts,
                         .hints = hints,
                         .scale_layout = layout});
}

std::string answer(const Backend& target, const Problem& p) {
  const Support support = target.supports(p);
  return support.supported ? "yes" : support.reason;
}

TEST(Targets, PairsOfFormats) {
  const FormatId formats[] = {nvfp4, mxfp4, e4m3, e5m2, fp6, fp6_bytes, bfloat16_id, float16_id, float32_id};
  // y: yes. Rows are a, columns b, in that order.
  const char* const on_sm100[] = {"y........", ".yyyy....", ".yyyy....", ".yyyy....", ".yyyy....",
                                  ".........", ".........", ".........", "........."};
  const char* const on_cdna4[] = {".........", ".yyyy....", ".yyyy....", ".yyyy....", ".yyyy....",
                                  ".........", ".........", ".........", "........."};
  const char* const on_sm90[] = {"yyyyy.y..", "yyyyy.y..", "yyyyy.y..", "yyyyy.y..", "yyyyy.y..",
                                 ".........", "yyyyy.y..", ".........", "........."};
  for (std::size_t i = 0; i < std::size(formats); ++i)
    for (std::size_t j = 0; j < std::size(formats); ++j) {
      const auto says = [&](const Backend& target, ScaleLayout layout) {
        return target.supports(matmul(formats[i], formats[j], layout)).supported ? 'y' : '.';
      };
      const std::string pair = to_string(formats[i]) + " x " + to_string(formats[j]);
      EXPECT_EQ(says(sm100(), ScaleLayout::tcgen), on_sm100[i][j]) << pair;
      EXPECT_EQ(says(cdna4(), ScaleLayout::cdna4), on_cdna4[i][j]) << pair;
      EXPECT_EQ(says(sm90(), ScaleLayout::linear), on_sm90[i][j]) << pair;
    }
}

TEST(Targets, ReasonsAreInWords) {
  EXPECT_EQ(answer(cdna4(), matmul(nvfp4, nvfp4, ScaleLayout::cdna4)),
            "scaled MFMA has E8M0 scales of 32 elements; NVFP4 has UE4M3 ones of 16");
  EXPECT_EQ(answer(sm100(), matmul(nvfp4, mxfp4, ScaleLayout::tcgen)),
            "no instruction multiplies blocks of UE4M3 scales by blocks of E8M0 scales");
  EXPECT_EQ(answer(sm100(), matmul(bfloat16_id, mxfp4, ScaleLayout::tcgen)),
            "tensor cores scale blocks of both operands; quantize the plain one");
  EXPECT_EQ(answer(sm100(), matmul(nvfp4, nvfp4, ScaleLayout::linear)),
            "scales are read in layout tcgen only (interleave_scales makes it)");
  EXPECT_EQ(answer(sm90(), matmul(float32_id, mxfp4, ScaleLayout::linear)),
            "float and half do not fit bf16, in which Hopper multiplies");
  EXPECT_EQ(answer(cdna4(), matmul(mxfp4, mxfp4, ScaleLayout::cdna4, 512, 4096, 4097)), "K is a multiple of 128");
  EXPECT_EQ(answer(cdna4(), matmul(mxfp4, mxfp4, ScaleLayout::tcgen)),
            "scales are read in layouts cdna4 and linear only");

  // 16 bytes are 32 elements of FP4.
  EXPECT_EQ(answer(sm100(), matmul(nvfp4, nvfp4, ScaleLayout::tcgen, 512, 4096, 4096 + 32)), "yes");
  EXPECT_EQ(answer(sm100(), matmul(nvfp4, nvfp4, ScaleLayout::tcgen, 512, 4096, 4096 + 16)),
            "rows of operands are aligned to 16 bytes");
  EXPECT_EQ(answer(sm100(), matmul(e4m3, mxfp4, ScaleLayout::tcgen, 512, 4096, 4096 + 32)),
            "TMA widens FP4 and FP6 to bytes where K is a multiple of 128");
  EXPECT_EQ(answer(sm100(), matmul(e4m3, e4m3, ScaleLayout::tcgen, 512, 4096, 4096 + 32)), "yes");

  Problem p = matmul(mxfp4, mxfp4, ScaleLayout::tcgen);
  p.a.data = reinterpret_cast<void*>(std::uintptr_t{8});
  EXPECT_EQ(answer(sm100(), p), "rows of operands are aligned to 16 bytes");
  p = matmul(mxfp4, mxfp4, ScaleLayout::tcgen);
  p.c.col_stride = 2;
  EXPECT_EQ(answer(sm100(), p), "rows of c are not contiguous");
  p = matmul(mxfp4, mxfp4, ScaleLayout::tcgen);
  p.epilogue.gate = Gate::silu;
  EXPECT_EQ(answer(sm100(), p), "yes");
  p.epilogue.gate_columns = GateColumns::halved;
  EXPECT_NE(answer(sm100(), p), "yes");
  p = matmul(nvfp4, nvfp4, ScaleLayout::tcgen, 512, 4096, 4096, nvfp4);
  EXPECT_EQ(answer(sm100(), p), "yes");  // its tensor scale is given
  p.quantize.source = TensorScaleSource::dynamic;
  EXPECT_EQ(answer(sm100(), p), "a dynamic tensor scale of c is not known before all of c is");
}

TEST(Targets, Conversions) {
  const auto quantize = [](FormatId from, FormatId to, ScaleLayout layout) {
    return shaped_problem(
        {.operation = Operation::quantize, .a = from, .c = to, .m = 64, .k = 128, .scale_layout = layout});
  };
  EXPECT_EQ(answer(sm100(), quantize(float32_id, nvfp4, ScaleLayout::tcgen)), "yes");
  EXPECT_EQ(answer(sm100(), quantize(bfloat16_id, mxfp4, ScaleLayout::linear)), "yes");
  EXPECT_EQ(answer(sm100(), quantize(bfloat16_id, mxfp4, ScaleLayout::cdna4)), "no kernel for this scale layout");
  EXPECT_EQ(answer(cdna4(), quantize(bfloat16_id, mxfp4, ScaleLayout::cdna4)), "yes");
  EXPECT_EQ(answer(cdna4(), quantize(bfloat16_id, nvfp4, ScaleLayout::linear)), "no kernel for this block format");
  EXPECT_EQ(answer(sm90(), quantize(float16_id, nvfp4, ScaleLayout::tcgen)), "yes");
  Problem p = quantize(float32_id, nvfp4, ScaleLayout::tcgen);
  p.operation = Operation::requantize;
  for (const Backend* target : {&sm90(), &sm100(), &cdna4()}) {
    EXPECT_EQ(answer(*target, p), "no kernel does this operation");
    EXPECT_TRUE(target->config(quantize(float32_id, mxfp4, ScaleLayout::linear)) == Config{});
  }
}

TEST(Targets, ConfigurationsAreThoseOfTheRules) {
  EXPECT_EQ(to_string(sm100().config(matmul(nvfp4, nvfp4, ScaleLayout::tcgen))),
            "tile_m 256, tile_n 128, tile_k 256, stages 7, cluster 2, split_k 1, cluster_n 1, cta_group 2, k_group 1, "
            "block_swizzle 1, scheduler_stages 1, accumulator_stages 2");
  const auto config = [](std::int64_t m, Hints hints, FormatId format = nvfp4) {
    return to_string(sm100().config(grouped(format, ScaleLayout::tcgen, m, 32, hints)));
  };
  const std::string decode =
      "tile_m 128, tile_n 8, tile_k 256, stages 6, cluster 1, split_k 1, swap_ab, cluster_n 1, cta_group 1, k_group 1, "
      "block_swizzle 8, scheduler_stages 2, accumulator_stages 2, small_n";
  EXPECT_EQ(config(100000, {256, 32}), decode);
  EXPECT_EQ(config(256, {}), decode);  // without hints: all rows, all slots
  EXPECT_EQ(config(100000, {257, 32}).substr(0, 34), "tile_m 256, tile_n 64, tile_k 256,");
  EXPECT_EQ(config(100000, {}).substr(0, 35), "tile_m 256, tile_n 128, tile_k 256,");
  EXPECT_EQ(config(100000, {256, 3}).substr(0, 35), "tile_m 256, tile_n 128, tile_k 256,");
  EXPECT_EQ(config(256, {}, e4m3).substr(0, 43), "tile_m 128, tile_n 8, tile_k 128, stages 6,");

  EXPECT_EQ(to_string(cdna4().config(matmul(mxfp4, mxfp4, ScaleLayout::cdna4, 16))),
            "tile_m 16, tile_n 128, tile_k 256, split_k 8, warp_m 16, warp_n 64");
  EXPECT_EQ(to_string(cdna4().config(grouped(mxfp4, ScaleLayout::cdna4, 5000, 32, {21, 32}))),
            "tile_m 16, tile_n 128, tile_k 512, split_k 1, warp_m 16, warp_n 32, groups_per_unit 2, persistent, "
            "streaming");
  EXPECT_EQ(to_string(sm90().config(matmul(mxfp4, mxfp4, ScaleLayout::linear, 16))).substr(0, 34),
            "tile_m 128, tile_n 16, tile_k 64, ");
}

TEST(Targets, PartialSumsNeedWorkspace) {
  const Problem p = matmul(mxfp4, mxfp4, ScaleLayout::cdna4, 16);
  EXPECT_EQ(cdna4().workspace_bytes(p, cdna4().config(p)), 8 * 16 * 4096 * 4);
  EXPECT_EQ(cdna4().workspace_bytes(p, {.split_k = 1}), 0);
  EXPECT_EQ(cdna4().workspace_bytes(p, {.split_k = 2}), 2 * 16 * 4096 * 4);
  const Problem wide = matmul(mxfp4, mxfp4, ScaleLayout::cdna4, 512);
  EXPECT_EQ(cdna4().workspace_bytes(wide, cdna4().config(wide)), 0);
}

TEST(Targets, TheCallersConfigurationMeansWhatItSays) {
  // Large prefill of 4096 x 7168: swapped, 128, a pair, 7 stages.
  const Problem p = grouped(nvfp4, ScaleLayout::tcgen, 100000, 32, {});
  const auto accepts = [&](const Config& config) {
    const Support support = sm100().accepts(p, config);
    return std::string(support.supported ? "yes" : support.reason);
  };
  EXPECT_EQ(accepts({}), "yes");
  EXPECT_EQ(accepts({.stages = 3}), "yes");
  EXPECT_EQ(accepts({.stages = -1}), "yes");
  EXPECT_EQ(accepts({.stages = 8}), "stages need more shared memory than 232448 bytes");
  EXPECT_EQ(accepts({.tile_n = 8, .stages = 10, .swap_ab = true, .cta_group = 1}), "yes");
  EXPECT_EQ(accepts({.tile_n = 8, .stages = 0, .swap_ab = true, .cta_group = 1}), "yes");
  EXPECT_EQ(accepts({.tile_n = 8, .stages = 11, .swap_ab = true, .cta_group = 1}),
            "stages need more shared memory than 232448 bytes");
  EXPECT_EQ(accepts({.tile_n = 128, .swap_ab = false, .cta_group = 1}), "yes");
  EXPECT_EQ(accepts({.tile_n = 128, .swap_ab = false, .cta_group = 2}), "grouped, cta_group 2 needs swap_ab");
  EXPECT_EQ(accepts({.tile_n = 8, .swap_ab = true, .cta_group = 2}), "no instruction of this kernel has this tile_n");
  EXPECT_EQ(accepts({.tile_n = 12, .swap_ab = true, .cta_group = 1}), "no instruction of this kernel has this tile_n");
  EXPECT_EQ(accepts({.cta_group = 3}), "cta_group is 1 or 2");
  EXPECT_EQ(accepts({.tile_m = 256, .tile_n = 64, .swap_ab = true}), "yes");
  EXPECT_EQ(accepts({.tile_k = 128}), "tile_k is 256");
  EXPECT_EQ(accepts({.split_k = 2}), "K is not split");
  EXPECT_EQ(accepts({.persistent = true}), "warps, residence and caching are not to be chosen");
  EXPECT_EQ(accepts({.tile_m = 2147483647, .cta_group = 2147483647}), "cta_group is 1 or 2");
}

TEST(Targets, CandidatesAreAcceptedAndAllDifferent) {
  const struct {
    const Backend& target;
    Problem problem;
  } cases[] = {{sm100(), matmul(nvfp4, nvfp4, ScaleLayout::tcgen)},
               {sm100(), grouped(mxfp4, ScaleLayout::tcgen, 256, 32, {})},
               {cdna4(), matmul(mxfp4, mxfp4, ScaleLayout::cdna4, 16)},
               {cdna4(), grouped(mxfp4, ScaleLayout::cdna4, 256, 32, {})},
               {sm90(), matmul(mxfp4, mxfp4, ScaleLayout::linear)}};
  for (const auto& [target, problem] : cases) {
    ASSERT_EQ(answer(target, problem), "yes");
    std::vector<Config> found(64);
    const std::int64_t count = target.candidates(problem, found.data(), 64);
    ASSERT_GT(count, 1);
    ASSERT_LE(count, 64);
    found.resize(static_cast<std::size_t>(count));
    EXPECT_TRUE(found[0] == target.config(problem));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Support support = target.accepts(problem, found[i]);
      EXPECT_TRUE(support.supported) << target.name() << ": " << to_string(found[i]) << ": " << support.reason;
      for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(found[i] == found[j]) << to_string(found[i]);
    }
  }
  // The former configuration of MX formats is one of them.
  std::vector<Config> found(64);
  const Problem p = grouped(mxfp4, ScaleLayout::tcgen, 256, 32, {});
  const std::int64_t count = sm100().candidates(p, found.data(), 64);
  EXPECT_EQ(to_string(found[static_cast<std::size_t>(count) - 1]).substr(0, 34), "tile_m 128, tile_n 128, tile_k 256");
  EXPECT_FALSE(found[static_cast<std::size_t>(count) - 1].swap_ab);
}

TEST(Targets, CostIsNeverBelowTheRoofline) {
  for (const std::int64_t m : {1, 16, 17, 64, 512, 4096})
    for (const std::int64_t n : {64, 4096, 16384}) {
      const Problem on_b200 = matmul(mxfp4, mxfp4, ScaleLayout::tcgen, m, n),
                    on_355 = matmul(mxfp4, mxfp4, ScaleLayout::cdna4, m, n);
      EXPECT_GT(sm100().cost(on_b200), roofline(on_b200, devices()[0]).seconds());
      EXPECT_GT(sm90().cost(on_b200), roofline(on_b200, devices()[1]).seconds());
      EXPECT_GT(cdna4().cost(on_355), roofline(on_355, devices()[2]).seconds());
    }
  for (const std::int64_t m : {1, 32, 1000, 4096, 100000}) {
    const Problem on_b200 = grouped(mxfp4, ScaleLayout::tcgen, m, 32, {}),
                  on_355 = grouped(mxfp4, ScaleLayout::cdna4, m, 32, {});
    EXPECT_GT(sm100().cost(on_b200), roofline(on_b200, devices()[0]).seconds());
    EXPECT_GT(cdna4().cost(on_355), roofline(on_355, devices()[2]).seconds());
  }
  // Nothing that an empty problem could trip over.
  for (const auto& [m, n, k] : {std::tuple{0, 64, 128}, {64, 0, 128}, {64, 64, 0}, {0, 0, 0}}) {
    EXPECT_GT(sm100().cost(matmul(mxfp4, mxfp4, ScaleLayout::tcgen, m, n, k)), 0);
    EXPECT_GT(cdna4().cost(matmul(mxfp4, mxfp4, ScaleLayout::cdna4, m, n, k)), 0);
    EXPECT_GT(sm90().cost(matmul(mxfp4, mxfp4, ScaleLayout::linear, m, n, k)), 0);
  }
}

TEST(Targets, AreExplainedWithoutTheirHardware) {
  Context context;
  Config given{.tile_n = 8, .swap_ab = true, .cta_group = 1};
  const Problem p = grouped(nvfp4, ScaleLayout::tcgen, 100000, 32, {100000, 32});
  Explanation why = context.explain(p, {.target = "sm100"});
  EXPECT_EQ(why.choice.error, "");
  EXPECT_EQ(why.choice.name, "sm100");
  EXPECT_EQ(why.choice.config.tile_n, 128);
  EXPECT_EQ(why.choice.config.stages, 7);
  why = context.explain(p, {.config = &given, .target = "sm100"});
  EXPECT_EQ(why.choice.error, "");
  EXPECT_EQ(why.choice.config.tile_n, 8);
  given.tile_n = 7;
  why = context.explain(p, {.config = &given, .target = "sm100"});
  EXPECT_NE(why.choice.error.find("no instruction of this kernel has this tile_n"), std::string::npos);
}

}  // namespace
}  // namespace microscale::Test
