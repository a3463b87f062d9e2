#include <Small_Backend.hpp>
#include <Test_Dispatch.hpp>

#include <cmath>
#include <cstring>
#include <random>

// A real backend through the whole of dispatch: chosen, prepared, given workspace and threads, and right to the last
// bit.
namespace microscale::Test {
namespace {

const Backend& small() { return backend_small::backend(); }

/// A random MXFP4 matrix with a row pitch and a scale pitch beyond what it needs, all of it kept as bytes.
struct Matrix {
  std::int64_t rows, cols, pitch, scale_pitch;
  std::vector<std::uint8_t> data, scales;

  Matrix(std::int64_t r, std::int64_t c, unsigned seed)
      : rows(r), cols(c), pitch((c + 1) / 2 + 5), scale_pitch((c + 31) / 32 + 2) {
    std::mt19937 random(seed);
    data.resize(rows * pitch);
    scales.resize(rows * scale_pitch);
    for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
    for (auto& byte : scales) byte = static_cast<std::uint8_t>(117 + random() % 20);
    if (cols % 2)
      for (std::int64_t i = 0; i < rows; ++i) data[i * pitch + cols / 2] &= 15;
  }
  /// From the OCP MX tables, not from the library.
  double value(std::int64_t i, std::int64_t k) const {
    static constexpr double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const int code = data[i * pitch + k / 2] >> (k % 2 ? 4 : 0) & 15;
    const int scale = scales[i * scale_pitch + k / 32];
    if (scale == 255) return std::nan("");
    return std::ldexp(code & 8 ? -magnitude[code & 7] : magnitude[code & 7], scale - 127);
  }
  Operand operand() {
    return {.format = format_id<MXFP4>,
            .rows = rows,
            .cols = cols,
            .data = data.data(),
            .row_stride = pitch,
            .scales = scales.data(),
            .scale_pitch = scale_pitch};
  }
};

struct Multiplication {
  Matrix a, b;
  std::int64_t c_pitch;
  std::vector<float> c;

  Multiplication(std::int64_t m, std::int64_t n, std::int64_t k)
      : a(m, k, 1), b(n, k, 2), c_pitch(n + 3), c(m * c_pitch, poison) {}

  static constexpr float poison = 12345.0f;

  Problem problem() {
    Problem p;
    p.m = a.rows;
    p.n = b.rows;
    p.k = a.cols;
    p.a = a.operand();
    p.b = b.operand();
    p.c = {.format = float32_id, .rows = p.m, .cols = p.n, .data = c.data(), .row_stride = c_pitch};
    return p;
  }

  /// The product in the contract's order: the dot product of a block (exact in double, and in float too), then one
  /// rounding a block as it is added.
  double expected(std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t block = 0; block < a.cols; block += 32) {
      double dot = 0;
      for (std::int64_t k = block; k < std::min(block + 32, a.cols); ++k) dot += a.value(i, k) * b.value(j, k);
      sum = static_cast<float>(sum + dot);
    }
    return sum;
  }

  void check(float alpha) const {
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t j = 0; j < c_pitch; ++j) {
        const float given = c[i * c_pitch + j];
        if (j >= b.rows)
          ASSERT_EQ(given, poison) << "padding at " << i << ", " << j;
        else if (const double value = expected(i, j); std::isnan(value))
          ASSERT_TRUE(std::isnan(given)) << i << ", " << j;
        else
          ASSERT_EQ(given, static_cast<float>(value) * alpha) << i << ", " << j;
      }
  }
};

/// Workspace of exactly the size asked for, poisoned and fenced on both sides.
class Workspace {
 public:
  explicit Workspace(std::int64_t size)
      : m_size(size), m_memory(static_cast<unsigned char*>(std::aligned_alloc(64, (size + 191) / 64 * 64))) {
    std::memset(m_memory, 0xA5, (size + 191) / 64 * 64);
  }
  ~Workspace() {
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(m_memory[i], 0xA5);
      EXPECT_EQ(m_memory[64 + m_size + i], 0xA5);
    }
    std::free(m_memory);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  void* data() const { return m_memory + 64; }

 private:
  std::int64_t m_size;
  unsigned char* m_memory;
};

TEST(SmallBackend, MultipliesExactly) {
  Context context;
  context.add_backend(small());
  const Threads threads(2);
  for (const auto [m, n, k] :
       {std::array{1, 1, 1}, {3, 5, 31}, {7, 9, 33}, {16, 32, 64}, {17, 33, 65}, {40, 71, 130}}) {
    Multiplication mult(m, n, k);
    Problem p = mult.problem();
    p.epilogue.alpha = 0.75f;
    p.concurrency = 2;
    const Plan plan = context.plan(p, {.backend = "small"});
    ASSERT_EQ(plan.backend(), &small());
    const Workspace workspace(plan.workspace_bytes());
    plan.run(p, workspace.data(), plan.workspace_bytes(), threads.native());
    mult.check(0.75f);
  }
  EXPECT_EQ(threads.loops(), 6u * 3u);  // decode a, decode b, multiply: all on the caller's threads
  EXPECT_TRUE(threads.ran_on_caller());
}

TEST(SmallBackend, ANaNScaleGivesNaNInItsRowOrColumnOnly) {
  Context context;
  context.add_backend(small());
  Multiplication mult(5, 9, 70);
  mult.a.scales[1 * mult.a.scale_pitch + 2] = 255;
  mult.b.scales[8 * mult.b.scale_pitch] = 255;
  const Problem p = mult.problem();
  const Plan plan = context.plan(p, {.backend = "small"});
  const Workspace workspace(plan.workspace_bytes());
  const Threads threads(1);
  plan.run(p, workspace.data(), plan.workspace_bytes(), threads.native());
  EXPECT_TRUE(std::isnan(mult.c[1 * mult.c_pitch]));
  EXPECT_TRUE(std::isnan(mult.c[8]));
  EXPECT_FALSE(std::isnan(mult.c[0]));
  mult.check(1.0f);
}

TEST(SmallBackend, EveryConfigurationGivesTheSameBits) {
  Context context;
  context.add_backend(small());
  Multiplication mult(33, 50, 96);
  const Problem p = mult.problem();
  const Threads threads(2);
  for (const Config& config : {Config{}, Config{.tile_m = 1, .tile_n = 8}, Config{.tile_m = 5}, Config{.tile_n = 64}}) {
    std::fill(mult.c.begin(), mult.c.end(), Multiplication::poison);
    const Plan plan = context.plan(p, {.backend = "small", .config = &config});
    const Workspace workspace(plan.workspace_bytes());
    plan.run(p, workspace.data(), plan.workspace_bytes(), threads.native());
    mult.check(1.0f);
  }
  const Config odd{.tile_n = 12};
  EXPECT_EQ(
      message_of<std::invalid_argument>([&] { context.plan(p, {.backend = "small", .config = &odd}); }),
      "microscale::matmul: configuration (tile_n 12) is not accepted by backend small: tile_n is a multiple of 8");
}

TEST(SmallBackend, PreparedOperandsGiveTheSameBitsWithLessWorkspace) {
  Context context;
  context.add_backend(small());
  Multiplication mult(6, 21, 97);
  Problem p = mult.problem();
  const Threads threads(2);
  const Plan preparing = context.plan(p, {.backend = "small", .preparing = true});
  const Workspace memory(preparing.prepared_bytes());
  const Operand prepared = preparing.prepare(p, memory.data(), preparing.prepared_bytes(), threads.native());
  const std::int64_t unprepared_bytes = context.plan(p, {.backend = "small"}).workspace_bytes();

  p.b = prepared;
  p.b.data = nullptr;
  p.b.scales = nullptr;
  p.b.original_dropped = true;
  const Plan plan = context.plan(p);
  ASSERT_EQ(plan.backend(), &small());  // nobody else can read b
  EXPECT_LT(plan.workspace_bytes(), unprepared_bytes);
  const Workspace workspace(plan.workspace_bytes());
  plan.run(p, workspace.data(), plan.workspace_bytes(), threads.native());
  mult.check(1.0f);
}

TEST(SmallBackend, IsChosenWhereItPays) {
  Context context;
  context.add_backend(small());
  EXPECT_EQ(context.plan(matmul_problem(1, 8, 32)).backend(), nullptr);
  EXPECT_EQ(context.plan(matmul_problem(512, 512, 512)).backend(), &small());
}

TEST(SmallBackend, RefusesWithReasons) {
  Context context;
  context.add_backend(small());
  const auto reason = [&](auto change) {
    Problem p = matmul_problem(512, 512, 512);
    change(p);
    const Choice choice = context.choose(p);
    EXPECT_EQ(choice.backend, nullptr);
    return choice.candidates[choice.candidates.size() - 2].reason;
  };
  EXPECT_EQ(reason([](Problem& p) { p.operation = Operation::grouped_matmul; }), "only matmul");
  EXPECT_EQ(reason([](Problem& p) { p.a.format = format_id<NVFP4>; }), "only mxfp4 operands");
  EXPECT_EQ(reason([](Problem& p) { p.b.scale_layout = ScaleLayout::tcgen; }), "only linear scales");
  EXPECT_EQ(reason([](Problem& p) { p.c.format = bfloat16_id; }), "only float output");
  EXPECT_EQ(reason([](Problem& p) { p.c.col_stride = 3; }), "only output with contiguous rows");
  EXPECT_EQ(reason([](Problem& p) { p.epilogue.gate = Gate::silu; }), "no gate");
  EXPECT_EQ(reason([](Problem& p) { p.epilogue.beta = 1.0f; }), "no epilogue but alpha");
  EXPECT_EQ(reason([](Problem& p) { p.execution = ExecutionKind::hip; }), "runs on host, and this call on hip");
}

TEST(SmallBackend, OnePlanRunsOnManyThreadsAtOnce) {
  Context context;
  context.add_backend(small());
  Multiplication mult(19, 40, 64);
  Problem any_data = mult.problem();  // planned for the least alignment that data may have
  any_data.a.data = any_data.b.data = any_data.a.scales = any_data.b.scales = reinterpret_cast<std::uint8_t*>(1);
  any_data.c.data = reinterpret_cast<float*>(4);
  const Plan plan = context.plan(any_data, {.backend = "small"});
  std::vector<Multiplication> copies(4, mult);
  std::vector<std::thread> team;
  for (Multiplication& copy : copies)
    team.emplace_back([&] {
      const Threads threads(2);
      for (int i = 0; i < 5; ++i) {
        const Workspace workspace(plan.workspace_bytes());
        plan.run(copy.problem(), workspace.data(), plan.workspace_bytes(), threads.native());
      }
    });
  for (std::thread& t : team) t.join();
  for (const Multiplication& copy : copies) copy.check(1.0f);
}

}  // namespace
}  // namespace microscale::Test
