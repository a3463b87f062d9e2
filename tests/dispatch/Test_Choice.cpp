#include <Test_Dispatch.hpp>

// What is chosen, and why, when backends say what the test wants.
namespace microscale::Test {
namespace {

constexpr std::int64_t large = 1024;  // the reference's estimate is far above the fakes'

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

const Candidate& candidate(const Choice& choice, std::string_view name) {
  for (const Candidate& c : choice.candidates)
    if (c.name == name) return c;
  static const Candidate none{};
  return none;
}

TEST(Choice, ReferenceWhereThereIsNothingElse) {
  Context context;
  const Plan plan = context.plan(matmul_problem(large, large, large));
  EXPECT_EQ(plan.backend(), nullptr);
  EXPECT_EQ(plan.workspace_bytes(), 0);
  EXPECT_EQ(plan.choice().name, "reference");
  ASSERT_EQ(plan.choice().candidates.size(), 3u);
  EXPECT_EQ(plan.choice().candidates.back().name, "reference");
  EXPECT_TRUE(contains(candidate(plan.choice(), "distant").reason, "not part of this build"));
  EXPECT_THROW(plan.run(matmul_problem(large, large, large), nullptr, 0, Native{}), std::logic_error);
}

TEST(Choice, TheCheapestWins) {
  const FakeBackend dear("dear", 2e-9), cheap("cheap", 1e-9), dearest("dearest", 3e-9);
  Context context;
  for (const Backend* b : {&dear, &cheap, &dearest}) context.add_backend(*b);
  const Plan plan = context.plan(matmul_problem(large, large, large));
  EXPECT_EQ(plan.backend(), &cheap);
  EXPECT_EQ(plan.choice().config_source, ConfigSource::backend);
  EXPECT_EQ(plan.choice().config.tile_m, 16);
  EXPECT_EQ(plan.workspace_bytes(), 64 * 16);
  EXPECT_EQ(candidate(plan.choice(), "dear").cost, 2e-9);
}

TEST(Choice, EqualCostsGoByOrder) {
  const FakeBackend first("first"), second("second");
  Context context;
  context.add_backend(first);
  context.add_backend(second);
  EXPECT_EQ(context.plan(matmul_problem(large, large, large)).backend(), &first);
}

TEST(Choice, TheReferenceWinsWhereABackendCostsMore) {
  const FakeBackend slow("slow", 1.0), unknown("unknown", std::nan(""));
  Context context;
  context.add_backend(slow);
  context.add_backend(unknown);
  const Choice choice = context.choose(matmul_problem(1, 1, 32));
  EXPECT_EQ(choice.backend, nullptr);
  EXPECT_TRUE(candidate(choice, "slow").able);
  EXPECT_TRUE(contains(choice.why, "no backend beats its estimate")) << choice.why;
}

TEST(Choice, RefusalsAreKeptWithTheirReasons) {
  FakeBackend refuses("refuses"), other_kind("other_kind"), missing("missing"), able("able", 2e-9);
  refuses.rule = [](const Problem& p) { return p.k % 2 ? Support{false, "k is even"} : Support{true}; };
  other_kind.kind = ExecutionKind::cuda;
  missing.is_available = {false, "there is no such device"};
  Context context;
  for (const Backend* b : std::initializer_list<const Backend*>{&refuses, &other_kind, &missing, &able})
    context.add_backend(*b);
  const Choice choice = context.choose(matmul_problem(large, large, 65));
  EXPECT_EQ(choice.backend, &able);
  EXPECT_EQ(candidate(choice, "refuses").reason, "k is even");
  EXPECT_EQ(candidate(choice, "other_kind").reason, "runs on cuda, and this call on host");
  EXPECT_EQ(candidate(choice, "missing").reason, "not available: there is no such device");
  EXPECT_EQ(candidate(choice, "missing").cost, 1e-9);  // it can be explained where it cannot run
  EXPECT_EQ(other_kind.asked, 0);
  EXPECT_EQ(context.choose(matmul_problem(large, large, 64)).backend, &refuses);
}

TEST(Choice, ForcedByTheCall) {
  const FakeBackend cheap("cheap", 1e-9), slow("slow", 5.0);
  Context context;
  context.add_backend(cheap);
  context.add_backend(slow);
  const Problem p = matmul_problem(large, large, large);
  const Plan plan = context.plan(p, {.backend = "slow"});
  EXPECT_EQ(plan.backend(), &slow);
  EXPECT_EQ(plan.choice().forced_by, "the call's options");
  EXPECT_EQ(context.plan(p).backend(), &cheap);  // not the plan of the forced call
  EXPECT_EQ(context.plan(p, {.backend = "reference"}).backend(), nullptr);
}

TEST(Choice, ForcedByTheEnvironment) {
  const ForceVariable variable("matmul=slow");
  const FakeBackend cheap("cheap", 1e-9), slow("slow", 5.0);
  Context context;
  context.add_backend(cheap);
  context.add_backend(slow);
  Problem p = matmul_problem(large, large, large);
  EXPECT_EQ(context.plan(p).backend(), &slow);
  EXPECT_EQ(context.plan(p).choice().forced_by, "MICROSCALE_FORCE_BACKEND");
  EXPECT_EQ(context.plan(p, {.backend = "cheap"}).backend(), &cheap);  // the call beats the environment
  p.operation = Operation::grouped_matmul;
  EXPECT_EQ(context.plan(p).backend(), &cheap);
}

TEST(Choice, TheEnvironmentIsReadOnceAndOnDemand) {
  const FakeBackend one("one"), two("two", 2e-9);
  const Problem p = matmul_problem(large, large, large);
  const ForceVariable variable("two");
  Context context;
  context.add_backend(one);
  context.add_backend(two);
  {
    const ForceVariable later("one");
    EXPECT_EQ(context.plan(p).backend(), &two);
    context.force_from_environment();
    EXPECT_EQ(context.plan(p).backend(), &one);
  }
  context.force("matmul=two");
  EXPECT_EQ(context.plan(p).backend(), &two);
  context.force("");
  EXPECT_EQ(context.plan(p).backend(), &one);
}

TEST(Choice, AMalformedEnvironmentIsAnError) {
  const ForceVariable variable("matmul:small");
  EXPECT_TRUE(contains(message_of<std::invalid_argument>([] { Context context; }),
                       "MICROSCALE_FORCE_BACKEND \"matmul:small\""));
}

TEST(Choice, ForcingWhatIsNotThereNamesWhatIs) {
  const FakeBackend one("one");
  Context context;
  context.add_backend(one);
  const std::string text =
      message_of<std::runtime_error>([&] { context.plan(matmul_problem(1, 1, 32), {.backend = "avx521"}); });
  EXPECT_EQ(
      text,
      "microscale::matmul: backend avx521 was forced by the call's options, but there is no such backend (there are "
      "absent, distant, one, reference)");
}

TEST(Choice, ForcingAnUnknownBackendIsAnErrorWithoutAnyBackend) {
  Context context;
  context.force("nonsense");
  EXPECT_TRUE(contains(message_of<std::runtime_error>([&] { context.plan(matmul_problem(1, 1, 32)); }),
                       "nonsense was forced by Context::force, but there is no such backend"));
}

TEST(Choice, ForcingWhatCannotRunIsAnErrorAndNoFallback) {
  FakeBackend refuses("refuses"), missing("missing"), other("other");
  refuses.rule = [](const Problem&) { return Support{false, "the moon is full"}; };
  missing.is_available = {false, "there is no such device"};
  Context context;
  for (const Backend* b : {&refuses, &missing, &other}) context.add_backend(*b);
  const Problem p = matmul_problem(large, large, large);
  const auto refusal = [&](std::string_view name) {
    return message_of<std::runtime_error>([&] { context.plan(p, {.backend = name}); });
  };
  EXPECT_EQ(refusal("refuses"),
            "microscale::matmul: backend refuses was forced by the call's options and cannot run it: the moon is full");
  EXPECT_TRUE(contains(refusal("missing"), "cannot run it: not available: there is no such device"));
  EXPECT_TRUE(contains(refusal("distant"), "cannot run it: not part of this build: too far"));
}

TEST(Choice, AConfigurationOfTheCaller) {
  const FakeBackend one("one");
  Context context;
  context.add_backend(one);
  const Problem p = matmul_problem(large, large, large);
  const Config config{.tile_m = 8};
  const Plan plan = context.plan(p, {.config = &config});
  EXPECT_EQ(plan.choice().config.tile_m, 8);
  EXPECT_EQ(plan.choice().config_source, ConfigSource::caller);
  EXPECT_EQ(plan.workspace_bytes(), 64 * 8);
  EXPECT_EQ(context.plan(p).choice().config.tile_m, 16);  // not the plan with the caller's
  const Config bad{.tile_m = 7};
  EXPECT_EQ(message_of<std::invalid_argument>([&] { context.plan(p, {.config = &bad}); }),
            "microscale::matmul: configuration (tile_m 7) is not accepted by backend one: no tile has 7 rows");
  const Choice choice = context.choose(p, {.backend = "reference", .config = &bad});
  EXPECT_EQ(choice.config_source, ConfigSource::ignored);
  EXPECT_EQ(choice.error, "");
}

TEST(Choice, APolicyOverrules) {
  const FakeBackend cheap("cheap", 1e-9), slow("slow", 5.0);
  FakeBackend refuses("refuses");
  refuses.rule = [](const Problem&) { return Support{false, "no"}; };
  Context context;
  for (const Backend* b : {&cheap, &slow, static_cast<const FakeBackend*>(&refuses)}) context.add_backend(*b);
  const Problem p = matmul_problem(large, large, large);
  std::string_view answer = "slow", seen;
  std::size_t candidates = 0;
  context.set_policy([&](const Problem& problem, const Choice& choice) {
    seen = choice.name;
    candidates = choice.candidates.size();
    return problem.m == large ? answer : std::string_view{};
  });
  EXPECT_EQ(context.plan(p).backend(), &slow);
  EXPECT_EQ(context.plan(p).choice().why, "named by the policy");
  EXPECT_EQ(seen, "cheap");
  EXPECT_EQ(candidates, 6u);
  EXPECT_EQ(context.plan(matmul_problem(large + 1, large, large)).backend(), &cheap);  // agreed
  EXPECT_EQ(context.plan(p, {.backend = "cheap"}).backend(), &cheap);                  // the force stands above it

  answer = "refuses";
  context.clear_plans();
  EXPECT_TRUE(contains(message_of<std::runtime_error>([&] { context.plan(p); }), "refuses was named by the policy"));
  answer = "reference";
  EXPECT_EQ(context.plan(p).backend(), nullptr);
  context.set_policy({});
  EXPECT_EQ(context.plan(p).backend(), &cheap);
}

TEST(Choice, ChoosingForPreparationAsksForPreparedCosts) {
  FakeBackend plain("plain", 2e-9), prepares("prepares", 4e-9);
  prepares.form = {1000, 7};
  Context context;
  context.add_backend(plain);
  context.add_backend(prepares);
  Problem p = matmul_problem(large, large, large);
  EXPECT_EQ(context.plan(p).backend(), &plain);
  const Plan preparing = context.plan(p, {.preparing = true});
  EXPECT_EQ(preparing.backend(), &prepares);  // 4e-9 / 4
  EXPECT_EQ(preparing.prepared_bytes(), 1000);
  EXPECT_EQ(context.plan(p, {.backend = "plain", .preparing = true}).prepared_bytes(), 0);

  alignas(64) char memory[1000];
  const Threads threads(1);
  const Operand prepared = preparing.prepare(p, memory, sizeof memory, threads.native());
  EXPECT_EQ(prepared.prepared_by, &prepares);
  EXPECT_EQ(prepared.prepared_form.tag, 7);
  EXPECT_EQ(prepared.prepared, memory);
  EXPECT_TRUE(contains(message_of<std::invalid_argument>([&] { preparing.prepare(p, memory, 999, threads.native()); }),
                       "memory for the prepared operand has 999 bytes; expected at least 1000"));
  p.b = prepared;
  EXPECT_EQ(context.plan(p).backend(), &prepares);
}

TEST(Choice, APreparedOperandWithoutItsOriginalBelongsToItsBackend) {
  FakeBackend prepares("prepares", 100.0), cheap("cheap");
  prepares.form = {64, 0};
  Context context;
  context.add_backend(prepares);
  context.add_backend(cheap);
  Problem p = matmul_problem(large, large, large);
  p.b.prepared_by = &prepares;
  p.b.prepared_form = prepares.form;
  EXPECT_EQ(context.plan(p).backend(), &cheap);
  p.b.original_dropped = true;
  const Choice choice = context.choose(p);
  EXPECT_EQ(choice.backend, &prepares);  // dearer than the reference, which cannot read b
  EXPECT_EQ(candidate(choice, "cheap").reason, "b is kept only in the prepared form of prepares");
  EXPECT_FALSE(candidate(choice, "reference").able);
  EXPECT_TRUE(contains(message_of<std::runtime_error>([&] { context.plan(p, {.backend = "reference"}); }),
                       "cannot run it: b is kept only in the prepared form of prepares"));
  prepares.rule = [](const Problem&) { return Support{false, "not today"}; };
  context.clear_plans();
  EXPECT_EQ(message_of<std::runtime_error>([&] { context.plan(p); }),
            "microscale::matmul: no backend can run it, and b is kept only in the prepared form of prepares");
  Context without;  // knows no such backend, and has nothing else
  EXPECT_THROW(without.plan(p), std::runtime_error);
}

TEST(Choice, NoBackendQuantizesBeforeAUsersFunctor) {
  const FakeBackend one("one");
  Context context;
  context.add_backend(one);
  Problem p = matmul_problem(large, large, large);
  p.c.format = format_id<MXFP4>;
  EXPECT_EQ(context.plan(p).backend(), &one);
  p.user_functor = true;
  EXPECT_EQ(context.plan(p).backend(), nullptr);
  EXPECT_TRUE(contains(message_of<std::runtime_error>([&] { context.plan(p, {.backend = "one"}); }),
                       "only the reference calls a functor before it quantizes"));
}

TEST(Choice, BackendsAreAskedAboutNoData) {
  FakeBackend one("one");
  Problem seen;
  one.rule = [&](const Problem& p) {
    seen = p;
    return Support{true};
  };
  Context context;
  context.add_backend(one);
  float value = 0.0f;
  Problem p = matmul_problem(large, large, large);
  p.c.data = &value;
  p.epilogue.alpha = 0.3f;
  context.plan(p);
  EXPECT_NE(seen.c.data, &value);
  EXPECT_NE(seen.c.data, nullptr);
  EXPECT_EQ(seen.epilogue.alpha, 2.0f);
}

}  // namespace
}  // namespace microscale::Test
