// What a Kokkos application sees of the library: names of kernels, fences, allocations, and which instance work runs
// on.
#include "TestData.hpp"
#include <Microscale.hpp>

#include <functional>
#include <set>

namespace {

using namespace microscale;
using namespace microscale::Test;

struct Events {
  std::vector<std::string> kernels, fences, allocations;
  std::set<std::uint32_t> instances;
};
Events events;

/// Runs f between callbacks of the Kokkos tools interface and says what they saw.
Events observed(const std::function<void()>& f) {
  namespace Tools = Kokkos::Tools::Experimental;
  events = {};
  const auto kernel = [](const char* label, std::uint32_t device, std::uint64_t*) {
    events.kernels.emplace_back(label);
    events.instances.insert(device);
  };
  Tools::set_begin_parallel_for_callback(kernel);
  Tools::set_begin_parallel_reduce_callback(kernel);
  Tools::set_begin_parallel_scan_callback(kernel);
  Tools::set_begin_fence_callback([](const char* label, std::uint32_t, std::uint64_t*) {
    // Kokkos fences around the callbacks themselves as long as there are any.
    if (std::string(label).find("Kokkos Profile Tool Fence") == std::string::npos) events.fences.emplace_back(label);
  });
  Tools::set_allocate_data_callback([](Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t) {
    events.allocations.emplace_back(label);
  });
  f();
  Tools::set_begin_parallel_for_callback(nullptr);
  Tools::set_begin_parallel_reduce_callback(nullptr);
  Tools::set_begin_parallel_scan_callback(nullptr);
  Tools::set_begin_fence_callback(nullptr);
  Tools::set_allocate_data_callback(nullptr);
  return events;
}

struct Call {
  std::string name;  ///< of the operation, as in its labels
  std::function<void(const Exec&)> run;
};

template <class Format>
std::vector<Call> calls() {
  using Matrix = BlockScaledMatrix<Format, Space>;
  using Offsets = Kokkos::View<std::int32_t*, Space>;
  const int tokens = 130, k = 96, n = 70, experts = 3;
  const Kokkos::View<float**, Space> x("x", tokens, k), c("c", tokens, n), w("w", n, k);
  const Kokkos::View<float***, Space> weights("weights", experts, n, k), batch_c("batch_c", experts, n, n);
  for (int i = 0; i < tokens; ++i)
    for (int j = 0; j < k; ++j) x(i, j) = static_cast<float>((i * 31 + j * 17) % 101 - 50);
  const Matrix a("a", tokens, k, ScaleLayout::tcgen), b("b", n, k), other("other", tokens, k, ScaleLayout::cdna4);
  const BlockScaledMatrix<MXFP8_E4M3, Space> c8("c8", tokens, n);
  const BlockScaledMatrix<MXFP4, Space> mx("mx", tokens, k);
  const auto grouped = Matrix::grouped("grouped", tokens, k, experts, ScaleLayout::tcgen);
  const auto experts_b = Matrix::batched("experts", experts, n, k);
  Offsets offsets("offsets", experts + 1), ids("ids", experts), scale_offsets("scale_offsets", experts);
  for (int e = 0; e < experts; ++e) {
    offsets(e + 1) = std::min(tokens, (e + 1) * 50);
    ids(e) = e;
    scale_offsets(e) = static_cast<std::int32_t>(grouped_scale_offset(ScaleLayout::tcgen, offsets(e), e));
  }
  const Groups<Space> groups{offsets, ids, scale_offsets, experts};
  const Kokkos::View<std::int32_t**, Space> topk("topk", tokens, 2);
  for (int i = 0; i < tokens; ++i) topk(i, 1) = i % experts;
  const Kokkos::View<float**, Space> gathered("gathered", 2 * tokens, k), topk_weights("topk_weights", tokens, 2);
  const ExpertRouting<Space> routing("routing", tokens, 2, experts);
  const auto bias = Kokkos::View<float*, Space>("bias", n);
  const auto functor = KOKKOS_LAMBDA(std::int64_t, std::int64_t, float v) { return v + 1.0f; };
  return {
      {"quantize", [=](const Exec& e) { quantize(e, x, a); }},
      {"quantize", [=](const Exec& e) { quantize(e, x, mx, {.scale_rule = ScaleRule::even}); }},
      {"dequantize", [=](const Exec& e) { dequantize(e, a, x); }},
      {"interleave_scales", [=](const Exec& e) { interleave_scales(e, scale_matrix(a), scale_matrix(other)); }},
      {"requantize", [=](const Exec& e) { requantize(e, a, mx); }},
      {"matmul", [=](const Exec& e) { matmul(e, a, b, c, Epilogue{}.alpha(0.5f).bias(bias).relu()); }},
      {"matmul", [=](const Exec& e) { matmul(e, a, b, c, Epilogue{}.then(functor)); }},
      {"matmul", [=](const Exec& e) { matmul(e, a, b, c8); }},
      {"matmul", [=](const Exec& e) { matmul(e, x, b, c); }},
      {"batched_matmul", [=](const Exec& e) { batched_matmul(e, experts_b, experts_b, batch_c); }},
      {"grouped_quantize", [=](const Exec& e) { grouped_quantize(e, x, grouped, groups); }},
      {"grouped_matmul", [=](const Exec& e) { grouped_matmul(e, grouped, experts_b, c, groups); }},
      {"build_expert_offsets", [=](const Exec& e) { build_expert_offsets(e, topk, routing); }},
      {"gather", [=](const Exec& e) { gather(e, x, routing, gathered); }},
      {"combine", [=](const Exec& e) { combine(e, gathered, topk_weights, routing, x); }},
  };
}

template <class Format>
class KokkosTools : public testing::Test {};
using Formats = testing::Types<NVFP4, MXFP8_E4M3>;
TYPED_TEST_SUITE(KokkosTools, Formats);

TYPED_TEST(KokkosTools, every_kernel_is_named_after_its_operation_and_backend) {
  for (const Call& call : calls<TypeParam>()) {
    const Exec exec;
    const Events seen = observed([&] { call.run(exec); });
    exec.fence();
    EXPECT_FALSE(seen.kernels.empty()) << call.name;
    const std::string start = "microscale::" + call.name + "[";
    for (const std::string& kernel : seen.kernels) {
      const bool named = kernel.starts_with(start) && kernel.ends_with("]");
      const std::string backend = named ? kernel.substr(start.size(), kernel.size() - start.size() - 1) : "";
      EXPECT_TRUE(named && !backend.empty() &&
                  backend.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos)
          << call.name << " ran " << kernel;
    }
  }
}

TYPED_TEST(KokkosTools, no_hidden_fence_and_no_hidden_allocation) {
  for (const Call& call : calls<TypeParam>()) {
    const Exec exec;
    const Events seen = observed([&] { call.run(exec); });
    exec.fence();
    EXPECT_TRUE(seen.fences.empty()) << call.name << ": " << seen.fences.front();
    EXPECT_TRUE(seen.allocations.empty()) << call.name << ": " << seen.allocations.front();
  }
}

TYPED_TEST(KokkosTools, all_work_runs_on_the_instance_that_was_given) {
  const auto instances = Kokkos::Experimental::partition_space(Exec(), std::vector<int>{1, 1});
  for (const Exec& exec : instances)
    for (const Call& call : calls<TypeParam>()) {
      const Events seen = observed([&] { call.run(exec); });
      exec.fence();
      EXPECT_EQ(seen.instances, std::set<std::uint32_t>{Kokkos::Tools::Experimental::device_id(exec)}) << call.name;
    }
}

// The callbacks do see what they must not see.
TEST(KokkosToolsCheck, the_observer_can_fail) {
  const Events seen = observed([] {
    const Kokkos::View<int*, Space> view("hidden", 3);
    Exec().fence("hidden fence");
  });
  EXPECT_FALSE(seen.allocations.empty());
  EXPECT_FALSE(seen.fences.empty());
}

}  // namespace
