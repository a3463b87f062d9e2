#include "TestMatmul.hpp"
#include <Microscale_GroupedMatmul.hpp>
#include <Microscale_Matmul.hpp>

// The matmul kernels of devices, by teams, at the edges of their tiles; on a host-only Kokkos they run with teams of one
// thread. They must give the bits that the kernels of the host give.
namespace {

using namespace microscale;
using namespace microscale::Test;

constexpr const char* label = "microscale::test";
using Host = Kokkos::DefaultHostExecutionSpace;

template <class A, class B, class C, class E>
void matmul_by_teams(const A& a, const B& b, const C& c, const E& epilogue, const MatmulOptions& options = {}) {
  const auto call = Impl::matmul_kernel<false>(a, b, c, 1, epilogue, Impl::quantize_data(options.quantize));
  Impl::run_by_teams<Impl::MatmulTeams>(label, Exec(), call, 1, call.padded_rows);
  Kokkos::fence();
}

template <class C>
void expect_same(const C& c, const C& expected, const std::string& what) {
  for (std::size_t i = 0; i < c.extent(0); ++i)
    for (std::size_t j = 0; j < c.extent(1); ++j)
      ASSERT_TRUE(same_bits(static_cast<float>(c(i, j)), static_cast<float>(expected(i, j))))
          << what << ": " << i << ", " << j << ": " << static_cast<float>(c(i, j)) << ", expected "
          << static_cast<float>(expected(i, j));
}

template <class F>
std::int64_t rows_of(const BlockScaledMatrix<F, Space>& m) {
  return m.rows();
}
template <RealView V>
std::int64_t rows_of(const V& v) {
  return static_cast<std::int64_t>(v.extent(0));
}

template <class A, class B, class C, class E>
void check_view(const A& a, const B& b, const C& c, const C& expected, const E& epilogue, const std::string& what) {
  for (std::size_t i = 0; i < c.extent(0); ++i)
    for (std::size_t j = 0; j < c.extent(1); ++j)
      c(i, j) = expected(i, j) = typename C::value_type(static_cast<float>(i) - static_cast<float>(j));
  reference::matmul(Host(), a, b, expected, epilogue);
  Kokkos::fence();
  matmul_by_teams(a, b, c, epilogue);
  expect_same(c, expected, what);
}
template <class A, class B>
void check_plain(const A& a, const B& b, const std::string& what) {
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> c("c", rows_of(a), b.rows()), d("d", rows_of(a), b.rows());
  check_view(a, b, c, d, Epilogue{}, what);
}

template <class Format, class A, class B, class E>
void check_quantized(const A& a, const B& b, std::int64_t cols, const E& epilogue, ScaleLayout layout,
                     const std::string& what) {
  const BlockScaledMatrix<Format, Space> c("c", rows_of(a), cols, layout), d("d", rows_of(a), cols, layout);
  poison(c, 0x55);
  poison(d, 0xaa);
  MatmulOptions options;
  if constexpr (Format::tensor_scale) {
    c.tensor_scale()() = d.tensor_scale()() = pair_from_decode(0.5f);
    options.quantize.tensor_scale = TensorScale::stored();
  }
  reference::matmul(Host(), a, b, d, epilogue, options);
  Kokkos::fence();
  matmul_by_teams(a, b, c, epilogue, options);
  EXPECT_EQ(raw_bytes(c), raw_bytes(d)) << what << ", quantized to " << Format::name;
}

struct Shape {
  std::int64_t m, n, k;
};
constexpr Shape shapes[] = {{1, 1, 1}, {8, 128, 32}, {9, 130, 65}, {127, 64, 100}, {129, 258, 48}, {3, 6, 0}};

TEST(MatmulTeams, give_the_bits_of_the_host_at_the_edges_of_tiles) {
  for (const auto& [m, n, k] : shapes) {
    const std::string what = std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
    const auto seed = static_cast<std::uint64_t>(m + n + k);
    const auto b = random_operand<MXFP4>(n, k, ScaleLayout::tcgen, seed + 1);
    const auto b8 = random_operand<MXFP8_E4M3>(n, k, ScaleLayout::cdna4, seed + 2);
    const auto nv = random_operand<NVFP4>(n, k, ScaleLayout::tcgen, seed + 3);
    check_plain(random_operand<MXFP4>(m, k, ScaleLayout::linear, seed), b, what + " mxfp4 mxfp4");
    check_plain(random_operand<NVFP4>(m, k, ScaleLayout::tcgen, seed), nv, what + " nvfp4 nvfp4");
    check_plain(random_operand<NVFP4>(m, k, ScaleLayout::tcgen, seed), b8, what + " nvfp4 mxfp8");
    check_plain(random_operand<MXFP8_E5M2>(m, k, ScaleLayout::linear, seed), nv, what + " mxfp8 nvfp4");
    check_plain(random_operand<MXFP6_E2M3>(m, k, ScaleLayout::tile_8x4, seed), b, what + " mxfp6 mxfp4");
    check_plain(random_view<bf16>(m, k, seed), b8, what + " bf16 mxfp8");
    check_plain(random_view<float, Kokkos::LayoutLeft>(m, k, seed), nv, what + " float nvfp4");
  }
}

TEST(MatmulTeams, epilogues_gates_and_quantized_outputs) {
  for (const auto& [m, n, k] : shapes) {
    const std::string what = std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
    const auto a = random_operand<NVFP4>(m, k, ScaleLayout::tcgen, 1);
    const auto b = random_operand<MXFP8_E4M3>(n, k, ScaleLayout::cdna4, 2);
    const Kokkos::View<half**, Kokkos::LayoutLeft, Space> c("c", m, n), d("d", m, n);
    check_view(a, b, c, d, Epilogue{}.alpha(0.25f).beta(-0.5f).relu().then(AddIndices{1, -1}), what + ", epilogue");
    check_quantized<NVFP4>(a, b, n, Epilogue{}, ScaleLayout::tcgen, what);
    check_quantized<MXFP6_E3M2>(a, b, n, Epilogue{}.alpha(2.0f), ScaleLayout::cdna4, what);
    if (n % 2 != 0) continue;
    for (const GateColumns columns : {GateColumns::halved, GateColumns::interleaved}) {
      const Kokkos::View<float**, Kokkos::LayoutRight, Space> e("e", m, n / 2), f("f", m, n / 2);
      if (std::is_same_v<Exec, Host>) check_view(a, b, e, f, Epilogue{}.gate_silu(columns), what + ", gate");
    }
    if (std::is_same_v<Exec, Host>)  // exp is the platform's
      check_quantized<MXFP8_E4M3>(a, b, n / 2, Epilogue{}.gate_silu(GateColumns::halved), ScaleLayout::linear, what);
  }
}

/// Blocks of 24 and of 64 elements: pieces of uneven length, and longer than a stage.
struct Blocks24 : MXFP6_E2M3 {
  static constexpr int block_size = 24;
  static constexpr const char* name = "blocks of 24";
};
struct Blocks64 : MXFP4 {
  static constexpr int block_size = 64;
  static constexpr const char* name = "blocks of 64";
};

TEST(MatmulTeams, blocks_of_other_lengths) {
  const std::int64_t m = 70, n = 140, k = 203;
  const auto a = random_operand<Blocks24>(m, k, ScaleLayout::linear, 1);
  check_plain(a, random_operand<Blocks64>(n, k, ScaleLayout::linear, 2), "24 by 64");
  check_plain(a, random_operand<MXFP8_E4M3>(n, k, ScaleLayout::linear, 3), "24 by 32");
  check_plain(random_operand<Blocks64>(m, k, ScaleLayout::linear, 4),
              random_operand<Blocks64>(n, k, ScaleLayout::tcgen, 5), "64 by 64");
  check_plain(random_view<half>(m, k, 6), random_operand<Blocks64>(n, k, ScaleLayout::linear, 7), "half by 64");
}

TEST(MatmulTeams, grouped_with_slots_across_tiles) {
  const std::int64_t rows = 300, n = 150, k = 100, experts = 3;
  const std::vector<std::int32_t> sizes = {5, 0, 130, 1, 60, 90}, ids = {2, 1, 0, -1, 1, 2};
  const auto slots = static_cast<std::int64_t>(sizes.size());
  const Kokkos::View<std::int32_t*, Space> offsets("offsets", sizes.size() + 1), expert_ids("ids", sizes.size()),
      scale_offsets("scale offsets", sizes.size());
  std::int64_t tiles = 0;
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    scale_offsets(s) = static_cast<std::int32_t>(grouped_scale_offset(ScaleLayout::tcgen, offsets(s), tiles));
    offsets(s + 1) = offsets(s) + sizes[s];
    expert_ids(s) = ids[s];
    tiles += (sizes[s] + 127) / 128;
  }
  const Groups<Space> groups{offsets, expert_ids, scale_offsets, slots};
  const auto a = BlockScaledMatrix<NVFP4, Space>::grouped("a", rows, k, slots, ScaleLayout::tcgen);
  fill(a.handle(), 1, Scales::extreme, 0x38);
  const BatchedBlockScaledMatrix<MXFP4, Space> b("b", experts, n, k, ScaleLayout::linear);
  for (std::int64_t e = 0; e < experts; ++e)
    fill(b.matrix(e).handle(), static_cast<std::uint64_t>(e) + 2, Scales::extreme, 0xff);
  const auto check = [&](const auto& c, const auto& expected, const auto& epilogue) {
    reference::grouped_matmul(Host(), a, b, expected, groups, epilogue);
    Kokkos::fence();
    const auto call =
        Impl::grouped_matmul_kernel(grouped_matmul_problem(Exec(), a, b, c, groups, epilogue), a, b, c, epilogue);
    Impl::clear_unowned_scales(label, Exec(), call.c, call.c_slots);
    Impl::run_by_teams<Impl::GroupedMatmulTeams>(label, Exec(), call, 1, call.c.rows);
    Kokkos::fence();
  };
  const Kokkos::View<float**, Space> c("c", rows, n), d("d", rows, n);
  poison_view(c);
  check(c, d, Epilogue{}.then(AddIndices{-1, -1}));
  expect_same(c, d, "plain");
  const auto q = BlockScaledMatrix<MXFP4, Space>::grouped("q", rows, n, slots, ScaleLayout::tcgen);
  const auto q_too = BlockScaledMatrix<MXFP4, Space>::grouped("q", rows, n, slots, ScaleLayout::tcgen);
  poison(q, 0x55);
  poison(q_too, 0xaa);
  check(q, q_too, Epilogue{});
  EXPECT_EQ(raw_bytes(q), raw_bytes(q_too));
}

}  // namespace
