#include <Microscale_ConfigFields.hpp>
#include <Microscale_PlannedProblem.hpp>
#include <Test_Dispatch.hpp>

namespace microscale::Test {
namespace {

using Impl::planned;

void* address(std::uintptr_t a) { return reinterpret_cast<void*>(a); }

Impl::Words words(const Problem& p) {
  Impl::Words w;
  Impl::append_words(w, planned(p));
  return w;
}

TEST(PlannedProblem, PointersBecomeTheirAlignment) {
  Problem p = matmul_problem(8, 8, 64);
  p.a.data = address(0x7000'1000);
  p.b.data = address(0x7000'0030);
  p.a.scales = static_cast<std::uint8_t*>(address(0x7000'0001));
  const Problem q = planned(p);
  EXPECT_EQ(q.a.data, address(256));
  EXPECT_EQ(q.b.data, address(16));
  EXPECT_EQ(q.a.scales, address(1));
  EXPECT_EQ(q.c.data, nullptr);
}

TEST(PlannedProblem, DataMakesNoDifference) {
  Problem p = matmul_problem(8, 8, 64), q = p;
  p.a.data = address(0x1000);
  q.a.data = address(0x23000);
  p.epilogue.alpha = 0.25f;
  q.epilogue.alpha = -3.0f;
  q.quantize.tensor_scale = {4.0f, 0.25f};
  EXPECT_TRUE(words(p) == words(q));
}

TEST(PlannedProblem, StructureMakesADifference) {
  const Problem p = matmul_problem(8, 8, 64);
  const FakeBackend backend("one");
  const std::vector<std::function<void(Problem&)>> changes = {
      [](Problem& q) { q.operation = Operation::grouped_matmul; },
      [](Problem& q) { q.execution = ExecutionKind::cuda; },
      [](Problem& q) { q.device = 1; },
      [](Problem& q) { q.concurrency = 2; },
      [](Problem& q) { q.m = 9; },
      [](Problem& q) { q.a.row_stride = 40; },
      [](Problem& q) { q.a.format = format_id<NVFP4>; },
      [](Problem& q) { q.b.format.packing = Packing::byte; },
      [](Problem& q) { q.b.scale_layout = ScaleLayout::tcgen; },
      [](Problem& q) { q.b.scale_pitch = 512; },
      [](Problem& q) { q.b.scale_tile_rows = 9; },
      [](Problem& q) { q.b.grouped_scales = true; },
      [&](Problem& q) { q.b.prepared_by = &backend; },
      [](Problem& q) { q.b.prepared_form.tag = 2; },
      [](Problem& q) { q.b.original_dropped = true; },
      [](Problem& q) { q.c.col_stride = 2; },
      [](Problem& q) { q.c.data = address(4); },
      [](Problem& q) { q.epilogue.alpha = 0.0f; },
      [](Problem& q) { q.epilogue.alpha = 2.5f; },
      [](Problem& q) { q.epilogue.beta = 1.0f; },
      [](Problem& q) { q.epilogue.bias.data = address(8); },
      [](Problem& q) { q.epilogue.bias.type = bfloat16_id.element; },
      [](Problem& q) { q.epilogue.row_scale.stride = 2; },
      [](Problem& q) { q.epilogue.expert_scale.experts = 4; },
      [](Problem& q) { q.epilogue.activation = Activation::silu; },
      [](Problem& q) { q.epilogue.gate = Gate::silu; },
      [](Problem& q) { q.epilogue.gate_columns = GateColumns::halved; },
      [](Problem& q) { q.epilogue.gate_limit = 6.0f; },
      [](Problem& q) { q.user_functor = true; },
      [](Problem& q) { q.quantize.scale_rule = ScaleRule::floor; },
      [](Problem& q) { q.quantize.source = TensorScaleSource::given; },
      [](Problem& q) { q.quantize.device_is_encode = true; },
      [](Problem& q) { q.groups.slots = 3; },
      [](Problem& q) { q.groups.skipped_rows = SkippedRows::untouched; },
      [](Problem& q) { q.hints.estimated_total_m = 100; },
  };
  std::vector<Impl::Words> all = {words(p)};
  for (const auto& change : changes) {
    Problem q = p;
    change(q);
    all.push_back(words(q));
    EXPECT_LT(all.back().size() + 20, Impl::Words::capacity);  // there is room for options and a Config
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(all[i] == all[j]) << i << ", " << j;
      EXPECT_NE(Impl::hash(all[i]), Impl::hash(all[j])) << i << ", " << j;
    }
}

TEST(PlannedProblem, EveryMemberOfAConfigurationCounts) {
  const Config none;
  Config changed;
  int members = 0;
  Impl::for_each_field(changed, [&](const char* name, auto& member) {
    member = 1;
    EXPECT_FALSE(changed == none) << name;
    Impl::Words of_none, of_changed;
    Impl::append_words(of_none, none);
    Impl::append_words(of_changed, changed);
    EXPECT_FALSE(of_none == of_changed) << name;
    member = 0;
    EXPECT_TRUE(changed == none) << name;
    ++members;
  });
  EXPECT_EQ(members, 20);
}

TEST(PlannedProblem, FactorsAreZeroOneOrOther) {
  Problem p = matmul_problem(8, 8, 64);
  p.epilogue.alpha = std::nanf("");
  p.epilogue.beta = -0.0f;
  const Problem q = planned(p);
  EXPECT_EQ(q.epilogue.alpha, 2.0f);
  EXPECT_FALSE(std::signbit(q.epilogue.beta));
}

TEST(PlannedProblem, APlanHoldsForBetterAlignedData) {
  Problem p = matmul_problem(8, 8, 64);
  p.a.data = address(16);
  Problem q = p;
  const Impl::Words plan = words(p);
  EXPECT_TRUE(Impl::covers(plan, planned(q)));
  q.a.data = address(64);
  EXPECT_TRUE(Impl::covers(plan, planned(q)));
  q.a.data = address(8);
  EXPECT_FALSE(Impl::covers(plan, planned(q)));
  q.a.data = nullptr;
  EXPECT_FALSE(Impl::covers(plan, planned(q)));
  q = p;
  q.c.data = address(256);  // null in the plan
  EXPECT_FALSE(Impl::covers(plan, planned(q)));
  q = p;
  q.k = 65;
  EXPECT_FALSE(Impl::covers(plan, planned(q)));
}

}  // namespace
}  // namespace microscale::Test
