#include <Test_Dispatch.hpp>

namespace microscale::Test {
namespace {

struct Explained {
  FakeBackend one{"one", 1e-9}, two{"two", 2e-9}, odd{"odd"};
  Context context;
  Problem problem = matmul_problem(1024, 512, 2048);

  Explained() {
    odd.rule = [](const Problem&) { return Support{false, "says \"no\" \\ and\nmore"}; };
    for (const Backend* b : {&one, &two, &odd}) context.add_backend(*b);
  }
};

TEST(Explanation, AsText) {
  Explained e;
  EXPECT_EQ(
      e.context.explain(e.problem).to_string(),
      "matmul on host (1 threads): m 1024, n 512, k 2048; a 1024 x 2048 mxfp4, linear scales; b 512 x 2048 mxfp4, "
      "linear scales; c 1024 x 512 float\n"
      "  backend    one\n"
      "  why        the cheapest that can do it, by its estimate of 1e-09 s\n"
      "  config     tile_m 16, stages 3\n"
      "  workspace  1024 bytes\n"
      "  candidates, in order of preference\n"
      "    absent     no: not part of this build: made up for a \"test\" with a \\\n"
      "    distant    no: not part of this build: too far\n"
      "    one        chosen, 1e-09 s\n"
      "    two        able, not chosen, 2e-09 s\n"
      "    odd        no: says \"no\" \\ and\nmore\n"
      "    reference  able, not chosen, 0.268 s\n");
}

TEST(Explanation, SaysWhoForcedAndWhatTheCallerConfigured) {
  Explained e;
  e.context.force("two");
  const Config config{.tile_m = 8};
  const std::string text = e.context.explain(e.problem, {.config = &config}).to_string();
  EXPECT_NE(text.find("  backend    two\n  why        forced by Context::force\n"
                      "  config     tile_m 8 (given by the caller)\n  workspace  512 bytes\n"),
            std::string::npos)
      << text;
  const std::string reference = e.context.explain(e.problem, {.backend = "reference", .config = &config}).to_string();
  EXPECT_NE(reference.find("the caller's configuration is ignored"), std::string::npos) << reference;
}

TEST(Explanation, AnErrorIsAPartOfTheAnswer) {
  Explained e;
  const Explanation refused = e.context.explain(e.problem, {.backend = "odd"});
  EXPECT_NE(refused.to_string().find("  error      microscale::matmul: backend odd was forced"), std::string::npos);
  EXPECT_NE(refused.to_json().find("\"error\":\"microscale::matmul: backend odd was forced"), std::string::npos);
  EXPECT_EQ(refused.to_json().find("\"backend\":"), std::string::npos);
}

TEST(Explanation, AsJson) {
  Explained e;
  const std::string json = e.context.explain(e.problem).to_json();
  EXPECT_EQ(
      json.rfind("{\"operation\":\"matmul\",\"execution\":\"host\",\"device\":0,\"concurrency\":1,\"m\":1024,\"n\":512,"
                 "\"k\":2048,",
                 0),
      0u)
      << json;
  EXPECT_NE(
      json.find("\"a\":{\"rows\":1024,\"cols\":2048,\"batch\":1,\"format\":\"mxfp4\",\"structure\":\"e2m1/32/e8m0\","
                "\"row_stride\":1024,\"col_stride\":1,\"scale_layout\":\"linear\"},"),
      std::string::npos)
      << json;
  EXPECT_NE(json.find("\"backend\":\"one\",\"why\":"), std::string::npos);
  EXPECT_NE(
      json.find(
          "\"config\":{\"tile_m\":16,\"tile_n\":0,\"tile_k\":0,\"stages\":3,\"cluster\":0,\"split_k\":0,"
          "\"swap_ab\":false,\"cluster_n\":0,\"cta_group\":0,\"k_group\":0,\"block_swizzle\":0,\"scheduler_stages\":0,"
          "\"accumulator_stages\":0,\"warp_m\":0,\"warp_n\":0,\"groups_per_unit\":0,\"small_n\":false,\"persistent\":"
          "false,\"streaming\":false,\"deep_prefetch\":false},\"config_source\":\"backend\",\"workspace_bytes\":1024"),
      std::string::npos)
      << json;
  EXPECT_NE(json.find("{\"name\":\"odd\",\"able\":false,\"reason\":\"says \\\"no\\\" \\\\ and\\u000amore\"},"
                      "{\"name\":\"reference\",\"able\":true,\"cost\":0.268"),
            std::string::npos)
      << json;
  EXPECT_EQ(json.substr(json.size() - 3), "}]}");
}

}  // namespace
}  // namespace microscale::Test
