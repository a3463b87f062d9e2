#include "TestData.hpp"
#include <Microscale_ExpertRouting.hpp>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

namespace ms = microscale;

namespace {

using Ints = std::vector<std::int32_t>;
using Host = ms::Test::Space;
using Ids = Kokkos::View<std::int32_t**, Kokkos::LayoutRight, Host>;
using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Host>;

template <class V>
Ints to_vector(const V& v) {
  return Ints(v.data(), v.data() + v.extent(0));
}

template <class V>
void poison(const V& v) {
  std::fill_n(const_cast<std::int32_t*>(v.data()), v.size(), std::int32_t{0x5a5a5a5a});
}

ms::ExpertRouting<Host> poisoned(std::int64_t tokens, std::int64_t k, std::int64_t experts,
                                 ms::ScaleLayout layout = ms::ScaleLayout::tcgen) {
  ms::ExpertRouting<Host> routing("routing", tokens, k, experts, layout);
  poison(routing.row_offsets());
  poison(routing.expert_ids());
  poison(routing.a_scale_offsets());
  poison(routing.permutation());
  poison(routing.inverse());
  return routing;
}

Ids make_ids(std::int64_t tokens, std::int64_t k, const Ints& values) {
  Ids ids("ids", tokens, k);
  std::copy(values.begin(), values.end(), ids.data());
  return ids;
}

/// Choices of one expert a token, counts[e] times expert e, from the last expert to the first.
Ids ids_of_counts(const Ints& counts) {
  Ints values;
  for (auto e = static_cast<std::int32_t>(counts.size()) - 1; e >= 0; --e)
    values.insert(values.end(), static_cast<std::size_t>(counts[static_cast<std::size_t>(e)]), e);
  return make_ids(static_cast<std::int64_t>(values.size()), 1, values);
}

/// What the definition says, written as a stable sort.
void expect_sorted(const ms::ExpertRouting<Host>& routing, const Ids& ids) {
  const auto n = static_cast<std::int64_t>(ids.size());
  const auto experts = static_cast<std::int32_t>(routing.experts());
  Ints order;
  for (std::int64_t i = 0; i < n; ++i)
    if (0 <= ids.data()[i] && ids.data()[i] < experts) order.push_back(static_cast<std::int32_t>(i));
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return ids.data()[a] < ids.data()[b]; });
  Ints offsets(static_cast<std::size_t>(experts) + 1, 0), inverse(static_cast<std::size_t>(n), -1);
  for (std::size_t p = 0; p < order.size(); ++p) {
    inverse[static_cast<std::size_t>(order[p])] = static_cast<std::int32_t>(p);
    ++offsets[static_cast<std::size_t>(ids.data()[order[p]]) + 1];
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  order.resize(static_cast<std::size_t>(n), -1);
  Ints expert_ids(static_cast<std::size_t>(experts));
  std::iota(expert_ids.begin(), expert_ids.end(), 0);
  EXPECT_EQ(to_vector(routing.row_offsets()), offsets);
  EXPECT_EQ(to_vector(routing.permutation()), order);
  EXPECT_EQ(to_vector(routing.inverse()), inverse);
  EXPECT_EQ(to_vector(routing.expert_ids()), expert_ids);
}

template <class Exec>
class ExpertRouting : public testing::Test {};
TYPED_TEST_SUITE(ExpertRouting, ms::Test::Spaces);

TYPED_TEST(ExpertRouting, sorts_by_expert_then_by_choice) {
  TypeParam exec;
  const Ids ids = make_ids(4, 2, {2, 0, 0, 2, 3, 0, 2, 3});
  const auto routing = poisoned(4, 2, 5);
  ms::build_expert_offsets(exec, ids, routing);
  exec.fence();
  EXPECT_EQ(to_vector(routing.row_offsets()), (Ints{0, 3, 3, 6, 8, 8}));
  EXPECT_EQ(to_vector(routing.expert_ids()), (Ints{0, 1, 2, 3, 4}));
  EXPECT_EQ(to_vector(routing.permutation()), (Ints{1, 2, 5, 0, 3, 6, 4, 7}));
  EXPECT_EQ(to_vector(routing.inverse()), (Ints{3, 0, 1, 4, 6, 2, 5, 7}));
  EXPECT_EQ(to_vector(routing.a_scale_offsets()), (Ints{0, 1, 1, 2, 3}));
}

TYPED_TEST(ExpertRouting, drops_ids_that_name_no_expert) {
  TypeParam exec;
  const Ids ids = make_ids(3, 2, {-1, 1, 5, 0, INT32_MIN, INT32_MAX});
  const auto routing = poisoned(3, 2, 5);
  ms::build_expert_offsets(exec, ids, routing);
  exec.fence();
  EXPECT_EQ(to_vector(routing.row_offsets()), (Ints{0, 1, 2, 2, 2, 2}));
  EXPECT_EQ(to_vector(routing.permutation()), (Ints{3, 1, -1, -1, -1, -1}));
  EXPECT_EQ(to_vector(routing.inverse()), (Ints{-1, 1, -1, 0, -1, -1}));
}

// The worked example of the layout's origin, and counts around a tile: tile_start counts ceil(count / 128) tiles a
// slot.
TYPED_TEST(ExpertRouting, scale_offsets_around_tile_boundaries) {
  TypeParam exec;
  const auto expect = [&](const Ints& counts, const Ints& offsets, const Ints& scale_offsets,
                          ms::ScaleLayout layout = ms::ScaleLayout::tcgen) {
    const Ids ids = ids_of_counts(counts);
    const auto routing =
        poisoned(static_cast<std::int64_t>(ids.extent(0)), 1, static_cast<std::int64_t>(counts.size()), layout);
    ms::build_expert_offsets(exec, ids, routing);
    exec.fence();
    EXPECT_EQ(to_vector(routing.row_offsets()), offsets);
    EXPECT_EQ(to_vector(routing.a_scale_offsets()), scale_offsets);
    expect_sorted(routing, ids);
  };
  expect({100, 200, 50}, {0, 100, 300, 350}, {0, 1, 1});
  expect({127, 1, 128}, {0, 127, 128, 256}, {0, 1, 1});
  expect({128, 128, 1}, {0, 128, 256, 257}, {0, 0, 0});
  expect({129, 127, 2}, {0, 129, 256, 258}, {0, 1, 1});
  expect({128, 256, 128}, {0, 128, 384, 512}, {0, 0, 0});
  expect({1, 31, 44, 130}, {0, 1, 32, 76, 206}, {0, 1, 2, 3});
  expect({0, 5, 0, 0, 3, 0}, {0, 0, 5, 5, 5, 8, 8}, {0, 0, 1, 1, 1, 2});
  expect({13, 999}, {0, 13, 1012}, {0, 1});
  expect({31, 33, 32}, {0, 31, 64, 96}, {0, 1, 1}, ms::ScaleLayout::cdna4);
  expect({7, 9, 8}, {0, 7, 16, 24}, {0, 1, 1}, ms::ScaleLayout::tile_8x4);
  expect({3, 0, 4}, {0, 3, 3, 7}, {0, 0, 0}, ms::ScaleLayout::linear);
}

TYPED_TEST(ExpertRouting, nothing_to_route) {
  TypeParam exec;
  for (const auto& [tokens, k, experts] : {std::array{0, 2, 3}, std::array{4, 0, 3}, std::array{0, 0, 0}}) {
    const auto routing = poisoned(tokens, k, experts);
    ms::build_expert_offsets(exec, Ids("ids", tokens, k), routing);
    exec.fence();
    EXPECT_EQ(to_vector(routing.row_offsets()), Ints(static_cast<std::size_t>(experts) + 1, 0));
    EXPECT_EQ(to_vector(routing.a_scale_offsets()), Ints(static_cast<std::size_t>(experts), 0));
  }
  const auto routing = poisoned(3, 1, 0);  // choices, but no expert
  ms::build_expert_offsets(exec, make_ids(3, 1, {0, 1, -1}), routing);
  exec.fence();
  EXPECT_EQ(to_vector(routing.permutation()), (Ints{-1, -1, -1}));
  EXPECT_EQ(to_vector(routing.inverse()), (Ints{-1, -1, -1}));
}

TYPED_TEST(ExpertRouting, any_size_is_a_stable_sort) {
  TypeParam exec;
  std::mt19937 random(7);
  for (const int experts : {1, 2, 8, 63, 64, 65, 256}) {
    for (const int tokens : {1, 31, 32, 33, 64, 500}) {
      const int k = 1 + tokens % 4;
      const Ids ids("ids", tokens, k);
      const bool skewed = tokens % 2 == 0;
      std::uniform_int_distribution<int> any(-2, experts);
      for (std::size_t i = 0; i < ids.size(); ++i)
        ids.data()[i] = skewed && random() % 8 != 0 ? experts - 1 : any(random);
      const auto routing = poisoned(tokens, k, experts);
      ms::build_expert_offsets(exec, ids, routing);
      exec.fence();
      SCOPED_TRACE(testing::Message() << experts << " experts, " << tokens << " tokens");
      expect_sorted(routing, ids);
      const Ints first = to_vector(routing.permutation());
      ms::build_expert_offsets(exec, ids, routing);
      exec.fence();
      EXPECT_EQ(to_vector(routing.permutation()), first);
    }
  }
}

TYPED_TEST(ExpertRouting, ids_of_any_layout) {
  TypeParam exec;
  const Ids ids = make_ids(3, 2, {1, 0, 0, 1, 1, 1});
  Kokkos::View<std::int32_t**, Kokkos::LayoutLeft, Host> left("left", 3, 2);
  Kokkos::View<std::int32_t**, Kokkos::LayoutRight, Host> wide("wide", 3, 9);
  const auto part = Kokkos::subview(wide, Kokkos::ALL, Kokkos::pair(4, 6));
  Kokkos::deep_copy(wide, 77);
  for (int t = 0; t < 3; ++t)
    for (int j = 0; j < 2; ++j) left(t, j) = part(t, j) = ids(t, j);
  for (const auto& routing :
       {ms::build_expert_offsets(exec, left, 2), ms::build_expert_offsets(exec, part, 2, ms::ScaleLayout::linear)}) {
    exec.fence();
    expect_sorted(routing, ids);
  }
  const Kokkos::View<const std::int32_t**, Kokkos::LayoutRight, Host> constant = ids;
  const auto routing = poisoned(3, 2, 2);
  ms::build_expert_offsets(constant, routing);
  Kokkos::fence();
  expect_sorted(routing, ids);
}

TYPED_TEST(ExpertRouting, groups_have_a_slot_an_expert) {
  const auto routing = ms::ExpertRouting<Host>("routing", 4, 2, 3);
  const auto groups = routing.groups();
  EXPECT_EQ(groups.slots, 3);
  EXPECT_EQ(groups.row_offsets.data(), routing.row_offsets().data());
  EXPECT_EQ(groups.expert_ids.data(), routing.expert_ids().data());
  EXPECT_EQ(groups.a_scale_offsets.data(), routing.a_scale_offsets().data());
}

TYPED_TEST(ExpertRouting, gather_copies_rows_and_zeroes_unused_ones) {
  TypeParam exec;
  const int d = 300;
  Matrix x("x", 3, d), out("out", 6, d);
  Kokkos::View<double**, Kokkos::LayoutLeft, Host> left("left", 6, d);
  for (int t = 0; t < 3; ++t)
    for (int c = 0; c < d; ++c) x(t, c) = static_cast<float>(1000 * t + c);
  Kokkos::deep_copy(out, NAN);
  Kokkos::deep_copy(left, NAN);
  const auto routing = ms::build_expert_offsets(exec, make_ids(3, 2, {1, 0, -1, 1, 0, 0}), 2);
  ms::gather(exec, x, routing, out);
  ms::gather(exec, x, routing, left);
  exec.fence();
  const int token_of_row[] = {0, 2, 2, 0, 1, -1};
  for (int p = 0; p < 6; ++p)
    for (int c = 0; c < d; ++c) {
      const float expected = token_of_row[p] < 0 ? 0.0f : static_cast<float>(1000 * token_of_row[p] + c);
      ASSERT_EQ(out(p, c), expected) << p << ", " << c;
      ASSERT_EQ(left(p, c), expected) << p << ", " << c;
    }
}

TYPED_TEST(ExpertRouting, gather_keeps_bits_of_one_type) {
  TypeParam exec;
  Kokkos::View<ms::half**, Kokkos::LayoutRight, Host> x("x", 1, 3), out("out", 2, 3);
  x(0, 0) = ms::half::from_bits(0x7d01);  // a signalling NaN
  x(0, 1) = ms::half::from_bits(0x8000);
  x(0, 2) = ms::half::from_bits(0x0001);
  Kokkos::View<double**, Kokkos::LayoutRight, Host> y("y", 1, 1), wide("wide", 2, 1);
  y(0, 0) = 0.1;  // no float
  const auto routing = ms::build_expert_offsets(exec, make_ids(1, 2, {0, 0}), 1);
  ms::gather(exec, x, routing, out);
  ms::gather(exec, y, routing, wide);
  exec.fence();
  for (int p = 0; p < 2; ++p) {
    EXPECT_EQ(out(p, 0).bits, 0x7d01);
    EXPECT_EQ(out(p, 1).bits, 0x8000);
    EXPECT_EQ(out(p, 2).bits, 0x0001);
    EXPECT_EQ(wide(p, 0), 0.1);
  }
}

TYPED_TEST(ExpertRouting, combine_sums_in_order_by_fma_and_skips_dropped_choices) {
  TypeParam exec;
  const int d = 5;
  Matrix y("y", 9, d), weights("weights", 3, 3), out("out", 3, d);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> value(-2.0f, 2.0f);
  for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] = value(random);
  for (std::size_t i = 0; i < weights.size(); ++i) weights.data()[i] = value(random);
  const Ids ids = make_ids(3, 3, {2, 0, 1, -1, 1, 9, -1, -1, 7});
  weights(1, 0) = weights(1, 2) = NAN;  // of dropped choices
  for (int c = 0; c < d; ++c) y(8, c) = NAN;
  Kokkos::deep_copy(out, NAN);
  const auto routing = ms::build_expert_offsets(exec, ids, 3);
  ms::combine(exec, y, weights, routing, out);
  exec.fence();
  for (int c = 0; c < d; ++c) {  // expert 0: row 0; expert 1: rows 1 (token 0) and 2 (token 1); expert 2: row 3
    const float first = std::fma(weights(0, 0), y(3, c), 0.0f);
    EXPECT_EQ(out(0, c), std::fma(weights(0, 2), y(1, c), std::fma(weights(0, 1), y(0, c), first)));
    EXPECT_EQ(out(1, c), std::fma(weights(1, 1), y(2, c), 0.0f));
    EXPECT_EQ(out(2, c), 0.0f);
  }
}

// One fused operation and two differ here: 1 - (1 - 2^-24) * (1 + 2^-23) = -2^-24 + 2^-47 exactly, 0 or -2^-24
// otherwise.
TYPED_TEST(ExpertRouting, combine_is_fused) {
  TypeParam exec;
  Matrix y("y", 2, 1), weights("weights", 1, 2), out("out", 1, 1);
  weights(0, 0) = 1.0f;
  y(0, 0) = 1.0f;
  weights(0, 1) = -(1.0f - 0x1p-24f);
  y(1, 0) = 1.0f + 0x1p-23f;
  const auto routing = ms::build_expert_offsets(exec, make_ids(1, 2, {0, 0}), 1);
  ms::combine(exec, y, weights, routing, out);
  exec.fence();
  EXPECT_EQ(out(0, 0), -0x1p-24f + 0x1p-47f);
}

TYPED_TEST(ExpertRouting, gather_then_combine_gives_the_tokens_back) {
  TypeParam exec;
  const int tokens = 200, k = 2, d = 37;
  std::mt19937 random(11);
  const Ids ids("ids", tokens, k);
  for (std::size_t i = 0; i < ids.size(); ++i) ids.data()[i] = static_cast<std::int32_t>(random() % 7);
  Kokkos::View<ms::bf16**, Kokkos::LayoutLeft, Host> x("x", tokens, d);
  for (int t = 0; t < tokens; ++t)
    for (int c = 0; c < d; ++c) x(t, c) = ms::bf16::from_bits(static_cast<std::uint16_t>(0x3f80 + random() % 128));
  Kokkos::View<float**, Kokkos::LayoutLeft, Host> y("y", tokens * k, d);
  Kokkos::View<ms::half**, Kokkos::LayoutRight, Host> weights("weights", tokens, k);
  Kokkos::View<ms::bf16**, Kokkos::LayoutRight, Host> out("out", tokens, d);
  for (std::size_t i = 0; i < weights.size(); ++i) weights.data()[i] = ms::half(0.5f);
  const auto routing = ms::build_expert_offsets(exec, ids, 7);
  ms::gather(x, routing, y);
  Kokkos::fence();
  ms::combine(y, weights, routing, out);
  Kokkos::fence();
  for (int t = 0; t < tokens; ++t)
    for (int c = 0; c < d; ++c) ASSERT_EQ(out(t, c).bits, x(t, c).bits);
}

TYPED_TEST(ExpertRouting, empty_gather_and_combine) {
  TypeParam exec;
  const auto routing = ms::build_expert_offsets(exec, Ids("ids", 0, 2), 3);
  ms::gather(exec, Matrix("x", 0, 8), routing, Matrix("out", 0, 8));
  ms::combine(exec, Matrix("y", 0, 8), Matrix("w", 0, 2), routing, Matrix("out", 0, 8));
  const auto other = ms::build_expert_offsets(exec, make_ids(2, 1, {0, 2}), 3);
  ms::gather(exec, Matrix("x", 2, 0), other, Matrix("out", 2, 0));
  exec.fence();
  expect_sorted(other, make_ids(2, 1, {0, 2}));
}

TYPED_TEST(ExpertRouting, wrong_arguments_throw) {
  TypeParam exec;
  using ms::ExpertRouting;
  const auto message = [](auto f) {
    try {
      f();
    } catch (const std::invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string("nothing thrown");
  };
  EXPECT_EQ(message([] { ExpertRouting<Host>("r", -1, 2, 3); }),
            "microscale::ExpertRouting: tokens is -1; expected 0 to 2^31 - 2");
  EXPECT_EQ(message([] { ExpertRouting<Host>("r", 1 << 20, 1 << 12, 3); }),
            "microscale::ExpertRouting: tokens * k is 4294967296; expected at most 2^31 - 1, as rows are numbered by "
            "int32");
  const ExpertRouting<Host> routing("r", 4, 2, 3);
  EXPECT_EQ(message([&] { ms::build_expert_offsets(exec, Ids("ids", 4, 3), routing); }),
            "microscale::build_expert_offsets: topk_ids has extents 4 x 3; expected 4 x 2");
  EXPECT_EQ(message([&] { ms::gather(exec, Matrix("x", 5, 6), routing, Matrix("o", 8, 6)); }),
            "microscale::gather: x has extents 5 x 6; expected 4 x 6");
  EXPECT_EQ(message([&] { ms::gather(exec, Matrix("x", 4, 6), routing, Matrix("o", 4, 6)); }),
            "microscale::gather: out has extents 4 x 6; expected 8 x 6");
  EXPECT_EQ(message([&] { ms::combine(exec, Matrix("y", 8, 6), Matrix("w", 2, 4), routing, Matrix("o", 4, 6)); }),
            "microscale::combine: weights has extents 2 x 4; expected 4 x 2");
  EXPECT_EQ(message([&] { ms::combine(exec, Matrix("y", 4, 6), Matrix("w", 4, 2), routing, Matrix("o", 4, 6)); }),
            "microscale::combine: y has extents 4 x 6; expected 8 x 6");
}

TEST(ExpertRouting, one_without_memory_routes_nothing) {
  const ms::Test::Exec exec;
  const ms::ExpertRouting<Host> routing;
  EXPECT_NO_THROW(ms::build_expert_offsets(exec, Kokkos::View<std::int32_t**, Host>("ids", 0, 0), routing));
  exec.fence();
}

}  // namespace
