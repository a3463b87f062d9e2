#include <Microscale_Matmul.hpp>
#include <Microscale_Prepare.hpp>
#include <Microscale_Quantize.hpp>
#include <Small_Backend.hpp>
#include <Test_Dispatch.hpp>

#include <random>

// A backend that knows no Kokkos, run through the Kokkos API on the caller's instances. Its results are the reference's
// to the last bit.
namespace microscale::Test {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Space = Exec::memory_space;
using Output = Kokkos::View<float**, Kokkos::LayoutRight, Space>;
using Bytes = Kokkos::View<std::byte*, Space>;

constexpr float poison = 12345.0f;

BlockScaledMatrix<MXFP4, Space> random_matrix(std::int64_t rows, std::int64_t cols, unsigned seed) {
  Output values("values", rows, cols);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) values(i, j) = std::ldexp(normal(random), static_cast<int>(j / 32 % 7));
  BlockScaledMatrix<MXFP4, Space> result("matrix", rows, cols);
  quantize(Exec(), values, result);
  Exec().fence();
  return result;
}

Output poisoned(std::int64_t m, std::int64_t n) {
  Output c("c", m, n);
  Kokkos::deep_copy(c, poison);
  return c;
}

void expect_equal(const Output& given, const Output& expected) {
  for (std::size_t i = 0; i < expected.extent(0); ++i)
    for (std::size_t j = 0; j < expected.extent(1); ++j) ASSERT_EQ(given(i, j), expected(i, j)) << i << ", " << j;
}

struct KokkosBackend : testing::Test {
  static constexpr std::int64_t m = 37, n = 51, k = 150;
  Exec exec;
  Context context;
  BlockScaledMatrix<MXFP4, Space> a = random_matrix(m, k, 1), b = random_matrix(n, k, 2);
  Output c = poisoned(m, n), expected = poisoned(m, n);

  KokkosBackend() { context.add_backend(backend_small::backend()); }
  MatmulOptions forced() { return {.backend = "small", .context = &context}; }

  template <class B, class E = Epilogue<>>
  Bytes workspace(const B& operand, const E& epilogue = {}) {
    return Bytes("workspace", workspace_bytes(matmul_problem(exec, a, operand, c, epilogue, forced()), forced()));
  }
};

std::vector<std::string> labels;  // of the kernels that were launched
void remember(const char* name, std::uint32_t, std::uint64_t*) { labels.emplace_back(name); }

TEST_F(KokkosBackend, GivesTheReferencesBitsUnderItsOwnLabel) {
  const auto epilogue = Epilogue{}.alpha(0.75f);
  reference::matmul(exec, a, b, expected, epilogue);
  const Bytes memory = workspace(b, epilogue);
  MatmulOptions options = forced();
  options.workspace = memory;
  labels.clear();
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(&remember);
  matmul(exec, a, b, c, epilogue, options);
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
  exec.fence();
  expect_equal(c, expected);
  EXPECT_EQ(labels, std::vector<std::string>(3, "microscale::matmul[small]"));
}

TEST_F(KokkosBackend, AUsersFunctorFollows) {
  const auto epilogue =
      Epilogue{}.alpha(2.0f).then(KOKKOS_LAMBDA(std::int64_t i, std::int64_t j, float v) { return v + i - 2 * j; });
  reference::matmul(exec, a, b, expected, epilogue);
  const Bytes memory = workspace(b, epilogue);
  MatmulOptions options = forced();
  options.workspace = memory;
  matmul(exec, a, b, c, epilogue, options);
  exec.fence();
  expect_equal(c, expected);
}

TEST_F(KokkosBackend, TooLittleWorkspaceThrowsBeforeAnythingIsWritten) {
  const std::int64_t needed = workspace(b).extent(0);
  const Bytes memory("workspace", needed - 1);
  MatmulOptions options = forced();
  options.workspace = memory;
  EXPECT_EQ(message_of<std::invalid_argument>([&] { matmul(exec, a, b, c, Epilogue{}, options); }),
            "microscale::matmul: workspace has " + std::to_string(needed - 1) + " bytes; expected at least " +
                std::to_string(needed));
  expect_equal(c, poisoned(m, n));
}

TEST_F(KokkosBackend, ForcedWhereItCannotRunThrows) {
  const Kokkos::View<float**, Kokkos::LayoutLeft, Space> left("left", m, n);
  EXPECT_EQ(message_of<std::runtime_error>([&] { matmul(exec, a, b, left, Epilogue{}, forced()); }),
            "microscale::matmul: backend small was forced by the call's options and cannot run it: only output with "
            "contiguous rows");
  EXPECT_NE(message_of<std::runtime_error>([&] {
              matmul(exec, a, b, c, Epilogue{}.relu(), forced());
            }).find("no epilogue but alpha"),
            std::string::npos);
  EXPECT_EQ(left(0, 0), 0.0f);

  context.force("small");  // from outside, and for every call
  EXPECT_THROW(matmul(exec, a, b, left, Epilogue{}, {.context = &context}), std::runtime_error);
  matmul(exec, a, b, left, Epilogue{}, {.backend = "reference", .context = &context});
  reference::matmul(exec, a, b, expected);
  exec.fence();
  EXPECT_EQ(left(3, 5), expected(3, 5));
}

TEST_F(KokkosBackend, WhatItRefusesTheReferenceDoes) {
  matmul(exec, a, b, c, Epilogue{}.relu(), {.context = &context});
  reference::matmul(exec, a, b, expected, Epilogue{}.relu());
  exec.fence();
  expect_equal(c, expected);
  const Explanation why = context.explain(matmul_problem(exec, a, b, c, Epilogue{}.relu()));
  EXPECT_EQ(why.choice.name, "reference");
  EXPECT_NE(why.to_string().find("no: no epilogue but alpha"), std::string::npos) << why.to_string();
}

TEST_F(KokkosBackend, TakesAPreparedOperandWithAndWithoutItsOriginal) {
  reference::matmul(exec, a, b, expected);
  for (const bool keep : {true, false}) {
    const auto prepared =
        prepare(exec, b, {.typical_m = m, .keep_original = keep, .backend = "small", .context = &context});
    EXPECT_GT(prepared.prepared_bytes(), 0);
    EXPECT_EQ(prepared.has_original(), keep);
    const Bytes memory = workspace(prepared);
    EXPECT_LT(memory.extent(0), workspace(b).extent(0));
    MatmulOptions options = forced();
    options.workspace = memory;
    Kokkos::deep_copy(c, poison);
    matmul(exec, a, prepared, c, Epilogue{}, options);
    exec.fence();
    expect_equal(c, expected);

    MatmulOptions by_reference{.backend = "reference", .context = &context};
    Kokkos::deep_copy(c, poison);
    if (keep) {
      matmul(exec, a, prepared, c, Epilogue{}, by_reference);
      exec.fence();
      expect_equal(c, expected);
    } else {
      EXPECT_THROW(matmul(exec, a, prepared, c, Epilogue{}, by_reference), std::runtime_error);
    }
  }
}

/// Runs a loop on the caller's threads and remembers which they were.
class ThreadRecorder final : public FakeBackend {
 public:
  using FakeBackend::FakeBackend;
  std::int64_t workspace_bytes(const Problem&, const Config&) const override { return 0; }
  Status launch(const Problem& problem, const Config&, void*, const Native& native) const override {
    planned_concurrency = problem.concurrency;
    native_concurrency = native.concurrency;
    native.parallel_for(
        native.context, 2000,
        [](void* self, std::int64_t) {
          auto& recorder = *static_cast<const ThreadRecorder*>(self);
          const std::lock_guard lock(recorder.mutex);
          recorder.ids.insert(std::this_thread::get_id());
          ++recorder.iterations;
        },
        const_cast<ThreadRecorder*>(this));
    return {};
  }
  mutable std::mutex mutex;
  mutable std::set<std::thread::id> ids;
  mutable int iterations = 0, planned_concurrency = 0, native_concurrency = 0;
};

TEST_F(KokkosBackend, StaysWithinTheThreadsOfItsInstance) {
  const auto instances = Kokkos::Experimental::partition_space(exec, 3, 1);
  for (const auto& instance : instances) {
    const ThreadRecorder recorder("recorder");
    Context own;
    own.add_backend(recorder);
    matmul(instance, a, b, c, Epilogue{}, {.backend = "recorder", .context = &own});
    EXPECT_EQ(recorder.iterations, 2000);
    EXPECT_EQ(recorder.planned_concurrency, instance.concurrency());
    EXPECT_EQ(recorder.native_concurrency, instance.concurrency());
    EXPECT_LE(static_cast<int>(recorder.ids.size()), instance.concurrency());
  }
}

TEST_F(KokkosBackend, RunsOnSeveralInstancesAtOnce) {
  reference::matmul(exec, a, b, expected);
  exec.fence();
  const auto instances = Kokkos::Experimental::partition_space(exec, 2, 2);
  std::vector<Output> outputs = {poisoned(m, n), poisoned(m, n)};
  std::vector<Bytes> memory;
  for (int t = 0; t < 2; ++t)
    memory.emplace_back("workspace", workspace_bytes(matmul_problem(instances[t], a, b, outputs[t]), forced()));
  std::vector<std::thread> team;
  for (int t = 0; t < 2; ++t)
    team.emplace_back([&, t] {
      MatmulOptions options = forced();
      options.workspace = memory[t];
      for (int i = 0; i < 20; ++i) matmul(instances[t], a, b, outputs[t], Epilogue{}, options);
      instances[t].fence();
    });
  for (std::thread& t : team) t.join();
  for (const Output& output : outputs) expect_equal(output, expected);
}

}  // namespace
}  // namespace microscale::Test
