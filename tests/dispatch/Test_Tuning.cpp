#include <Microscale_Target.hpp>
#include <Microscale_Tuning.hpp>
#include <Small_Backend.hpp>
#include <Test_Dispatch.hpp>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>

// Tuning files: what they say, what is wrong with bad ones, and that no entry can change a result.
namespace microscale::Test {
namespace {

/// A file around these entries; the first entry is on line 4.
std::string file_of(const std::string& entries) {
  return "{\n  \"version\": 1,\n  \"entries\": [\n" + entries + "\n  ]\n}\n";
}

const std::string plain =
    R"({"operation": "matmul", "a": "mxfp4", "b": "mxfp4", "n": 512, "k": 2048, "backend": "one", )"
    R"("config": {"tile_m": 32}})";

/// `text` with one part replaced.
std::string with(std::string text, const std::string& part, const std::string& other) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), other);
}

std::string error_in(const std::string& text) {
  return message_of<std::invalid_argument>([&] { parse_tuning(text, "tuning file t.json"); });
}

TEST(Tuning, EveryFieldIsRead) {
  const Tuning tuning =
      parse_tuning(file_of(R"({"operation": "grouped_matmul", "a": "NVFP4", "b": "e2m1/64/e8m0", "c": "bf16", "n": 4096,
"k": 7168, "m": [16, 512], "average_m": 8, "backend": "sm100", "threads": 4, "device": "A \"processor\" \u00e9",
"config": {"tile_m": 1, "tile_n": 2, "tile_k": 3, "stages": 4, "cluster": 5, "split_k": 6, "swap_ab": true},
"note": "why"}, )" + plain),
                   "a text");
  ASSERT_EQ(tuning.entries.size(), 2u);
  const TuningEntry& e = tuning.entries[0];
  EXPECT_EQ(e.operation, Operation::grouped_matmul);
  EXPECT_TRUE(e.a == format_id<NVFP4>);
  EXPECT_EQ(structural_name(e.b), "e2m1/64/e8m0");
  EXPECT_TRUE(e.c && *e.c == bfloat16_id);
  EXPECT_EQ(e.n, 4096);
  EXPECT_EQ(e.k, 7168);
  EXPECT_EQ(e.m, (TuningRange{16, 512}));
  EXPECT_EQ(e.average_m, (TuningRange{8, 8}));
  EXPECT_EQ(e.backend, "sm100");
  EXPECT_EQ(e.threads, 4);
  EXPECT_EQ(e.device, "A \"processor\" \xc3\xa9");
  EXPECT_EQ(to_string(e.config), "tile_m 1, tile_n 2, tile_k 3, stages 4, cluster 5, split_k 6, swap_ab");
  EXPECT_EQ(e.note, "why");
  EXPECT_EQ(e.line, 4);
  EXPECT_EQ(tuning.entries[1].line, 7);
  EXPECT_EQ(tuning.entries[1].m, TuningRange{});
  EXPECT_FALSE(tuning.entries[1].c);
  EXPECT_EQ(tuning.source, "a text");

  const std::string text = to_json(tuning);
  EXPECT_EQ(to_json(parse_tuning(text, "")), text);
  EXPECT_EQ(text.substr(text.find("\n    {", text.find("note"))),
            "\n    {\"operation\":\"matmul\",\"a\":\"mxfp4\",\"b\":\"mxfp4\",\"n\":512,\"k\":2048,\"backend\":\"one\","
            "\"config\":{\"tile_m\":32}}\n  ]\n}\n");
  EXPECT_EQ(to_json({}), "{\n  \"version\": 1,\n  \"entries\": []\n}\n");
  EXPECT_TRUE(parse_tuning(to_json({}), "").entries.empty());
}

TEST(Tuning, WhatIsWrongIsNamedWithLineAndField) {
  const struct {
    const char* part;
    const char* other;
    const char* error;  ///< after the source
  } cases[] = {
      {"\"matmul\"", "\"quantize\"",
       "line 4: entries[0].operation is \"quantize\"; expected \"matmul\", \"batched_matmul\" or \"grouped_matmul\""},
      {"\"matmul\"", "7", "line 4: entries[0].operation is 7; expected \"matmul\", \"batched_matmul\""},
      {"\"mxfp4\"", "\"mxfp3\"", "line 4: entries[0].a is \"mxfp3\"; expected a format's name"},
      {"\"b\": \"mxfp4\"", "\n\"b\": null", "line 5: entries[0].b is null; expected a format's name"},
      {"\"n\": 512", "\"n\": \"512\"", "line 4: entries[0].n is \"512\"; expected a whole number from 0 up"},
      {"\"n\": 512", "\"n\": 512.5", "line 4: entries[0].n is 512.5; expected a whole number from 0 up"},
      {"\"n\": 512", "\"n\": -1", "line 4: entries[0].n is -1; expected a whole number from 0 up"},
      {"\"n\": 512", "\"n\": 9223372036854775808",
       "line 4: entries[0].n is 9223372036854775808; expected a whole number from 0 up"},
      {"\"n\": 512", "\"n\": true", "line 4: entries[0].n is true; expected a whole number"},
      {"\"n\": 512, ", "", "line 4: entries[0] has no \"n\"; expected operation, a, b, n, k, backend and config"},
      {"\"n\"", "\"N\"", "line 4: entries[0].N is not known; expected operation, a, b, c, n, k, m"},
      {"\"n\"", "\"k\": 1, \n\"k\"", "line 5: not JSON: the name \"k\" appears twice"},
      {"\"n\"", "\"m\": [1], \"n\"", "line 4: entries[0].m has 1 numbers; expected two, the least and the most"},
      {"\"n\"", "\"m\": [2, 1], \"n\"", "line 4: entries[0].m begins after it ends; expected the least number first"},
      {"\"n\"", "\"m\": [1,\n\"x\"], \"n\"", "line 5: entries[0].m[1] is \"x\"; expected a whole number from 0 up"},
      {"\"n\"", "\"m\": {}, \"n\"", "line 4: entries[0].m is an object; expected a whole number from 0 up"},
      {"\"n\"", "\"average_m\": 8, \"n\"",
       "line 4: entries[0] has \"average_m\"; expected none but in a grouped_matmul"},
      {"\"n\"", "\"threads\": 0, \"n\"",
       "line 4: entries[0].threads is 0; expected a whole number from 1 to 2147483647"},
      {"\"one\"", "[]", "line 4: entries[0].backend is an array; expected a backend's name"},
      {"{\"tile_m\": 32}", "32", "line 4: entries[0].config is 32; expected an object"},
      {"{\"tile_m\": 32}", "{\n\n\"tile_m\": 2147483648}",
       "line 6: entries[0].config.tile_m is 2147483648; expected a whole number from 0 to 2147483647"},
      {"tile_m", "tile_x", "line 4: entries[0].config.tile_x is not known; expected tile_m, tile_n, tile_k"},
      {"\"tile_m\": 32", "\"swap_ab\": 1", "line 4: entries[0].config.swap_ab is 1; expected true or false"},
      {plain.c_str(), "3", "line 4: entries[0] is 3; expected an object"},
      {"\"version\": 1", "\"version\": 2", "line 2: version is 2; expected 1"},
      {"\"version\": 1,", "", "line 1: the whole has no \"version\"; expected 1"},
      {"\"version\"", "\"more\": 1,\n\"version\"", "line 2: more is not known; expected version and entries"},
      {"[\n", "{\n", "line 4: not JSON: a name in quotes is missing before '{'"},
      {"}\n  ]", "}\n", "line 6: not JSON: ']' is missing at the end of an array, before '}'"},
      {"32", "032", "line 4: not JSON: '}' is missing at the end of an object, before '3'"},
      {"32", "-", "line 4: not JSON: a digit is missing before '}'"},
      {"32", "\"\\ud800\"", "line 4: not JSON: half a surrogate pair"},
      {"32", "nul", "line 4: not JSON: a value is missing before 'n'"},
      {"\"one\"", "\"o\nne\"", "line 4: not JSON: a string holds a control character, byte 0a"},
      {"\n  ]\n}\n", "", "line 4: not JSON: ']' is missing at the end of an array, before the end of the text"},
      {"\n  ]\n}\n", "]} x", "line 4: not JSON: something follows the value: 'x'"},
  };
  for (const auto& [part, other, error] : cases) {
    const std::string said = error_in(with(file_of(plain), part, other));
    EXPECT_EQ(said.rfind(std::string("microscale: tuning file t.json, ") + error, 0), 0u)
        << said << "\nexpected ... " << error;
  }
  EXPECT_EQ(error_in("[]"), "microscale: tuning file t.json, line 1: the whole is an array; expected an object");
  EXPECT_EQ(error_in("{\"version\": 1}"),
            "microscale: tuning file t.json, line 1: the whole has no \"entries\"; expected an array of them");
  EXPECT_EQ(error_in(""),
            "microscale: tuning file t.json, line 1: not JSON: a value is missing before the end of the text");
  EXPECT_EQ(error_in(std::string(100, '[')),
            "microscale: tuning file t.json, line 1: not JSON: more than 64 levels deep");
}

TEST(Tuning, FormatsAreFoundByName) {
  for (const FormatId f : {format_id<NVFP4>, format_id<MXFP4>, format_id<MXFP8_E4M3>, format_id<MXFP8_E5M2>,
                           format_id<MXFP6_E2M3>, format_id<MXFP6_E3M2_Bytes>, float32_id, float16_id, bfloat16_id}) {
    EXPECT_TRUE(format_named(to_string(f)) == f) << to_string(f);
    if (f.block_size > 0) {
      EXPECT_TRUE(format_named(structural_name(f)) == f) << structural_name(f);
    }
  }
  FormatId odd = format_id<MXFP8_E4M3>;
  odd.element.specials = Specials::ieee;
  odd.block_size = 512;
  EXPECT_EQ(to_string(odd), "e4m3(ieee)/512/e8m0");
  EXPECT_TRUE(format_named("e4m3(ieee)/512/e8m0") == odd);
  EXPECT_TRUE(format_named("MXFP8-E4M3") == format_id<MXFP8_E4M3>);
  EXPECT_TRUE(format_named("F32") == float32_id);
  EXPECT_TRUE(format_named("fp16") == float16_id);
  for (const char* bad :
       {"", "mxfp", "mxfp44", "e2m1", "e2m1/", "e2m1/32", "e2m1/0/e8m0", "e2m1/12/e8m0", "e8m7/32/e8m0",
        "e2m1/1000/e8m0", "e2m1/32/e8m0+", "e2m1/32/e8m0 ", "em/32/e8m0", "bf16/32/e8m0"})
    EXPECT_FALSE(format_named(bad)) << bad;
}

struct Tuned {
  FakeBackend one{"one", 1e-9}, two{"two", 2e-9};
  Context context;
  Problem problem = matmul_problem(1024, 512, 2048);

  Tuned() {
    context.add_backend(one);
    context.add_backend(two);
  }
  Choice choice(const std::string& entries, const ChoiceOptions& options = {}) {
    context.load_tuning(file_of(entries), "t");
    return context.choose(problem, options);
  }
  int tile_m(const std::string& entries) { return choice(entries).config.tile_m; }
};

TEST(Tuning, TheFirstEntryThatFitsGivesTheConfiguration) {
  Tuned t;
  const Choice choice = t.choice(with(plain, "2048", "2047") + ",\n" + plain + ",\n" + with(plain, "32}", "64}"));
  EXPECT_EQ(choice.name, "one");
  EXPECT_EQ(choice.config_source, ConfigSource::tuning);
  EXPECT_EQ(to_string(choice.config), "tile_m 32");
  EXPECT_EQ(choice.tuning, "t, line 5");
  EXPECT_EQ(choice.workspace_bytes, 64 * 32);
  const Explanation e = t.context.explain(t.problem);
  EXPECT_NE(e.to_string().find("\n  config     tile_m 32 (t, line 5)\n  workspace  2048 bytes\n"), std::string::npos)
      << e.to_string();
  EXPECT_NE(e.to_json().find("\"config_source\":\"tuning\",\"tuning\":\"t, line 5\""), std::string::npos)
      << e.to_json();
}

TEST(Tuning, AnEntryFitsByItsKey) {
  Tuned t;
  constexpr int own = 16, tuned = 32;
  const auto add = [](const std::string& field) { return with(plain, "\"n\"", field + ", \"n\""); };
  EXPECT_EQ(t.tile_m(plain), tuned);
  EXPECT_EQ(t.tile_m(add("\"m\": 1024")), tuned);
  EXPECT_EQ(t.tile_m(add("\"m\": [1024, 2000]")), tuned);
  EXPECT_EQ(t.tile_m(add("\"m\": [0, 1024]")), tuned);
  EXPECT_EQ(t.tile_m(add("\"m\": [0, 1023]")), own);
  EXPECT_EQ(t.tile_m(add("\"m\": [1025, 2000]")), own);
  EXPECT_EQ(t.tile_m(add("\"c\": \"float\"")), tuned);
  EXPECT_EQ(t.tile_m(add("\"c\": \"bf16\"")), own);
  EXPECT_EQ(t.tile_m(add("\"threads\": 1")), tuned);
  EXPECT_EQ(t.tile_m(add("\"threads\": 2")), own);
  EXPECT_EQ(t.tile_m(add("\"device\": \"no such processor\"")), own);
  if (!processor_name().empty()) {
    EXPECT_EQ(t.tile_m(add("\"device\": \"" + processor_name() + "\"")), tuned);
  }
  EXPECT_EQ(t.tile_m(with(plain, "\"one\"", "\"two\"")), own);
  EXPECT_EQ(t.tile_m(with(plain, "\"one\"", "\"no_such_backend\"")), own);
  EXPECT_EQ(t.tile_m(with(plain, "\"mxfp4\"", "\"nvfp4\"")), own);
  EXPECT_EQ(t.tile_m(with(plain, "\"b\": \"mxfp4\"", "\"b\": \"nvfp4\"")), own);
  EXPECT_EQ(t.tile_m(with(plain, "512", "511")), own);
  EXPECT_EQ(t.tile_m(with(plain, "\"matmul\"", "\"batched_matmul\"")), own);
}

TEST(Tuning, GroupsFitByTheirAverage) {
  Tuned t;
  t.problem.operation = Operation::grouped_matmul;
  const std::string entry = with(with(plain, "matmul", "grouped_matmul"), "\"n\"", "\"average_m\": [9, 64], \"n\"");
  const auto tuned = [&](std::int64_t total, std::int64_t experts) {
    t.problem.hints = {total, experts};
    return t.tile_m(entry) == 32;
  };
  EXPECT_FALSE(tuned(0, 0));
  EXPECT_FALSE(tuned(100, 0));
  EXPECT_FALSE(tuned(0, 8));
  EXPECT_FALSE(tuned(8 * 9 - 1, 8));
  EXPECT_TRUE(tuned(8 * 9, 8));
  EXPECT_TRUE(tuned(8 * 64, 8));
  EXPECT_FALSE(tuned(8 * 64 + 1, 8));
}

TEST(Tuning, ARefusedEntryIsIgnoredAndSeen) {
  Tuned t;
  const std::string refused = with(plain, "32}", "7}");  // no tile has 7 rows
  const Choice choice = t.choice(refused);
  EXPECT_EQ(choice.error, "");
  EXPECT_EQ(choice.config_source, ConfigSource::backend);
  EXPECT_EQ(to_string(choice.config), "tile_m 16, stages 3");
  EXPECT_EQ(choice.tuning, "t, line 4 is ignored: no tile has 7 rows");
  EXPECT_NE(t.context.explain(t.problem).to_string().find("  tuning     t, line 4 is ignored: no tile has 7 rows\n"),
            std::string::npos);
  EXPECT_EQ(t.choice(refused + "," + plain).config_source, ConfigSource::tuning);

  // The caller's configuration and the reference ask nobody.
  const Config config{.tile_m = 8};
  EXPECT_EQ(t.choice(plain, {.config = &config}).config_source, ConfigSource::caller);
  EXPECT_EQ(t.choice(plain, {.backend = "reference"}).config_source, ConfigSource::none);
}

TEST(Tuning, NoEntryAsksForWorkspaceThatNobodyLends) {
  class Frugal : public FakeBackend {
   public:
    Frugal() : FakeBackend("one") {}
    Config config(const Problem&) const override { return {.stages = 3}; }  // and so no workspace
  } frugal;
  Context context;
  context.add_backend(frugal);
  context.load_tuning(file_of(plain), "t");
  const Problem p = matmul_problem(1024, 512, 2048);
  EXPECT_EQ(context.choose(p).workspace_bytes, 64 * 32);
  for (const std::string_view forced : {"", "one"}) {
    const Choice lent_none = context.choose(p, {.backend = forced, .without_workspace = true});
    EXPECT_EQ(lent_none.backend, &frugal);
    EXPECT_EQ(lent_none.config_source, ConfigSource::backend);
    EXPECT_EQ(lent_none.workspace_bytes, 0);
    EXPECT_EQ(lent_none.tuning, "t, line 4 is ignored: it needs workspace, and the call lends none");
  }
}

TEST(Tuning, LoadingForgetsPlansAndABadTextChangesNothing) {
  Tuned t;
  EXPECT_EQ(t.context.plan(t.problem).choice().config.tile_m, 16);
  t.context.load_tuning(file_of(plain));
  EXPECT_EQ(t.context.plan(t.problem).choice().config.tile_m, 32);
  EXPECT_THROW(t.context.load_tuning("{"), std::invalid_argument);
  EXPECT_THROW(t.context.load_tuning_file("/no/such/file"), std::runtime_error);
  EXPECT_EQ(t.context.plan(t.problem).choice().config.tile_m, 32);
  t.context.load_tuning("");
  EXPECT_EQ(t.context.plan(t.problem).choice().config.tile_m, 16);
}

/// A file in the folder for temporary ones, named in MICROSCALE_TUNING_FILE for the life of the object.
class TuningVariable {
 public:
  explicit TuningVariable(const std::string& text) {
    char name[] = "/tmp/microscale-tuning-XXXXXX";
    const int fd = ::mkstemp(name);
    EXPECT_GE(fd, 0);
    ::close(fd);
    m_path = name;
    std::ofstream(m_path) << text;
    setenv("MICROSCALE_TUNING_FILE", name, 1);
  }
  ~TuningVariable() {
    unsetenv("MICROSCALE_TUNING_FILE");
    std::remove(m_path.c_str());
  }
  TuningVariable(const TuningVariable&) = delete;
  TuningVariable& operator=(const TuningVariable&) = delete;
  const std::string& path() const { return m_path; }

 private:
  std::string m_path;
};

TEST(Tuning, TheEnvironmentNamesAFile) {
  const FakeBackend one("one");
  const Problem p = matmul_problem(1024, 512, 2048);
  {
    const TuningVariable variable(file_of(plain));
    Context context;
    context.add_backend(one);
    EXPECT_EQ(context.choose(p).tuning, "tuning file " + variable.path() + ", line 4");
    unsetenv("MICROSCALE_TUNING_FILE");
    EXPECT_EQ(context.choose(p).config.tile_m, 32);  // it is read once
    context.load_tuning_from_environment();
    EXPECT_EQ(context.choose(p).config.tile_m, 16);
    context.load_tuning_file(variable.path());
    EXPECT_EQ(context.choose(p).config.tile_m, 32);
  }
  {
    const TuningVariable variable(with(file_of(plain), "\"n\": 512", "\"n\": {}"));
    EXPECT_EQ(message_of<std::invalid_argument>([] { Context context; }),
              "microscale: tuning file " + variable.path() +
                  ", line 4: entries[0].n is an object; expected a whole number from 0 up");
  }
  setenv("MICROSCALE_TUNING_FILE", "/no/such/file", 1);
  EXPECT_EQ(message_of<std::runtime_error>([] { Context context; }),
            "microscale: tuning file /no/such/file cannot be read: No such file or directory");
  setenv("MICROSCALE_TUNING_FILE", "/", 1);
  EXPECT_EQ(
      message_of<std::runtime_error>([] { Context context; }).rfind("microscale: tuning file / cannot be read", 0), 0u);
  setenv("MICROSCALE_TUNING_FILE", "", 1);
  EXPECT_NO_THROW(Context context);
  unsetenv("MICROSCALE_TUNING_FILE");
}

TEST(Tuning, AWrongEntryCannotChangeAResult) {
  const Backend& small = backend_small::backend();
  if (!small.available().supported) GTEST_SKIP() << small.available().reason;
  constexpr std::int64_t m = 37, n = 45, k = 96;
  std::vector<std::uint8_t> a(m * k / 2), b(n * k / 2), a_scales(m * 3), b_scales(n * 3);
  std::mt19937 random(7);
  for (auto* codes : {&a, &b})
    for (auto& byte : *codes) byte = static_cast<std::uint8_t>(random());
  for (auto* scales : {&a_scales, &b_scales})
    for (auto& byte : *scales) byte = static_cast<std::uint8_t>(120 + random() % 14);
  Problem p = matmul_problem(m, n, k);
  p.a.data = a.data();
  p.a.scales = a_scales.data();
  p.b.data = b.data();
  p.b.scales = b_scales.data();

  const auto product = [&](const std::string& config, ConfigSource source) {
    Context context;
    context.add_backend(small);
    if (!config.empty())
      context.load_tuning(file_of(R"({"operation": "matmul", "a": "mxfp4", "b": "mxfp4", "n": 45, "k": 96, )"
                                  R"("backend": "small", "config": )" +
                                  config + "}"));
    std::vector<float> c(m * n, 12345.0f);
    Problem call = p;
    call.c.data = c.data();
    const Threads threads(2);
    const Plan plan = context.plan(call, {.backend = "small"});
    EXPECT_EQ(plan.choice().config_source, source) << config;
    std::vector<char> memory(static_cast<std::size_t>(plan.workspace_bytes()) + 64);
    void* workspace = memory.data();
    std::size_t room = memory.size();
    std::align(64, static_cast<std::size_t>(plan.workspace_bytes()), workspace, room);
    plan.run(call, workspace, plan.workspace_bytes(), threads.native());
    return c;
  };
  const std::vector<float> expected = product("", ConfigSource::backend);
  const auto equal = [&](const std::vector<float>& c) {
    return std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) == 0;
  };
  for (const char* good : {"{\"tile_m\": 4, \"tile_n\": 16}", "{\"tile_m\": 1000, \"tile_n\": 8}", "{}",
                           "{\"tile_m\": 2147483647, \"tile_n\": 2147483640}"})
    EXPECT_TRUE(equal(product(good, ConfigSource::tuning))) << good;
  for (const char* wrong : {"{\"tile_n\": 12}", "{\"stages\": 4}", "{\"tile_m\": 4, \"swap_ab\": true}"})
    EXPECT_TRUE(equal(product(wrong, ConfigSource::backend))) << wrong;
}

TEST(Target, CandidatesAreTheNeighboursThatAreAccepted) {
  class Tiled : public Impl::Target {
   public:
    Tiled() : Target(nullptr) {}
    const char* name() const override { return "tiled"; }
    const char* description() const override { return ""; }
    ExecutionKind execution() const override { return ExecutionKind::host; }
    Support supports(const Problem&) const override { return {true}; }
    double cost(const Problem&) const override { return 1; }
    Config config(const Problem&) const override { return {.tile_m = 64, .stages = 1, .split_k = 1}; }
    Support accepts(const Problem&, const Config& c) const override {
      Config others = c;
      others.tile_m = others.stages = others.split_k = 0;
      others.swap_ab = false;
      return {c.tile_m <= 64 && c.split_k <= 2 && others == Config{}, "too large"};
    }
    std::int64_t workspace_bytes(const Problem&, const Config&) const override { return 0; }
    PreparedForm prepared_form(const Problem&) const override { return {}; }
  };
  const Tiled tiled;
  const Problem p = matmul_problem(64, 64, 64);
  Config found[8];
  ASSERT_EQ(tiled.candidates(p, found, 8), 5);
  const char* const expected[] = {"tile_m 64, stages 1, split_k 1", "tile_m 32, stages 1, split_k 1",
                                  "tile_m 64, stages 2, split_k 1", "tile_m 64, stages 1, split_k 2",
                                  "tile_m 64, stages 1, split_k 1, swap_ab"};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(to_string(found[i]), expected[i]);
  Config first[2];
  EXPECT_EQ(tiled.candidates(p, first, 1), 5);
  EXPECT_EQ(to_string(first[0]), expected[0]);
  EXPECT_EQ(to_string(first[1]), "automatic");
  EXPECT_EQ(tiled.candidates(p, nullptr, 0), 5);
}

TEST(Target, IsExplainedAsIfItWereThere) {
  FakeBackend gpu("gpu"), missing("missing", 2e-9), host("host");
  gpu.kind = ExecutionKind::cuda;
  gpu.is_available = {false, "there is no such device"};
  missing.kind = ExecutionKind::cuda;
  missing.is_available = {false, "there is none of it either"};
  Context context;
  for (const Backend* b : {&gpu, &missing, &host}) context.add_backend(*b);
  Problem p = matmul_problem(1024, 1024, 1024);
  p.concurrency = 8;
  const Explanation e = context.explain(p, {.target = "missing"});
  EXPECT_EQ(e.problem.execution, ExecutionKind::cuda);
  EXPECT_EQ(e.choice.name, "missing");
  EXPECT_EQ(e.choice.config.tile_m, 16);
  EXPECT_EQ(e.choice.error, "");
  EXPECT_EQ(
      e.to_string(),
      "matmul on cuda (device 0): m 1024, n 1024, k 1024; a 1024 x 1024 mxfp4, linear scales; b 1024 x 1024 mxfp4, "
      "linear scales; c 1024 x 1024 float\n"
      "  backend    missing\n"
      "  why        the cheapest that can do it, by its estimate of 2e-09 s\n"
      "  config     tile_m 16, stages 3\n"
      "  workspace  1024 bytes\n"
      "  candidates, in order of preference\n"
      "    absent     no: not part of this build: made up for a \"test\" with a \\\n"
      "    distant    no: not part of this build: too far\n"
      "    gpu        no: not available: there is no such device, 1e-09 s\n"
      "    missing    chosen, 2e-09 s\n"
      "    host       no: runs on host, and this call on cuda\n"
      "    reference  able, not chosen, 0.00215 s\n");

  missing.rule = [](const Problem&) { return Support{false, "only on Sundays"}; };
  const Choice refused = context.choose(p, {.target = "missing"});
  EXPECT_EQ(refused.name, "reference");
  EXPECT_EQ(refused.why, "no backend that could do it can run here");
  EXPECT_EQ(context.choose(p, {.target = "host"}).name, "host");
  EXPECT_EQ(context.choose(p, {.target = "elsewhere"}).error, "microscale::matmul: there is no target elsewhere");
  EXPECT_EQ(context.choose(p, {.target = "distant"}).error,
            "microscale::matmul: there is nothing to plan for target distant with: not part of this build: too far");
  EXPECT_NE(message_of<std::invalid_argument>([&] { context.plan(p, {.target = "missing"}); }).find("target missing"),
            std::string::npos);
}

TEST(Target, WhoCouldButCannotRunHereIsNotCalledUnable) {
  FakeBackend one("one");
  one.is_available = {false, "not today"};
  Context context;
  context.add_backend(one);
  const Problem p = matmul_problem(1024, 1024, 1024);
  EXPECT_EQ(context.choose(p).why, "no backend that could do it can run here");
  one.rule = [](const Problem&) { return Support{false, "no"}; };
  EXPECT_EQ(context.choose(p).why, "no backend can do it");
}

}  // namespace
}  // namespace microscale::Test
