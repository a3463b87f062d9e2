#include <Microscale_Json.hpp>
#include <Test_Process.hpp>

#include <cstdlib>
#include <sstream>

// `microscale tune`, as a user runs it: the program of the project, and one with a backend that runs anywhere.
namespace {

using namespace microscale::test;
using microscale::tools::Json;
constexpr const char* small = MICROSCALE_TEST_SMALL_PROGRAM;

class TuneTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (m_folder / name).string(); }
  static std::vector<std::string> arguments(const std::string& text, const std::vector<std::string>& more = {}) {
    std::vector<std::string> result{"tune"};
    std::istringstream stream(text);
    for (std::string word; stream >> word;) result.push_back(word);
    result.insert(result.end(), more.begin(), more.end());
    return result;
  }
  Json tuned(const std::string& text, const std::vector<std::string>& more = {}) const {
    auto all = arguments(text, more);
    for (const char* word : {"--repeat", "3", "--json"}) all.emplace_back(word);
    return Json::parse(run_well(all, small));
  }
  /// What explain says of a problem under a tuning file.
  static Json explained(const std::string& file, const std::string& m) {
    ::setenv("MICROSCALE_TUNING_FILE", file.c_str(), 1);
    const std::string text = run_well({"explain", "matmul", "--a", "mxfp4", "--b", "mxfp4", "--c", "f32", "-m", m, "-n",
                                       "512", "-k", "256", "--json"},
                                      small);
    ::unsetenv("MICROSCALE_TUNING_FILE");
    return Json::parse(text);
  }

  TemporaryFolder m_folder;
};

const std::string shape = "matmul --a mxfp4 --b mxfp4 --c f32 -n 512 -k 256 ";

TEST_F(TuneTest, MeasuresEveryCandidateAndWritesTheBest) {
  const Json json = tuned(shape + "-m 128", {"-o", path("t.json")});
  EXPECT_EQ(json["written"], path("t.json"));
  ASSERT_EQ(json["results"].size(), 1u);
  const Json& result = json["results"][0];
  EXPECT_EQ(result["problem"], "matmul mxfp4 x mxfp4 -> float, m 128, n 512, k 256");
  ASSERT_EQ(result["candidates"].size(), 3u);
  const char* const configs[] = {"tile_m 16, tile_n 32", "tile_m 4, tile_n 16", "tile_m 64, tile_n 64"};
  int winners = 0;
  std::string winner;
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& candidate = result["candidates"][i];
    EXPECT_EQ(candidate["backend"], "small");
    EXPECT_EQ(candidate["config"], configs[i]);
    EXPECT_EQ(candidate["own"], i == 0);
    const double seconds = candidate["seconds"], rate = candidate["flops_per_second"];
    EXPECT_GT(seconds, 0);
    EXPECT_DOUBLE_EQ(rate * seconds, 2.0 * 128 * 512 * 256);
    if (candidate["winner"] == true) {
      ++winners;
      winner = candidate["config"];
    }
  }
  EXPECT_EQ(winners, 1);

  const Json file = Json::parse(read_file(path("t.json")));
  EXPECT_EQ(file["version"], 1);
  ASSERT_EQ(file["entries"].size(), 1u);
  const Json& entry = file["entries"][0];
  EXPECT_EQ(entry["operation"], "matmul");
  EXPECT_EQ(entry["a"], "mxfp4");
  EXPECT_EQ(entry["b"], "mxfp4");
  EXPECT_EQ(entry["c"], "float");
  EXPECT_EQ(entry["n"], 512);
  EXPECT_EQ(entry["k"], 256);
  EXPECT_EQ(entry["m"], Json::parse("[128, 128]"));
  EXPECT_EQ(entry["backend"], "small");
  EXPECT_EQ(entry["threads"], result["concurrency"]);
  EXPECT_EQ("tile_m " + entry["config"]["tile_m"].dump() + ", tile_n " + entry["config"]["tile_n"].dump(), winner);

  // It is used for what it is for, and for nothing else.
  EXPECT_EQ(explained(path("t.json"), "128")["config_source"], "tuning");
  EXPECT_EQ(explained(path("t.json"), "128")["tuning"], "tuning file " + path("t.json") + ", line 4");
  EXPECT_EQ(explained(path("t.json"), "129")["config_source"], "backend");
}

TEST_F(TuneTest, PrintsATable) {
  const std::string text = run_well(arguments(shape + "-m 128 --repeat 1"), small);
  EXPECT_EQ(text.rfind("matmul mxfp4 x mxfp4 -> float, m 128, n 512, k 256\n  backend       configuration", 0), 0u)
      << text;
  EXPECT_TRUE(contains(text, "  small         tile_m 16, tile_n 32  ")) << text;
  EXPECT_TRUE(contains(text, " 1.000  own choice")) << text;
  EXPECT_TRUE(contains(text, "best\n")) << text;
  EXPECT_FALSE(contains(text, "wrote")) << text;
  EXPECT_EQ(m_folder.names().size(), 0u);
}

TEST_F(TuneTest, AListGivesRangesAndFilesAreAddedTo) {
  write_file(path("list"), "# M N K\n64 512 256\n\n  256 512 256  # larger\n64 128 256\n");
  tuned("matmul --a mxfp4 --b mxfp4 --c f32", {"--list", path("list"), "-o", path("t.json")});
  Json entries = Json::parse(read_file(path("t.json")))["entries"];
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0]["m"], Json::parse("[64, 64]"));
  EXPECT_EQ(entries[1]["m"], Json::parse("[65, 256]"));
  EXPECT_EQ(entries[2]["m"], Json::parse("[64, 64]"));
  EXPECT_EQ(entries[2]["n"], 128);
  EXPECT_EQ(explained(path("t.json"), "100")["config_source"], "tuning");

  // Once more: the same key is replaced, a new one comes first.
  tuned("matmul --a mxfp4 --b mxfp4 --c f32 -m 64 -n 128 -k 256", {"-o", path("t.json")});
  tuned(shape + "-m 100", {"-o", path("t.json")});
  entries = Json::parse(read_file(path("t.json")))["entries"];
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0]["m"], Json::parse("[100, 100]"));
  EXPECT_EQ(entries[1]["n"], 128);
}

TEST_F(TuneTest, WhereOnlyTheReferenceCanThereIsNothingToTune) {
  // The backend of the tests has float results only.
  const std::string other = "matmul --a mxfp4 --b mxfp4 --c bf16 -m 16 -n 32 -k 64";
  const std::string text = run_well(arguments(other, {"-o", path("t.json")}), small);
  EXPECT_EQ(text,
            "matmul mxfp4 x mxfp4 -> bf16, m 16, n 32, k 64\n"
            "  only the reference can run it here, and it has nothing to tune\n"
            "  small: only float output\n"
            "nothing was written\n");
  const Json json = tuned(other, {"-o", path("t.json")});
  EXPECT_TRUE(json["written"].is_null());
  EXPECT_EQ(json["results"][0]["refusals"], Json::parse(R"(["small: only float output"])"));
  const Json grouped = tuned("grouped --a nvfp4 --b nvfp4 -m 64 -n 32 -k 64 --groups 4 --scales tcgen");
  EXPECT_EQ(grouped["results"][0]["refusals"], Json::parse(R"(["small: only matmul"])"));
  EXPECT_EQ(m_folder.names().size(), 0u);
}

TEST_F(TuneTest, TheProgramItselfTunesOrSaysWhyNot) {
  const Result result = run(arguments("matmul --a mxfp4 --b mxfp4 -m 16 -n 32 -k 64 --repeat 1"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "only the reference can run it here") || contains(result.out, "own choice"))
      << result.out;
}

TEST_F(TuneTest, WrongArgumentsAreSaidAndLeaveNothing) {
  const std::pair<std::vector<std::string>, const char*> usage[] = {
      {arguments("quantize --a f32 --c mxfp4 -m 1 -k 1"), "quantize not in {matmul,grouped}"},
      {arguments(shape), "microscale: matmul needs -m\n"},
      {arguments(shape + "-m 0"), "microscale: -m 0: expected"},
      {arguments(shape + "-m 1 --repeat 0"), "--repeat"},
      {arguments(shape + "-m 1 --backend nobody"), "microscale: --backend nobody: there is no such backend to tune\n"},
      {arguments(shape + "-m 1 --list x"), "microscale: --list has the extents"}};
  for (const auto& [all, reason] : usage) {
    const Result result = run(all, {}, small);
    EXPECT_EQ(result.status, 2) << reason;
    EXPECT_TRUE(contains(result.err, reason)) << result.err;
  }
  write_file(path("list"), "1 2 3\n4 5\n");
  write_file(path("zero"), "\n1 0 3\n");
  write_file(path("more"), "1 2 3 4\n");
  write_file(path("none"), "# nothing\n");
  write_file(path("bad.json"), "{\"version\": 1,\n\"entries\": 5}");
  const std::string plain = "matmul --a mxfp4 --b mxfp4 --c f32";
  const std::pair<std::vector<std::string>, std::string> files[] = {
      {arguments(plain, {"--list", path("list")}),
       "microscale: " + path("list") + ": line 2: \"4 5\"; expected three whole numbers, M N K\n"},
      {arguments(plain, {"--list", path("zero")}),
       "microscale: " + path("zero") + ": line 2: -n 0: expected a whole number from 1 to 2147483647\n"},
      {arguments(plain, {"--list", path("more")}), "microscale: " + path("more") + ": line 1: \"1 2 3 4\"; expected"},
      {arguments(plain, {"--list", path("none")}), "microscale: " + path("none") + ": has no shapes"},
      {arguments(plain, {"--list", path("missing")}), "microscale: " + path("missing") + ": cannot open"},
      {arguments(shape + "-m 1", {"-o", path("bad.json")}),
       "microscale: tuning file " + path("bad.json") + ", line 2: entries is 5; expected an array\n"},
      {arguments(shape + "-m 64 --repeat 1", {"-o", path("no/such/folder")}), "microscale: " + path("no/such")}};
  for (const auto& [all, reason] : files) {
    const Result result = run(all, {}, small);
    EXPECT_EQ(result.status, 1) << reason;
    EXPECT_EQ(result.err.rfind(reason, 0), 0u) << result.err << "\nexpected\n" << reason;
  }
  const Result huge =
      run(arguments("grouped --a mxfp4 --b mxfp4 -m 1 -n 2147483647 -k 2147483647 --groups 2147483647"), {}, small);
  EXPECT_EQ(huge.status, 1);
  EXPECT_EQ(huge.err, "microscale: out of memory\n");
  EXPECT_EQ(read_file(path("bad.json")), "{\"version\": 1,\n\"entries\": 5}");
}

}  // namespace
