#include "Avx512Operands.hpp"
#include <gtest/gtest.h>
#include <Microscale_Activation.hpp>
#include <Microscale_Avx512_Kernels.hpp>
#include <Microscale_Target.hpp>

#include <string>

// matmul and batched_matmul as a whole on the model of the processor, against docs/numerics.md, section 8, written out one
// element at a time. FP4 by FP4 has to have those very bits, and so has what is made of it: every epilogue, every output.
namespace {

using namespace microscale;
using namespace microscale::Test;

constexpr FormatId mxfp4 = format_id<MXFP4>, nvfp4 = format_id<NVFP4>;
constexpr ScaleLayout layouts[] = {ScaleLayout::linear, ScaleLayout::tcgen, ScaleLayout::cdna4, ScaleLayout::tile_8x4};
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

const Backend& target() { return Impl::avx512_target(&MICROSCALE_AVX512_NAMESPACE::kernels()); }

/// One thread, which takes the tasks of several the last one first.
Native backwards(int concurrency) {
  Native native;
  native.concurrency = concurrency;
  native.parallel_for = [](const void*, std::int64_t n, void (*body)(void*, std::int64_t), void* argument) {
    for (std::int64_t i = n; i-- > 0;) body(argument, i);
  };
  return native;
}

/// A launch as dispatch makes it.
void launch(Problem p, const Config* config = nullptr, int concurrency = 1) {
  p.concurrency = concurrency;
  ASSERT_TRUE(target().supports(p).supported) << target().supports(p).reason;
  const Config chosen = config != nullptr ? *config : target().config(p);
  ASSERT_TRUE(target().accepts(p, chosen).supported) << target().accepts(p, chosen).reason;
  ASSERT_EQ(target().workspace_bytes(p, chosen), 0);
  const Status status = target().launch(p, chosen, nullptr, backwards(concurrency));
  ASSERT_TRUE(status.ok) << status.message;
}

/// A problem whose b is in the prepared form alone.
struct PreparedProblem {
  Problem problem;
  AlignedBytes memory;
  explicit PreparedProblem(const Problem& p) : problem(p), memory(std::max<std::int64_t>(bytes(p), 64)) {
    const PreparedForm form = target().prepared_form(p);
    std::memset(memory.bytes.get(), 0xcc, static_cast<std::size_t>(form.bytes));
    EXPECT_TRUE(target().prepare(p, form, memory.bytes.get(), backwards(2)).ok);
    problem.b.prepared_by = &target();
    problem.b.prepared_form = form;
    problem.b.prepared = memory.bytes.get();
    problem.b.original_dropped = true;
    problem.b.data = nullptr;
    problem.b.scales = nullptr;
  }
  static std::int64_t bytes(const Problem& p) { return target().prepared_form(p).bytes; }
};

/// A plain C, poisoned, with room between its rows (or columns).
struct Output {
  FormatId format;
  std::int64_t rows, cols, row_stride, col_stride;
  std::vector<std::uint8_t> bytes;

  Output(FormatId f, std::int64_t r, std::int64_t c, bool columns_contiguous = false, std::int64_t batch = 1)
      : format(f),
        rows(r),
        cols(c),
        row_stride(columns_contiguous ? 1 : c + 3),
        col_stride(columns_contiguous ? r + 3 : 1),
        bytes(static_cast<std::size_t>(batch * stride() * size()), 0xff) {}
  std::int64_t size() const { return format == float32_id ? 4 : 2; }
  std::int64_t stride() const { return (rows + 3) * (cols + 3); }
  Operand operand() {
    Operand o;
    o.format = format;
    o.rows = rows;
    o.cols = cols;
    o.data = bytes.data();
    o.row_stride = row_stride;
    o.col_stride = col_stride;
    o.batch_stride = stride();
    return o;
  }
  float at(std::int64_t i, std::int64_t j, std::int64_t e = 0) const {
    const std::int64_t index = e * stride() + i * row_stride + j * col_stride;
    if (format == float32_id) return reinterpret_cast<const float*>(bytes.data())[index];
    if (format == float16_id) return static_cast<float>(reinterpret_cast<const half*>(bytes.data())[index]);
    return static_cast<float>(reinterpret_cast<const bf16*>(bytes.data())[index]);
  }
  void set(std::int64_t i, std::int64_t j, float x) {
    const std::int64_t index = i * row_stride + j * col_stride;
    if (format == float32_id)
      reinterpret_cast<float*>(bytes.data())[index] = x;
    else if (format == float16_id)
      reinterpret_cast<half*>(bytes.data())[index] = half(x);
    else
      reinterpret_cast<bf16*>(bytes.data())[index] = bf16(x);
  }
  /// What is not C's is as it was.
  void expect_room_untouched() const {
    std::vector<bool> of_c(static_cast<std::size_t>(stride()));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) of_c[static_cast<std::size_t>(i * row_stride + j * col_stride)] = true;
    for (std::size_t i = 0; i < of_c.size(); ++i)
      for (std::size_t b = 0; b < static_cast<std::size_t>(of_c[i] ? 0 : size()); ++b)
        ASSERT_EQ(bytes[i * static_cast<std::size_t>(size()) + b], 0xff) << "at element " << i;
  }
};

float rounded_to(FormatId f, float x) {
  if (f == float16_id) return static_cast<float>(half(x));
  if (f == bfloat16_id) return static_cast<float>(bf16(x));
  return x;
}

TestOperand random_operand(FormatId f, std::int64_t rows, std::int64_t cols, Wildness wildness, Dice& dice) {
  return f.block_size > 0 ? TestOperand(f, rows, cols, layouts[dice.below(4)], wildness, dice)
                          : TestOperand(f, rows, cols, dice.below(2) == 0, wildness, dice);
}

Problem problem_of(const TestOperand& a, const TestOperand& b, const Operand& c) {
  Problem p;
  p.a = a.operand;
  p.b = b.operand;
  p.c = c;
  p.m = a.operand.rows;
  p.n = b.operand.rows;
  p.k = a.operand.cols;
  static TensorScalePair ones;
  if (p.a.format.tensor_scale) p.a.tensor_scale = &ones;
  if (p.b.format.tensor_scale) p.b.tensor_scale = &ones;
  return p;
}

struct Shape {
  std::int64_t m, n, k;
};

/// On both sides of all the places where something ends: register tiles, vectors, tiles of C, pieces and slabs of K.
constexpr Shape shapes[] = {{17, 1, 1},     {18, 15, 15},   {19, 16, 16},  {20, 17, 31},  {21, 31, 32},  {23, 33, 33},
                            {32, 47, 63},   {33, 48, 65},   {34, 49, 160}, {48, 63, 511}, {17, 65, 512}, {22, 79, 513},
                            {36, 97, 1030}, {255, 20, 40},  {256, 16, 48}, {257, 33, 20}, {270, 70, 33}, {40, 191, 64},
                            {41, 192, 80},  {17, 193, 100}, {24, 230, 96}, {1, 200, 77},  {16, 50, 130}};

void expect_reference_bits(const TestOperand& a, const TestOperand& b, const Output& c, const std::string& what) {
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.cols; ++j) {
      const float expected = expected_element(a, i, b, j).reference;
      ASSERT_TRUE(same_bits(c.at(i, j), expected))
          << what << ": (" << i << ", " << j << ") is " << c.at(i, j) << ", expected " << expected;
    }
}

void check_fp4(FormatId fa, FormatId fb, const Shape& s, Wildness wildness, Dice& dice) {
  const TestOperand a = random_operand(fa, s.m, s.k, wildness, dice), b = random_operand(fb, s.n, s.k, wildness, dice);
  Output c(float32_id, s.m, s.n, dice.below(4) == 0);
  const Problem p = problem_of(a, b, c.operand());
  launch(p);
  expect_reference_bits(a, b, c,
                        "blocks of " + std::to_string(fa.block_size) + " and " + std::to_string(fb.block_size));
  c.expect_room_untouched();
  Output again(float32_id, s.m, s.n, c.row_stride == 1);
  PreparedProblem prepared(p);
  prepared.problem.c = again.operand();
  launch(prepared.problem, nullptr, 3);
  EXPECT_EQ(c.bytes, again.bytes) << "prepared";
}

TEST(Avx512Matmul, fp4_has_the_reference_bits) {
  Dice dice{std::mt19937_64(1)};
  int i = 0;
  for (const Shape& s : shapes) {
    SCOPED_TRACE(std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k));
    const FormatId fa = i % 3 == 0 ? nvfp4 : mxfp4, fb = i % 4 < 2 ? mxfp4 : nvfp4;
    check_fp4(fa, fb, s, Wildness::moderate, dice);
    ++i;
  }
  for (const FormatId& fa : {mxfp4, nvfp4})
    for (const FormatId& fb : {mxfp4, nvfp4}) check_fp4(fa, fb, {37, 69, 150}, Wildness::moderate, dice);
}

// Every scale byte, NaN, zero blocks: most of these tiles are beyond the integers.
TEST(Avx512Matmul, fp4_of_extreme_scales_has_the_reference_bits) {
  Dice dice{std::mt19937_64(2)};
  for (const FormatId& fa : {mxfp4, nvfp4})
    for (const FormatId& fb : {mxfp4, nvfp4})
      for (const Shape& s : {Shape{17, 20, 33}, {40, 70, 100}, {33, 50, 600}})
        check_fp4(fa, fb, s, Wildness::extreme, dice);
}

/// All codes of a matrix 1 (FP4 code 2), or -1, and all scales the same.
TestOperand ones(FormatId f, std::int64_t rows, std::int64_t cols, std::uint8_t scale) {
  Dice dice{std::mt19937_64(3)};
  TestOperand m(f, rows, cols, ScaleLayout::linear, Wildness::moderate, dice);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::memset(static_cast<std::uint8_t*>(m.operand.data) + r * m.operand.row_stride, 0x22,
                static_cast<std::size_t>(packed_bytes(f, cols)));
    for (std::int64_t b = 0; b < m.blocks; ++b) m.scale(r, b) = scale;
  }
  return m;
}

TEST(Avx512Matmul, scales_at_the_ends_of_what_integers_can_do) {
  for (int ea : {-127, -70, -61, -60, -59, 0, 56, 57, 58, 59, 60, 61, 63, 64, 127})
    for (int eb : {-127, -61, -60, -59, 0, 57, 58, 59, 60, 61, 63, 127}) {
      TestOperand a = ones(mxfp4, 18, 96, static_cast<std::uint8_t>(127 + ea));
      TestOperand b = ones(mxfp4, 17, 96, static_cast<std::uint8_t>(127 + eb));
      // The largest dot products first up, then down: a sum that overflows on the way stays infinite.
      auto* codes = static_cast<std::uint8_t*>(a.operand.data);
      std::memset(codes, 0xff, 16);
      std::memset(codes + 16, 0x77, 16);
      std::memset(b.operand.data, 0x77, 48);
      Output c(float32_id, 18, 17);
      launch(problem_of(a, b, c.operand()));
      expect_reference_bits(a, b, c, std::to_string(ea) + " and " + std::to_string(eb));
    }
}

TEST(Avx512Matmul, zero_blocks_and_nan_scales) {
  TestOperand a = ones(mxfp4, 20, 64, 127), b = ones(mxfp4, 20, 64, 127);
  std::memset(a.operand.data, 0, 16);  // row 0, first block
  a.scale(0, 0) = 0;
  std::memset(static_cast<std::uint8_t*>(b.operand.data) + b.operand.row_stride, 0x88, 32);  // row 1: -0
  b.scale(1, 0) = 254;
  b.scale(1, 1) = 255;
  a.scale(5, 1) = 255;
  Output c(float32_id, 20, 20);
  launch(problem_of(a, b, c.operand()));
  EXPECT_EQ(c.at(0, 0), 32.0f);
  EXPECT_TRUE(std::isnan(c.at(0, 1)));
  for (std::int64_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(std::isnan(c.at(i, 1)));
    EXPECT_TRUE(std::isnan(c.at(5, i)));
    EXPECT_EQ(c.at(i == 5 ? 6 : i, 7), i == 0 ? 32.0f : 64.0f);
  }
  // UE4M3: 0x7f is NaN, bit 7 has no meaning, 0 is 0.
  TestOperand d = ones(nvfp4, 20, 64, 0x38), e = ones(nvfp4, 20, 64, 0xb8);
  d.scale(3, 2) = 0xff;
  e.scale(4, 1) = 0;
  launch(problem_of(d, e, c.operand()));
  EXPECT_TRUE(std::isnan(c.at(3, 4)));
  EXPECT_EQ(c.at(2, 4), 48.0f);
  EXPECT_EQ(c.at(2, 2), 64.0f);
}

// c = L + P + 4 of docs/numerics.md; float and half rows are multiplied as the reference does it.
TEST(Avx512Matmul, other_formats_within_their_bound) {
  Dice dice{std::mt19937_64(4)};
  const FormatId all[] = {mxfp4,
                          nvfp4,
                          format_id<MXFP8_E4M3>,
                          format_id<MXFP8_E5M2>,
                          format_id<MXFP6_E2M3>,
                          format_id<MXFP6_E3M2>,
                          format_id<MXFP6_E2M3_Bytes>,
                          format_id<MXFP6_E3M2_Bytes>};
  std::vector<FormatId> left(std::begin(all), std::end(all));
  left.insert(left.end(), {float32_id, float16_id, bfloat16_id});
  int turn = 0;
  for (const FormatId& fb : all)
    for (const FormatId& fa : left) {
      if (fa.block_size > 0 && bits_per_code(fa) == 4 && bits_per_code(fb) == 4) continue;
      const Shape cases[] = {{17, 18, 33}, {35, 49, 290}, {50, 200, 31}, {260, 20, 64}};
      const Shape s = cases[turn++ % 4];
      const TestOperand a = random_operand(fa, s.m, s.k, Wildness::moderate, dice);
      const TestOperand b = random_operand(fb, s.n, s.k, Wildness::moderate, dice);
      Output c(float32_id, s.m, s.n), again(float32_id, s.m, s.n);
      const Problem p = problem_of(a, b, c.operand());
      launch(p);
      PreparedProblem prepared(p);
      prepared.problem.c = again.operand();
      launch(prepared.problem);
      EXPECT_EQ(c.bytes, again.bytes) << "prepared";
      const auto most = static_cast<double>(std::min<std::int64_t>(s.k, 256));
      const double bound = (most + std::ceil(static_cast<double>(s.k) / 256) + 4) * 0x1p-24;
      for (std::int64_t i = 0; i < s.m; ++i)
        for (std::int64_t j = 0; j < s.n; ++j) {
          const ExpectedElement x = expected_element(a, i, b, j);
          if (fa == float32_id || fa == float16_id)
            ASSERT_TRUE(same_bits(c.at(i, j), x.reference)) << i << ", " << j;
          else
            ASSERT_LE(std::abs(c.at(i, j) - x.exact), bound * x.magnitude) << i << ", " << j;
        }
    }
}

TEST(Avx512Matmul, no_configuration_changes_fp4) {
  Dice dice{std::mt19937_64(5)};
  const TestOperand a = random_operand(mxfp4, 90, 100, Wildness::moderate, dice);
  const TestOperand b = random_operand(nvfp4, 210, 100, Wildness::moderate, dice);
  Output c(float32_id, 90, 210);
  launch(problem_of(a, b, c.operand()));
  expect_reference_bits(a, b, c, "own configuration");
  for (int tile_m : {0, 1, 17, 33, 64, 256})
    for (int tile_n : {0, 32, 96, 192}) {
      const Config config{.tile_m = tile_m, .tile_n = tile_n};
      Output d(float32_id, 90, 210);
      launch(problem_of(a, b, d.operand()), &config, 4);
      ASSERT_EQ(c.bytes, d.bytes) << tile_m << " x " << tile_n;
    }
  const Problem p = problem_of(a, b, c.operand());
  for (const Config& wrong : {Config{.tile_m = -1}, Config{.tile_m = 257}, Config{.tile_n = 16}, Config{.tile_n = 224},
                              Config{.stages = 2}, Config{.split_k = 2}, Config{.swap_ab = true}})
    EXPECT_FALSE(target().accepts(p, wrong).supported);
}

// Vectors of the epilogue, larger than they need be, with strides.
struct EpilogueVectors {
  std::vector<float> floats;
  std::vector<half> halves;
  std::vector<bf16> bf16s;
  explicit EpilogueVectors(Dice& dice) {
    for (int i = 0; i < 4000; ++i) {
      floats.push_back(static_cast<float>(static_cast<int>(dice.below(4001)) - 2000) / 512.0f);
      halves.emplace_back(floats.back());
      bf16s.emplace_back(floats.back());
    }
  }
  VectorOperand vector(ElementId type, std::int64_t size, std::int64_t stride, std::int64_t experts = -1) const {
    const void* data = type == float32_id.element   ? static_cast<const void*>(floats.data())
                       : type == float16_id.element ? static_cast<const void*>(halves.data())
                                                    : static_cast<const void*>(bf16s.data());
    return {data, type, size, stride, experts, experts >= 0 ? size * stride + 5 : 0};
  }
  float at(const VectorOperand& v, std::int64_t expert, std::int64_t i) const {
    const auto index = static_cast<std::size_t>((v.experts >= 0 ? expert * v.expert_stride : 0) + i * v.stride);
    return v.type == float32_id.element   ? floats[index]
           : v.type == float16_id.element ? static_cast<float>(halves[index])
                                          : static_cast<float>(bf16s[index]);
  }
};

/// Section 8, steps 3 to 5, for one element.
struct ExpectedEpilogue {
  const Problem& p;
  const EpilogueVectors& vectors;
  float decode_a = 1.0f, decode_b = 1.0f;

  float linear(float sum, std::int64_t e, std::int64_t row, std::int64_t col, float old) const {
    const EpilogueData& d = p.epilogue;
    float v = sum * decode_a;
    v = v * decode_b;
    v = v * (d.alpha_device != nullptr ? *d.alpha_device : d.alpha);
    if (d.row_scale.data != nullptr) v = v * vectors.at(d.row_scale, e, row);
    if (d.expert_scale.data != nullptr) v = v * vectors.at(d.expert_scale, 0, e);
    if (d.bias.data != nullptr) v = v + vectors.at(d.bias, e, col);
    const float scaled = d.beta * old;
    return d.beta != 0.0f ? v + scaled : v;
  }
  template <class Sums>
  float operator()(const Sums& sums, std::int64_t e, std::int64_t row, std::int64_t col, float old) const {
    const EpilogueData& d = p.epilogue;
    if (d.gate == Gate::none) {
      const float v = linear(sums(col), e, row, col, old);
      switch (d.activation) {
        case Activation::relu:
          return relu(v);
        case Activation::gelu_tanh:
          return gelu_tanh(v);
        case Activation::gelu_erf:
          return gelu_erf(v);
        case Activation::silu:
          return silu(v);
        default:
          return v;
      }
    }
    const bool interleaved = d.gate_columns == GateColumns::interleaved;
    const std::int64_t cg = interleaved ? 2 * col : col, cu = interleaved ? 2 * col + 1 : p.c.cols + col;
    const float g = linear(sums(cg), e, row, cg, 0.0f), u = linear(sums(cu), e, row, cu, 0.0f);
    return d.gate == Gate::silu ? silu_gate(g, u) : clamped_swiglu(g, u, d.gate_limit, d.gate_slope);
  }
};

void check_epilogue(const TestOperand& a, const TestOperand& b, Problem p, Output c, const EpilogueVectors& vectors,
                    const std::string& what) {
  p.c = c.operand();
  const bool old = p.epilogue.beta != 0.0f;
  if (old)
    for (std::int64_t i = 0; i < c.rows; ++i)
      for (std::int64_t j = 0; j < c.cols; ++j) c.set(i, j, static_cast<float>((i * 7 + j * 3) % 23) - 9.5f);
  const Output before = c;
  launch(p, nullptr, 2);
  ExpectedEpilogue expected{p, vectors};
  if (p.a.tensor_scale != nullptr) expected.decode_a = p.a.tensor_scale->decode;
  if (p.b.tensor_scale != nullptr) expected.decode_b = p.b.tensor_scale->decode;
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.cols; ++j) {
      const auto sums = [&](std::int64_t n) { return expected_element(a, i, b, n).reference; };
      const float x = rounded_to(c.format, expected(sums, 0, i, j, old ? before.at(i, j) : 0.0f));
      ASSERT_TRUE(same_bits(c.at(i, j), x))
          << what << ": (" << i << ", " << j << ") is " << c.at(i, j) << ", expected " << x;
    }
  c.expect_room_untouched();
}

TEST(Avx512Matmul, epilogues) {
  Dice dice{std::mt19937_64(6)};
  const EpilogueVectors vectors(dice);
  const float alpha = -0.3f;
  const TensorScalePair scale_a{0.01f, 100.0f}, scale_b{1.7f, 0.5f};
  for (const Shape& s : {Shape{19, 50, 40}, {5, 33, 64}}) {
    TestOperand a = random_operand(nvfp4, s.m, s.k, Wildness::moderate, dice);
    const TestOperand b = random_operand(nvfp4, s.n, s.k, Wildness::moderate, dice);
    Problem p = problem_of(a, b, {});
    TensorScalePair pairs[] = {scale_a, scale_b};
    p.a.tensor_scale = pairs;
    p.b.tensor_scale = pairs + 1;
    for (const FormatId& type : {float32_id, float16_id, bfloat16_id})
      for (const bool columns : {false, true}) {
        const auto check = [&](const EpilogueData& e, const char* what) {
          p.epilogue = e;
          check_epilogue(a, b, p, Output(type, s.m, s.n, columns), vectors, what);
        };
        check({}, "none");
        check({.alpha = 0.37f}, "alpha");
        check({.alpha_device = &alpha}, "alpha on the device");
        check({.row_scale = vectors.vector(float32_id.element, s.m, 3)}, "row scale");
        check({.bias = vectors.vector(float32_id.element, s.n, 1)}, "float bias");
        check({.bias = vectors.vector(float16_id.element, s.n, 2)}, "half bias");
        check({.bias = vectors.vector(bfloat16_id.element, s.n, 5)}, "bf16 bias");
        check({.beta = -0.6f}, "beta");
        check({.alpha = 0.01f, .activation = Activation::relu}, "relu");
        check({.alpha = 0.01f, .activation = Activation::gelu_tanh}, "gelu_tanh");
        check({.alpha = 0.01f, .activation = Activation::gelu_erf}, "gelu_erf");
        check({.alpha = 0.01f, .activation = Activation::silu}, "silu");
        check({.alpha = 1.3f,
               .row_scale = vectors.vector(float32_id.element, s.m, 1),
               .bias = vectors.vector(bfloat16_id.element, s.n, 1),
               .beta = 2.5f,
               .activation = Activation::silu},
              "all");
      }
  }
}

TEST(Avx512Matmul, gates) {
  Dice dice{std::mt19937_64(7)};
  const EpilogueVectors vectors(dice);
  // Ups that begin in the middle of a vector of columns, and more than one tile.
  for (const Shape& s : {Shape{18, 42, 40}, {17, 230, 33}, {3, 98, 64}}) {
    const TestOperand a = random_operand(mxfp4, s.m, s.k, Wildness::moderate, dice);
    const TestOperand b = random_operand(mxfp4, s.n, s.k, Wildness::moderate, dice);
    Problem p = problem_of(a, b, {});
    for (const Gate gate : {Gate::silu, Gate::clamped_swiglu})
      for (const GateColumns columns : {GateColumns::interleaved, GateColumns::halved}) {
        p.epilogue = {.alpha = 0.02f, .gate = gate, .gate_columns = columns, .gate_limit = 1.5f, .gate_slope = 1.1f};
        check_epilogue(a, b, p, Output(float32_id, s.m, s.n / 2), vectors, "without bias");
        p.epilogue.row_scale = vectors.vector(float32_id.element, s.m, 2);
        p.epilogue.bias = vectors.vector(float16_id.element, s.n, 3);
        check_epilogue(a, b, p, Output(bfloat16_id, s.m, s.n / 2), vectors, "with bias");
      }
  }
}

// A NaN becomes 7fc00000 whatever it was; C is not read when beta is 0 (poison is NaN).
TEST(Avx512Matmul, nan_and_infinity_in_the_epilogue) {
  TestOperand a = ones(mxfp4, 18, 32, 127), b = ones(mxfp4, 18, 32, 127);
  a.scale(2, 0) = 255;
  const float bias[18] = {0, infinity, -infinity, nan};
  Output c(float32_id, 18, 18);
  Problem p = problem_of(a, b, c.operand());
  p.epilogue.bias = {bias, float32_id.element, 18};
  p.epilogue.activation = Activation::relu;
  launch(p);
  EXPECT_EQ(c.at(0, 0), 32.0f);
  EXPECT_EQ(c.at(0, 1), infinity);
  EXPECT_EQ(c.at(0, 2), 0.0f);
  for (const auto& [i, j] : {std::pair(0, 3), {2, 0}, {2, 17}, {17, 3}}) {
    std::uint32_t bits;
    std::memcpy(&bits, c.bytes.data() + (i * c.row_stride + j) * 4, 4);
    EXPECT_EQ(bits, 0x7fc00000u);
  }
}

TEST(Avx512Matmul, batches) {
  Dice dice{std::mt19937_64(8)};
  const EpilogueVectors vectors(dice);
  const std::int64_t m = 21, n = 37, k = 80, batch = 3;
  for (const FormatId& f : {mxfp4, nvfp4}) {
    // One matrix of all rows, cut into a batch.
    const TestOperand a(f, batch * m, k, ScaleLayout::linear, Wildness::moderate, dice);
    const TestOperand b(f, batch * n, k, ScaleLayout::linear, Wildness::moderate, dice);
    TensorScalePair pairs[2 * batch];
    for (int i = 0; i < 2 * batch; ++i) pairs[i].decode = 0.5f + static_cast<float>(i);
    Output c(float32_id, m, n, false, batch);
    Problem p = problem_of(a, b, c.operand());
    p.operation = Operation::batched_matmul;
    p.m = m;
    p.n = n;
    const auto cut = [&](Operand& o, std::int64_t rows, TensorScalePair* of) {
      o.rows = rows;
      o.batch = batch;
      o.batch_stride = rows * o.row_stride;
      o.scale_batch_stride = rows * o.scale_pitch;
      o.scale_tile_rows = rows;
      if (f.tensor_scale) o.tensor_scale = of;
    };
    cut(p.a, m, pairs);
    cut(p.b, n, pairs + batch);
    p.c.batch = batch;
    p.epilogue.expert_scale = vectors.vector(float32_id.element, batch, 7);
    p.epilogue.bias = vectors.vector(float32_id.element, n, 2, batch);
    PreparedProblem prepared(p);
    for (const Problem& q : {p, prepared.problem}) {
      c.bytes.assign(c.bytes.size(), 0xff);
      launch(q, nullptr, 2);
      for (std::int64_t e = 0; e < batch; ++e) {
        ExpectedEpilogue expected{p, vectors};
        if (f.tensor_scale) {
          expected.decode_a = pairs[e].decode;
          expected.decode_b = pairs[batch + e].decode;
        }
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            const auto sums = [&](std::int64_t col) {
              return expected_element(a, e * m + i, b, e * n + col).reference;
            };
            ASSERT_EQ(c.at(i, j, e), expected(sums, e, i, j, 0.0f)) << e << ": " << i << ", " << j;
          }
      }
    }
  }
}

template <class F>
void check_quantized(const Shape& s, Gate gate, Dice& dice) {
  const EpilogueVectors vectors(dice);
  const TestOperand a = random_operand(mxfp4, s.m, s.k, Wildness::moderate, dice);
  const TestOperand b = random_operand(mxfp4, s.n, s.k, Wildness::moderate, dice);
  const std::int64_t cols = gate == Gate::none ? s.n : s.n / 2;
  for (const ScaleLayout layout : layouts)
    for (const bool prepared : {false, true}) {
      TestOperand c(format_id<F>, s.m, cols, layout, Wildness::moderate, dice);
      const ScaleMap map{layout, s.m, c.blocks};
      const std::int64_t scale_bytes = c.operand.scale_tile_rows * c.operand.scale_pitch;
      const std::int64_t pitch = c.operand.row_stride, used = packed_bytes(format_id<F>, cols);
      std::memset(c.operand.data, 0x5a, static_cast<std::size_t>(s.m * pitch));
      std::memset(c.operand.scales, 0x5a, static_cast<std::size_t>(scale_bytes));
      Problem p = problem_of(a, b, c.operand);
      p.epilogue = {.alpha = 0.7f, .bias = vectors.vector(float32_id.element, s.n, 1), .gate = gate};
      TensorScalePair stored{0.25f, 4.0f};
      if (F::tensor_scale) p.c.tensor_scale = &stored;
      p.quantize.scale_rule = prepared ? ScaleRule::floor : ScaleRule::rceil;
      p.quantize.source = prepared ? TensorScaleSource::stored : TensorScaleSource::given;
      p.quantize.tensor_scale = pair_from_decode(0.03f);
      if (prepared) {
        const PreparedProblem q(p);
        launch(q.problem);
      } else {
        launch(p);
      }
      const TensorScalePair pair = !F::tensor_scale ? TensorScalePair{} : prepared ? stored : p.quantize.tensor_scale;
      if (F::tensor_scale) {
        EXPECT_EQ(stored.decode, pair.decode);
        EXPECT_EQ(stored.encode, pair.encode);
      }
      std::vector<std::uint8_t> scales(static_cast<std::size_t>(scale_bytes), 0x5a);
      const auto scale_at = [&](std::int64_t row, std::int64_t block) -> std::uint8_t& {
        return scales[static_cast<std::size_t>(tile_row(layout, row) * c.operand.scale_pitch +
                                               map.offset_in_tile_row(row, block))];
      };
      for (std::int64_t i = 0; i < map.tile_rows() * scale_tile(layout).rows; ++i)
        for (std::int64_t block = 0; block < map.padded_cols(); ++block) scale_at(i, block) = 0;
      const ExpectedEpilogue expected{p, vectors};
      for (std::int64_t i = 0; i < s.m; ++i) {
        const auto sums = [&](std::int64_t n) { return expected_element(a, i, b, n).reference; };
        std::vector<std::uint8_t> row(static_cast<std::size_t>(pitch), 0x5a);
        for (std::int64_t block = 0; block < c.blocks; ++block) {
          float values[32] = {};
          const auto count = static_cast<int>(std::min<std::int64_t>(cols - block * F::block_size, F::block_size));
          for (int j = 0; j < count; ++j) values[j] = expected(sums, 0, i, block * F::block_size + j, 0.0f);
          scale_at(i, block) =
              quantize_block<F>(values, count, row.data() + packed_bytes(format_id<F>, block * F::block_size),
                                {p.quantize.scale_rule, p.quantize.non_finite, pair});
        }
        const auto* codes = static_cast<const std::uint8_t*>(c.operand.data) + i * pitch;
        ASSERT_EQ(std::vector<std::uint8_t>(codes, codes + pitch), row) << "row " << i << " of " << used << " bytes";
      }
      ASSERT_EQ(std::vector<std::uint8_t>(c.operand.scales, c.operand.scales + scale_bytes), scales) << name(layout);
    }
}

TEST(Avx512Matmul, quantized_outputs) {
  Dice dice{std::mt19937_64(9)};
  check_quantized<MXFP4>({20, 65, 40}, Gate::none, dice);
  check_quantized<MXFP4>({3, 225, 33}, Gate::none, dice);
  check_quantized<NVFP4>({18, 200, 32}, Gate::none, dice);
  check_quantized<NVFP4>({17, 39, 64}, Gate::none, dice);
  check_quantized<MXFP8_E4M3>({33, 70, 32}, Gate::none, dice);
  check_quantized<MXFP8_E5M2>({17, 40, 32}, Gate::none, dice);
  check_quantized<MXFP6_E2M3>({17, 45, 32}, Gate::none, dice);
  check_quantized<MXFP6_E3M2>({18, 64, 32}, Gate::none, dice);
  check_quantized<MXFP6_E3M2_Bytes>({17, 33, 32}, Gate::none, dice);
  check_quantized<MXFP4>({17, 212, 40}, Gate::silu, dice);
  check_quantized<NVFP4>({5, 70, 40}, Gate::clamped_swiglu, dice);
}

// The layout of Microscale_Avx512_Layout.hpp, byte by byte.
TEST(Avx512Matmul, prepared_form) {
  Dice dice{std::mt19937_64(10)};
  for (const FormatId& f : {mxfp4, nvfp4, format_id<MXFP8_E4M3>, format_id<MXFP6_E2M3>, format_id<MXFP6_E3M2_Bytes>})
    for (const Shape& s : {Shape{17, 1, 1}, {17, 16, 32}, {17, 35, 200}, {17, 50, 1100}}) {
      const TestOperand a = random_operand(f, s.m, s.k, Wildness::moderate, dice);
      TestOperand b = random_operand(f, s.n, s.k, Wildness::extreme, dice);
      Output c(float32_id, s.m, s.n);
      const PreparedProblem p(problem_of(a, b, c.operand()));
      const std::int64_t groups = (s.n + 15) / 16, row_bytes = (s.k + 31) / 32 * 32 * bits_per_code(f) / 8;
      const std::int64_t bytes = groups * 16 * (row_bytes + b.blocks);
      ASSERT_EQ(p.problem.b.prepared_form.bytes, (bytes + 63) / 64 * 64);
      const auto* expected = static_cast<const std::uint8_t*>(b.prepared().prepared);
      const std::uint8_t* actual = p.memory.bytes.get();
      ASSERT_EQ(std::vector<std::uint8_t>(actual, actual + bytes),
                std::vector<std::uint8_t>(expected, expected + bytes));
    }
}

TEST(Avx512Matmul, empty_products) {
  Dice dice{std::mt19937_64(11)};
  const EpilogueVectors vectors(dice);
  const TestOperand a = random_operand(mxfp4, 20, 0, Wildness::moderate, dice);
  const TestOperand b = random_operand(mxfp4, 18, 0, Wildness::moderate, dice);
  Problem p = problem_of(a, b, {});
  p.epilogue.bias = vectors.vector(float32_id.element, 18, 1);
  check_epilogue(a, b, p, Output(float32_id, 20, 18), vectors, "K = 0");
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{0, 18}, {20, 0}}) {
    const TestOperand d = random_operand(mxfp4, m, 32, Wildness::moderate, dice);
    const TestOperand e = random_operand(mxfp4, n, 32, Wildness::moderate, dice);
    Output c(float32_id, m, n);
    launch(problem_of(d, e, c.operand()));
    c.expect_room_untouched();
  }
}

TEST(Avx512Matmul, what_is_refused) {
  Dice dice{std::mt19937_64(12)};
  const TestOperand a = random_operand(mxfp4, 20, 32, Wildness::moderate, dice);
  const TestOperand b = random_operand(mxfp4, 20, 32, Wildness::moderate, dice);
  Output c(float32_id, 20, 20);
  const Problem good = problem_of(a, b, c.operand());
  ASSERT_TRUE(target().supports(good).supported);
  Problem p = good;
  p.b.format = bfloat16_id;
  EXPECT_FALSE(target().supports(p).supported);
  p = good;
  p.a.format.block_size = 64;
  EXPECT_FALSE(target().supports(p).supported);
  p = good;
  p.c.format = nvfp4;
  p.quantize.source = TensorScaleSource::dynamic;
  EXPECT_FALSE(target().supports(p).supported);
  p.quantize.source = TensorScaleSource::given;
  EXPECT_TRUE(target().supports(p).supported);
}

}  // namespace
