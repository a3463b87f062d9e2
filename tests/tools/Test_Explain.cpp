#include <Microscale_Json.hpp>
#include <Test_Process.hpp>

#include <algorithm>
#include <cstdlib>
#include <sstream>

// `microscale explain`, as a user runs it. What the numbers must be is worked by hand.
namespace {

using namespace microscale::test;
using microscale::tools::Json;

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

Json explained(const std::string& arguments, const char* program = MICROSCALE_TEST_PROGRAM) {
  auto all = words("explain " + arguments);
  all.push_back("--json");
  return Json::parse(run_well(all, program));
}

TEST(Explain, PlansForHardwareThatIsNotHere) {
  const struct {
    const char* target;
    const char* execution;
    const char* device;
    const char* precision;
    double flops_per_second;
    double bytes_per_second;
  } cases[] = {{"sm100", "cuda", "B200", "fp4", 9.0e15, 8.0e12},
               {"cdna4", "hip", "MI355X", "fp4", 1.007e16, 8.0e12},
               {"sm90", "cuda", "H200", "bf16", 9.89e14, 4.8e12}};
  for (const auto& [target, execution, device, precision, flops_per_second, bytes_per_second] : cases) {
    SCOPED_TRACE(target);
    const Json json = explained(std::string("matmul --a mxfp4 --b MXFP4 -m 128 -n 256 -k 4096 --target ") + target);
    EXPECT_EQ(json["operation"], "matmul");
    EXPECT_EQ(json["execution"], execution);
    EXPECT_EQ(json["target"], target);
    EXPECT_EQ(json["a"]["structure"], "e2m1/32/e8m0");
    EXPECT_EQ(json["c"]["format"], "bf16");
    EXPECT_EQ(json["backend"], target);
    EXPECT_GT(json["config"]["tile_m"], 0);
    EXPECT_TRUE(json["why"].is_string());
    for (const auto& candidate : json["candidates"])
      EXPECT_TRUE(candidate["able"] == true || candidate["reason"] != "") << candidate;
    // No scale layout pads 128 rows or 128 blocks.
    EXPECT_EQ(json["work"]["flops"], 268435456);
    EXPECT_EQ(json["work"]["bytes_a"], 128 * (2048 + 128));
    EXPECT_EQ(json["work"]["bytes_b"], 256 * (2048 + 128));
    EXPECT_EQ(json["work"]["bytes_c"], 128 * 256 * 2);
    EXPECT_EQ(json["work"]["bytes"], 901120);
    EXPECT_DOUBLE_EQ(json["work"]["intensity"], 268435456.0 / 901120);
    ASSERT_EQ(json["devices"].size(), 1u);
    const Json& on = json["devices"][0];
    EXPECT_EQ(on["name"], device);
    EXPECT_EQ(on["precision"], precision);
    EXPECT_EQ(on["flops_per_second"], flops_per_second);
    EXPECT_EQ(on["bytes_per_second"], bytes_per_second);
    const double memory = 901120 / bytes_per_second, compute = 268435456 / flops_per_second;
    EXPECT_DOUBLE_EQ(on["memory_seconds"], memory);
    EXPECT_DOUBLE_EQ(on["compute_seconds"], compute);
    EXPECT_DOUBLE_EQ(on["seconds"], std::max(memory, compute));
    EXPECT_EQ(on["bound"], memory >= compute ? "memory" : "compute");
    EXPECT_GT(on["waves"], 0.0);
    EXPECT_FALSE(on["source"].get<std::string>().empty());
  }
}

TEST(Explain, ScalesHaveTheLayoutOfTheTarget) {
  const std::string shape = "matmul --a mxfp4 --b mxfp4 -m 1 -n 32 -k 64 --target ";
  EXPECT_EQ(explained(shape + "sm100")["a"]["scale_layout"], "tcgen");
  EXPECT_EQ(explained(shape + "sm100")["work"]["bytes_a"], 32 + 128 * 4);
  EXPECT_EQ(explained(shape + "cdna4")["a"]["scale_layout"], "cdna4");
  EXPECT_EQ(explained(shape + "cdna4")["work"]["bytes_a"], 32 + 32 * 8);
  EXPECT_EQ(explained(shape + "sm90")["a"]["scale_layout"], "linear");
  EXPECT_EQ(explained(shape + "sm100 --scales tile_8x4")["work"]["bytes_a"], 32 + 8 * 4);
}

TEST(Explain, GroupsAndTheirHints) {
  const std::string shape = "grouped --a nvfp4 --b nvfp4 -n 4096 -k 7168 --groups 32 --target sm100 ";
  const Json json = explained(shape + "--estimated-total-m 256");
  EXPECT_EQ(json["operation"], "grouped_matmul");
  EXPECT_EQ(json["m"], 256);
  EXPECT_EQ(json["work"]["flops"], 15032385536);
  EXPECT_EQ(json["work"]["bytes_b"], 32 * 4096 * (3584 + 448));
  const Json active = explained(shape + "-m 1000 --estimated-total-m 256 --active-experts 8");
  EXPECT_EQ(active["m"], 1000);
  EXPECT_EQ(active["work"]["bytes_b"], 8 * 4096 * (3584 + 448));
}

TEST(Explain, Quantize) {
  for (const char* how : {"--c nvfp4 -m 100 -k 200", "--b nvfp4 -m 100 -n 200"}) {
    const Json json = explained(std::string("quantize --a f32 --scales linear --target sm100 ") + how);
    EXPECT_EQ(json["operation"], "quantize");
    EXPECT_EQ(json["work"]["flops"], 0);
    EXPECT_EQ(json["work"]["bytes_a"], 80000);
    EXPECT_EQ(json["work"]["bytes_c"], 100 * (100 + 13));
    EXPECT_EQ(json["devices"][0]["bound"], "memory");
    EXPECT_FALSE(json["devices"][0].contains("precision"));
  }
}

TEST(Explain, ThisMachineIsMeasured) {
  const Json json = explained("matmul --a mxfp4 --b mxfp4 -m 64 -n 64 -k 64 --target auto");
  if (json["execution"] != "host") GTEST_SKIP() << "Kokkos' default is no host space";
  ASSERT_EQ(json["devices"].size(), 1u);
  EXPECT_EQ(json["devices"][0]["name"], "this host");
  EXPECT_EQ(json["devices"][0]["units"], json["concurrency"]);
  EXPECT_GT(json["devices"][0]["bytes_per_second"], 0.0);
  EXPECT_GT(json["devices"][0]["flops_per_second"], 0.0);
}

TEST(Explain, SaysTheTilesAndWavesOfABackend) {
  // Tiles of 16 x 32: 4 rows and 16 columns of them.
  const Json json = explained("matmul --a mxfp4 --b mxfp4 --c f32 -m 64 -n 512 -k 2048", MICROSCALE_TEST_SMALL_PROGRAM);
  ASSERT_EQ(json["backend"], "small") << json;
  EXPECT_EQ(json["config"]["tile_m"], 16);
  EXPECT_EQ(json["config"]["tile_n"], 32);
  EXPECT_EQ(json["config_source"], "backend");
  EXPECT_EQ(json["devices"][0]["tiles"], 64);
  const int units = json["devices"][0]["units"];
  EXPECT_EQ(json["devices"][0]["waves"], (64 + units - 1) / units);
}

TEST(Explain, AsText) {
  const std::string text = run_well(words("explain matmul --a mxfp4 --b mxfp4 -m 128 -n 256 -k 4096 --target sm100"));
  EXPECT_EQ(
      text.rfind("matmul on cuda (device 0): m 128, n 256, k 4096; a 128 x 4096 mxfp4, tcgen scales; b 256 x 4096 "
                 "mxfp4, tcgen scales; c 128 x 256 bf16\n  backend    ",
                 0),
      0u)
      << text;
  for (const char* line :
       {"\n  candidates, in order of preference\n    avx512     no: runs on host, and this call on cuda\n",
        "\n  work       268435456 flops, 901120 bytes moved (a 278528, b 557056, c 65536): 297.9 flops a byte\n",
        "\n  roofline   B200: 1.13e-07 s at least, bound by memory\n",
        "\n               memory   1.13e-07 s at 8000 GB/s\n",
        "\n               compute  2.98e-08 s at 9e+06 GFLOP/s (fp4)\n", "\n               from     NVIDIA HGX B200"})
    EXPECT_TRUE(contains(text, line)) << text << "\nmisses" << line;
}

TEST(Explain, WrongArgumentsAreSaid) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "OPERATION is required"},
      {"conv", "conv not in {matmul,grouped,quantize}"},
      {"matmul --b mxfp4 -m 1 -n 1 -k 1", "microscale: matmul needs --a\n"},
      {"matmul --a mxfp4 --b mxfp4 -m 1 -n 1", "microscale: matmul needs -k\n"},
      {"matmul --a fp3 --b mxfp4 -m 1 -n 1 -k 1",
       "microscale: --a fp3: no such format; expected f32, f16, bf16, nvfp4"},
      {"matmul --a mxfp4 --b mxfp4 --c mxfp -m 1 -n 1 -k 1", "microscale: --c mxfp: no such format"},
      {"matmul --a mxfp4 --b mxfp4 -m 0 -n 1 -k 1", "microscale: -m 0: expected a whole number from 1 to 2147483647\n"},
      {"matmul --a mxfp4 --b mxfp4 -m 1 -n -5 -k 1", "microscale: -n -5: expected a whole number from 1"},
      {"matmul --a mxfp4 --b mxfp4 -m 1 -n 1 -k 2147483648", "microscale: -k 2147483648: expected a whole number"},
      {"matmul --a mxfp4 --b mxfp4 -m 99999999999999999999 -n 1 -k 1", "-m"},
      {"matmul --a mxfp4 --b mxfp4 -m 1e3 -n 1 -k 1", "-m = 1e3"},
      {"matmul --a mxfp4 --b mxfp4 -m 1 -n 1 -k 1 --groups 2", "microscale: matmul takes no --groups\n"},
      {"matmul --a mxfp4 --b mxfp4 -m 1 -n 1 -k 1 --scales odd", "microscale: --scales odd: expected linear, tcgen"},
      {"matmul --a mxfp4 --b mxfp4 -m 1 -n 1 -k 1 --target sm80", "--target: sm80 not in {auto,"},
      {"grouped --a mxfp4 --b mxfp4 -m 1 -n 1 -k 1", "microscale: grouped needs --groups\n"},
      {"grouped --a mxfp4 --b bf16 -m 1 -n 1 -k 1 --groups 2", "microscale: --b bf16: grouped takes a block format\n"},
      {"grouped --a mxfp4 --b mxfp4 -m 1 -n 1 -k 1 --groups 0", "microscale: --groups 0: expected a whole number"},
      {"quantize --a f32 -m 1 -k 1", "microscale: quantize needs --c\n"},
      {"quantize --a mxfp4 --c nvfp4 -m 1 -k 1", "microscale: --a mxfp4: quantize takes f32, f16 or bf16\n"},
      {"quantize --a f32 --c f16 -m 1 -k 1", "microscale: --c half: quantize gives a block format\n"},
      {"quantize --a f32 --b nvfp4 --c nvfp4 -m 1 -k 1", "microscale: quantize has one result"}};
  for (const auto& [arguments, reason] : cases) {
    const Result result = run(words(std::string("explain ") + arguments));
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_TRUE(contains(result.err, reason)) << arguments << ": " << result.err;
  }
}

TEST(Explain, ABadTuningFileIsAnError) {
  const TemporaryFolder folder;
  const std::string path = (folder / "t.json").string();
  write_file(path, "{\n\"version\": 1,\n\"entries\": [{\"operation\": 3}]}\n");
  ::setenv("MICROSCALE_TUNING_FILE", path.c_str(), 1);
  const Result result = run(words("explain matmul --a mxfp4 --b mxfp4 -m 1 -n 1 -k 1"));
  ::unsetenv("MICROSCALE_TUNING_FILE");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err.rfind("microscale: tuning file " + path + ", line 3: entries[0].operation is 3; expected", 0),
            0u)
      << result.err;
}

TEST(Backends, EachReasonIsSaidOnce) {
  const std::string text = run_well({"backends"});
  EXPECT_TRUE(contains(text, "\ncublaslt: not part of this build: not written yet\n") ||
              !contains(text, "not written yet"))
      << text;
  EXPECT_TRUE(contains(text, "reference: available. portable Kokkos kernels")) << text;
  EXPECT_FALSE(contains(text, "not built. ")) << text;
}

}  // namespace
