#include <Test_Dispatch.hpp>

namespace microscale::Test {
namespace {

TEST(Names, FormatsHaveWellKnownAndStructuralNames) {
  EXPECT_EQ(to_string(format_id<NVFP4>), "nvfp4");
  EXPECT_EQ(to_string(format_id<MXFP6_E3M2_Bytes>), "mxfp6_e3m2_bytes");
  EXPECT_EQ(structural_name(format_id<NVFP4>), "e2m1/16/ue4m3+tensor");
  EXPECT_EQ(structural_name(format_id<MXFP8_E4M3>), "e4m3/32/e8m0");
  EXPECT_EQ(structural_name(format_id<MXFP8_E5M2>), "e5m2/32/e8m0");
  EXPECT_EQ(structural_name(format_id<MXFP6_E2M3_Bytes>), "e2m3/32/e8m0+bytes");
  EXPECT_EQ(to_string(float32_id), "float");
  EXPECT_EQ(to_string(float16_id), "half");
  EXPECT_EQ(to_string(bfloat16_id), "bf16");
}

TEST(Names, UnknownFormatsAreDescribed) {
  FormatId wide = format_id<MXFP4>;
  wide.block_size = 64;
  EXPECT_EQ(to_string(wide), "e2m1/64/e8m0");
  FormatId odd = format_id<MXFP8_E4M3>;
  odd.element.specials = Specials::ieee;
  EXPECT_EQ(to_string(odd), "e4m3(ieee)/32/e8m0");
}

TEST(Names, ConfigurationsListWhatIsSet) {
  EXPECT_EQ(to_string(Config{}), "automatic");
  EXPECT_EQ(to_string(Config{.tile_m = 64, .stages = 4, .swap_ab = true}), "tile_m 64, stages 4, swap_ab");
}

TEST(Names, AProblemIsOneLine) {
  Problem p = matmul_problem(3, 5, 64);
  p.concurrency = 2;
  EXPECT_EQ(to_string(p),
            "matmul on host (2 threads): m 3, n 5, k 64; a 3 x 64 mxfp4, linear scales; b 5 x 64 mxfp4, linear scales; "
            "c 3 x 5 float");
  const float bias = 0.0f;
  p.epilogue.alpha = 0.5f;
  p.epilogue.bias = {.data = &bias, .type = float32_id.element};
  p.epilogue.gate = Gate::clamped_swiglu;
  p.user_functor = true;
  EXPECT_NE(
      to_string(p).find("; epilogue alpha, bias float, gate clamped_swiglu over interleaved columns, limit 7, slope "
                        "1.702; a user's functor follows"),
      std::string::npos)
      << to_string(p);
}

TEST(Names, EveryOperationHasOne) {
  std::set<std::string> names;
  for (int i = 0; i < operation_count; ++i) names.insert(to_string(static_cast<Operation>(i)));
  EXPECT_EQ(names.size(), 8u);
  EXPECT_EQ(names.count("unknown"), 0u);
}

}  // namespace
}  // namespace microscale::Test
