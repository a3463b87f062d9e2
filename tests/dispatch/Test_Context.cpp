#include <Test_Dispatch.hpp>

// Contexts: what they list, their cache of plans, running plans, and threads.
namespace microscale::Test {
namespace {

constexpr std::int64_t large = 1024;

TEST(Context, ListsAllBackendsWithTheReferenceLast) {
  const auto all = backends();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].name, "distant");
  EXPECT_FALSE(all[1].compiled);
  EXPECT_FALSE(all[1].available);
  EXPECT_EQ(all[1].reason, "not part of this build: too far");
  EXPECT_EQ(all.back().name, "reference");
  EXPECT_TRUE(all.back().compiled && all.back().available);
  EXPECT_EQ(all.back().reason, "");

  FakeBackend missing("missing");
  missing.is_available = {false, "there is no such device"};
  Context context;
  context.add_backend(missing);
  const std::vector<BackendInfo> ours = context.backends();
  ASSERT_EQ(ours.size(), 4u);
  EXPECT_EQ(ours[2].name, "missing");
  EXPECT_TRUE(ours[2].compiled);
  EXPECT_FALSE(ours[2].available);
  EXPECT_EQ(ours[2].reason, "there is no such device");
  EXPECT_EQ(ours[3].name, "reference");
}

TEST(Context, NamesAreTakenOnceAndWellFormed) {
  const FakeBackend one("one"), again("one"), reference("reference"), known("distant"), odd("My Backend"), empty("");
  Context context;
  context.add_backend(one);
  for (const Backend* b : {&again, &reference, &known, &odd, &empty})
    EXPECT_THROW(context.add_backend(*b), std::invalid_argument) << b->name();
  EXPECT_EQ(context.backends().size(), 4u);
}

TEST(Context, PlansAreRemembered) {
  const FakeBackend one("one");
  Context context;
  context.add_backend(one);
  for (int i = 0; i < 10; ++i) context.plan(matmul_problem(large, large, large));
  EXPECT_EQ(one.asked, 1);
  context.plan(matmul_problem(large, large, large + 1));
  EXPECT_EQ(one.asked, 2);
  context.explain(matmul_problem(large, large, large));
  EXPECT_EQ(one.asked, 3);  // explain asks afresh
  context.clear_plans();
  context.plan(matmul_problem(large, large, large));
  EXPECT_EQ(one.asked, 4);
}

TEST(Context, AnotherContextHasPlansOfItsOwn) {
  const FakeBackend one("one");
  Context a, b;
  a.add_backend(one);
  const Problem p = matmul_problem(large, large, large);
  EXPECT_EQ(a.plan(p).backend(), &one);
  EXPECT_EQ(b.plan(p).backend(), nullptr);
}

TEST(Context, TheCacheIsBoundedAndKeepsWhatIsUsed) {
  const FakeBackend one("one");
  Context context;
  context.add_backend(one);
  const Problem used = matmul_problem(large, large, large);
  context.plan(used);
  for (std::int64_t m = 1; m <= 1000; ++m) {
    context.plan(matmul_problem(large + m, large, large));
    context.plan(used);
  }
  EXPECT_EQ(one.asked, 1001);  // the plan in use was never lost
  context.plan(matmul_problem(large + 1, large, large));
  EXPECT_EQ(one.asked, 1002);  // one of long ago was
}

TEST(Context, APlanForAlignedDataIsNotUsedForOther) {
  FakeBackend aligned("aligned");
  aligned.rule = [](const Problem& p) {
    return reinterpret_cast<std::uintptr_t>(p.a.data) % 16 ? Support{false, "a is aligned to 16"} : Support{true};
  };
  Context context;
  context.add_backend(aligned);
  alignas(64) static char data[128];
  Problem p = matmul_problem(large, large, large);
  p.a.data = data;
  EXPECT_EQ(context.plan(p).backend(), &aligned);
  p.a.data = data + 4;
  EXPECT_EQ(context.plan(p).backend(), nullptr);
}

TEST(Context, RunLaunchesWithTheConfiguration) {
  const FakeBackend one("one");
  Context context;
  context.add_backend(one);
  const Problem p = matmul_problem(large, large, large);
  const Config config{.tile_m = 2};
  const Threads threads(1);
  alignas(64) char workspace[128];
  context.plan(p, {.config = &config}).run(p, workspace, sizeof workspace, threads.native());
  EXPECT_EQ(one.launched, 1);
  EXPECT_EQ(one.last_tile_m, 2);
}

TEST(Context, RunChecksBeforeItLaunches) {
  const FakeBackend one("one");
  Context context;
  context.add_backend(one);
  const Problem p = matmul_problem(large, large, large);
  const Plan plan = context.plan(p);
  const Threads threads(1);
  alignas(64) char workspace[64 * 17];
  const auto refusal = [&](const Problem& problem, void* memory, std::int64_t bytes, const Native& native) {
    return message_of<std::invalid_argument>([&] { plan.run(problem, memory, bytes, native); });
  };
  EXPECT_EQ(refusal(p, workspace, 1023, threads.native()),
            "microscale::matmul: workspace has 1023 bytes; expected at least 1024");
  EXPECT_EQ(refusal(p, nullptr, 4096, threads.native()),
            "microscale::matmul: workspace has 0 bytes; expected at least 1024");
  EXPECT_NE(refusal(p, workspace + 1, 1024, threads.native()).find("workspace is not aligned"), std::string::npos);
  EXPECT_NE(refusal(matmul_problem(large, large, 32), workspace, 1024, threads.native()).find("not the one"),
            std::string::npos);
  Native other = threads.native();
  other.kind = ExecutionKind::cuda;
  EXPECT_NE(refusal(p, workspace, 1024, other).find("native instance is on cuda"), std::string::npos);
  other = threads.native();
  other.parallel_for = nullptr;
  EXPECT_NE(refusal(p, workspace, 1024, other).find("no parallel_for"), std::string::npos);
  EXPECT_EQ(one.launched, 0);
  plan.run(p, workspace, 1024, threads.native());
  EXPECT_EQ(one.launched, 1);
}

TEST(Context, AFailedLaunchIsAnError) {
  FakeBackend one("one");
  one.form = {64, 0};
  one.outcome = {false, "the device fell off"};
  Context context;
  context.add_backend(one);
  const Problem p = matmul_problem(large, large, large);
  const Threads threads(1);
  alignas(64) char workspace[1024];
  EXPECT_EQ(
      message_of<std::runtime_error>([&] { context.plan(p).run(p, workspace, sizeof workspace, threads.native()); }),
      "microscale::matmul: backend one failed: the device fell off");
  EXPECT_EQ(message_of<std::runtime_error>([&] {
              context.plan(p, {.preparing = true}).prepare(p, workspace, sizeof workspace, threads.native());
            }),
            "microscale::matmul: backend one failed to prepare b: the device fell off");
}

TEST(Context, ManyThreadsPlanRunAndChangeSettings) {
  const FakeBackend one("one"), two("two", 2e-9);
  Context context;
  context.add_backend(one);
  context.add_backend(two);
  std::atomic<int> wrong = 0, runs = 0;
  std::vector<std::thread> team;
  for (int t = 0; t < 6; ++t)
    team.emplace_back([&, t] {
      const Threads threads(1);
      alignas(64) char workspace[1024];
      for (int i = 0; i < 400; ++i) {
        if (t == 0) {
          context.force(i % 2 ? "two" : "");
          if (i % 10 == 0) context.clear_plans();
          continue;
        }
        const Problem p = matmul_problem(large + i % 50, large, large);
        const Plan plan = context.plan(p);
        if (plan.backend() != &one && plan.backend() != &two) ++wrong;
        const Plan forced = context.plan(p, {.backend = "one"});
        if (forced.backend() != &one) ++wrong;
        plan.run(p, workspace, sizeof workspace, threads.native());
        ++runs;
      }
    });
  for (std::thread& t : team) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(one.launched + two.launched, runs);
  context.force("two");
  EXPECT_EQ(context.plan(matmul_problem(large, large, large)).backend(), &two);
}

TEST(Context, TheDefaultOneIsOne) { EXPECT_EQ(&default_context(), &default_context()); }

}  // namespace
}  // namespace microscale::Test
