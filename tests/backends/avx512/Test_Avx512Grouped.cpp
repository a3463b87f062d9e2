#include "Avx512Operands.hpp"
#include <gtest/gtest.h>
#include <Microscale_Avx512_Kernels.hpp>
#include <Microscale_Target.hpp>

#include <string>

// The grouped matmul on the model of the processor: experts of very different sizes, arrays that make no sense, any number
// of threads. FP4 by FP4 gives the bits of the product as docs/numerics.md has it.
namespace {

using namespace microscale;
using namespace microscale::Test;

constexpr float untouched = -1234.5f;
constexpr std::int64_t experts = 6;

/// `concurrency` threads, which take the tasks one after the other, the last one first if `backwards`.
struct Threads {
  int concurrency = 1;
  bool backwards = false;

  Native native() const {
    Native result;
    result.concurrency = concurrency;
    result.context = this;
    result.parallel_for = [](const void* context, std::int64_t n, void (*body)(void*, std::int64_t), void* argument) {
      const auto& threads = *static_cast<const Threads*>(context);
      for (std::int64_t i = 0; i < n; ++i) body(argument, threads.backwards ? n - 1 - i : i);
    };
    return result;
  }
};

struct Slots {
  std::vector<std::int32_t> offsets, ids, scale_offsets;

  static Slots of(const std::vector<int>& sizes, const std::vector<int>& ids) {
    Slots slots;
    slots.offsets.push_back(0);
    for (const int n : sizes) slots.offsets.push_back(slots.offsets.back() + n);
    slots.ids.assign(ids.begin(), ids.end());
    return slots;
  }
};

/// One call: C = A B^T by groups, all in linear layouts, C of floats with padding between its rows.
struct Call {
  TestOperand a, b;
  std::int64_t n;
  std::vector<float> c;
  Slots slots;
  Problem problem{};

  Call(FormatId fa, FormatId fb, std::int64_t rows, std::int64_t n_, std::int64_t k, const Slots& s, std::uint64_t seed)
      : Call(fa, fb, rows, n_, k, s, Dice{std::mt19937_64(seed)}) {}

  /// Runs it; every element of C is checked.
  void run(const Threads& threads, SkippedRows skipped, bool prepared) {
    const Native native = threads.native();
    const Kernels& kernels = MICROSCALE_AVX512_NAMESPACE::kernels();
    const Backend& target = Impl::avx512_target(&kernels);
    c.assign(c.size(), untouched);
    Problem p = problem;
    p.concurrency = threads.concurrency;
    p.groups.skipped_rows = skipped;
    p.groups.slots = static_cast<std::int64_t>(slots.ids.size());
    p.groups.row_offsets = slots.offsets.data();
    p.groups.expert_ids = slots.ids.data();
    p.c.data = c.data();
    ASSERT_TRUE(target.supports(p).supported) << target.supports(p).reason;
    AlignedBytes memory(64);
    if (prepared) {
      const PreparedForm form = target.prepared_form(p);
      ASSERT_GT(form.bytes, 0);
      memory = AlignedBytes(form.bytes);
      ASSERT_TRUE(kernels.prepare(p, form, memory.bytes.get(), native).ok);
      p.b.prepared_by = &target;
      p.b.prepared_form = form;
      p.b.prepared = memory.bytes.get();
      p.b.original_dropped = true;
      p.b.data = nullptr;
      p.b.scales = nullptr;
    }
    const Config config = target.config(p);
    ASSERT_EQ(target.workspace_bytes(p, config), 0);
    const Status status = kernels.launch(p, config, nullptr, native);
    ASSERT_TRUE(status.ok) << status.message;
  }

  /// `expert_of_row`: -1 for rows that are not multiplied.
  template <class Expert>
  void expect(const Expert& expert_of_row, SkippedRows skipped, const std::string& what) const {
    for (std::int64_t i = 0; i < a.operand.rows; ++i) {
      const std::int64_t e = expert_of_row(i);
      for (std::int64_t j = 0; j < n; ++j) {
        const float x = c[static_cast<std::size_t>(i * pitch() + j)];
        const float expected = e >= 0                         ? expected_element(a, i, b, e * n + j).reference
                               : skipped == SkippedRows::zero ? 0.0f
                                                              : untouched;
        ASSERT_TRUE(same_bits(x, expected)) << what << ": row " << i << " of expert " << e << ", column " << j << " is "
                                            << x << ", expected " << expected;
      }
      for (std::int64_t j = n; j < pitch(); ++j) ASSERT_EQ(c[static_cast<std::size_t>(i * pitch() + j)], untouched);
    }
  }
  std::int64_t expert_of(std::int64_t row) const {
    for (std::size_t s = 0; s < slots.ids.size(); ++s)
      if (slots.offsets[s] <= row && row < slots.offsets[s + 1]) return slots.ids[s];
    return -1;
  }
  std::int64_t pitch() const { return n + 3; }

 private:
  Call(FormatId fa, FormatId fb, std::int64_t rows, std::int64_t n_, std::int64_t k, const Slots& s, Dice dice)
      : a(fa, rows, k, ScaleLayout::linear, Wildness::moderate, dice),
        b(fb, experts * n_, k, ScaleLayout::linear, Wildness::moderate, dice),
        n(n_),
        c(static_cast<std::size_t>(rows * (n_ + 3))),
        slots(s) {
    problem.operation = Operation::grouped_matmul;
    problem.m = rows;
    problem.n = n;
    problem.k = k;
    problem.a = a.operand;
    problem.b = b.operand;
    problem.b.rows = n;
    problem.b.batch = experts;
    problem.b.batch_stride = n * b.operand.row_stride;
    problem.b.scale_batch_stride = n * b.operand.scale_pitch;
    problem.b.scale_tile_rows = n;
    problem.c.format = float32_id;
    problem.c.rows = rows;
    problem.c.cols = n;
    problem.c.row_stride = pitch();
    const auto unit_tensor_scales = [](Operand& o, TensorScalePair* pairs) {
      if (o.format.tensor_scale) o.tensor_scale = pairs;
    };
    static TensorScalePair ones[experts];
    unit_tensor_scales(problem.a, ones);
    unit_tensor_scales(problem.b, ones);
  }
};

// Sizes on both sides of 16, none and many; the same bits from any threads and from prepared weights.
TEST(Avx512Grouped, experts_of_very_different_sizes) {
  const Slots slots = Slots::of({0, 1, 17, 0, 3, 150, 16, 0}, {4, 2, -1, 1, 5, 3, 0, 1});
  for (const auto& [fa, fb] : {std::pair(format_id<MXFP4>, format_id<MXFP4>),
                               {format_id<NVFP4>, format_id<NVFP4>},
                               {format_id<MXFP4>, format_id<NVFP4>}}) {
    Call call(fa, fb, 190, 83, 100, slots, 7);  // three rows in no slot
    const auto expert = [&](std::int64_t row) { return call.expert_of(row); };
    for (const SkippedRows skipped : {SkippedRows::zero, SkippedRows::untouched})
      for (const bool prepared : {false, true})
        for (const Threads& threads : {Threads{1}, Threads{2, true}, Threads{5}}) {
          call.run(threads, skipped, prepared);
          call.expect(expert, skipped,
                      std::to_string(threads.concurrency) + " threads, prepared " + (prepared ? "yes" : "no"));
        }
  }
}

TEST(Avx512Grouped, nothing_to_do) {
  for (const Slots& slots : {Slots::of({}, {}), Slots::of({0, 0}, {1, 2}), Slots::of({5, 3}, {-1, -1})}) {
    Call call(format_id<MXFP4>, format_id<MXFP4>, 8, 20, 64, slots, 8);
    call.run({2}, SkippedRows::zero, false);
    call.expect([](std::int64_t) { return -1; }, SkippedRows::zero, "nothing");
  }
}

// The rule of BasicSlotTable, which says what everything means that arrays can hold.
TEST(Avx512Grouped, senseless_arrays) {
  constexpr int huge = std::numeric_limits<std::int32_t>::max(), tiny = std::numeric_limits<std::int32_t>::min();
  struct Case {
    Slots slots;
    std::vector<std::int64_t> expert_of_ten;  // of rows 0, 10, 20, 30
  };
  const Case cases[] = {{{{0, 10, 20, 30}, {1, 77, -9}, {}}, {1, -1, -1, -1}},
                        {{{0, 10, 5, 40}, {1, 2, 3}, {}}, {1, 3, 3, 3}},
                        {{{-5, 10, 20, huge}, {1, 2, 3}, {}}, {-1, 2, -1, -1}},
                        {{{0, 30, 10, 20}, {1, 2, 3}, {}}, {1, 1, 1, -1}},
                        {{{huge, tiny, huge, tiny}, {1, 2, 3}, {}}, {-1, -1, -1, -1}}};
  for (const Case& test : cases) {
    Call call(format_id<MXFP4>, format_id<MXFP4>, 40, 33, 64, test.slots, 9);
    for (const Threads& threads : {Threads{1}, Threads{3, true}}) {
      call.run(threads, SkippedRows::untouched, false);
      call.expect([&](std::int64_t row) { return test.expert_of_ten[static_cast<std::size_t>(row / 10)]; },
                  SkippedRows::untouched, "senseless");
    }
  }
}

// What belongs to an expert is found by its id, what belongs to a row by the row.
TEST(Avx512Grouped, epilogue_of_expert_and_row) {
  const Slots slots = Slots::of({2, 20, 1}, {5, 0, 3});
  Call call(format_id<MXFP4>, format_id<MXFP4>, 23, 40, 64, slots, 10);
  std::vector<float> row_scale(23), expert_scale(experts), bias(experts * 40);
  for (std::size_t i = 0; i < row_scale.size(); ++i) row_scale[i] = 0.5f + 0.25f * static_cast<float>(i);
  for (std::size_t i = 0; i < expert_scale.size(); ++i) expert_scale[i] = 1.0f / static_cast<float>(i + 1);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i % 37) - 11.0f;
  EpilogueData& e = call.problem.epilogue;
  e.alpha = 0.75f;
  e.row_scale = {row_scale.data(), float32_id.element, 23, 1, -1, 0};
  e.expert_scale = {expert_scale.data(), float32_id.element, experts, 1, -1, 0};
  e.bias = {bias.data(), float32_id.element, 40, 1, experts, 40};
  e.activation = Activation::relu;
  call.run({2}, SkippedRows::zero, false);
  for (std::int64_t i = 0; i < 23; ++i)
    for (std::int64_t j = 0; j < 40; ++j) {
      const auto expert = static_cast<std::size_t>(call.expert_of(i)), column = static_cast<std::size_t>(j);
      float v = expected_element(call.a, i, call.b, static_cast<std::int64_t>(expert) * 40 + j).reference * 0.75f;
      v = v * row_scale[static_cast<std::size_t>(i)];
      v = v * expert_scale[expert];
      v = v + bias[expert * 40 + column];
      ASSERT_EQ(call.c[static_cast<std::size_t>(i * call.pitch() + j)], v > 0.0f ? v : 0.0f) << i << ", " << j;
    }
}

}  // namespace
