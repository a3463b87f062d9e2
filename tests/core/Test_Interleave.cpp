#include "TestData.hpp"
#include <Microscale_Interleave.hpp>

namespace {

using namespace microscale;
using namespace microscale::Test;

template <class Exec>
class Interleave : public testing::Test {};
TYPED_TEST_SUITE(Interleave, Spaces);

std::uint8_t scale_at(std::int64_t r, std::int64_t b) { return static_cast<std::uint8_t>(1 + (r * 131 + b * 7) % 255); }

TYPED_TEST(Interleave, between_any_two_layouts_with_zeroed_padding) {
  const TypeParam exec;
  for (const auto& [rows, blocks] : {std::pair{0, 5},
                                     {3, 0},
                                     {1, 1},
                                     {128, 4},
                                     {129, 4},
                                     {129, 5},
                                     {33, 9},
                                     {64, 64},
                                     {17, 32},
                                     {200, 180},
                                     {129, 90}})
    for (const ScaleLayout source : all_layouts)
      for (const ScaleLayout target : all_layouts) {
        ScaleMatrix<Space> from("from", rows, blocks, source), to("to", rows, blocks, target);
        std::fill_n(from.view().data(), from.map().bytes(), std::uint8_t{0x7f});
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t b = 0; b < blocks; ++b) from.view().data()[from.map().offset(r, b)] = scale_at(r, b);
        std::fill_n(to.view().data(), to.map().bytes(), std::uint8_t{0xff});
        interleave_scales(exec, from, to);
        exec.fence();
        for (std::int64_t i = 0; i < to.map().bytes(); ++i) {
          const ScalePosition p = to.map().position(i);
          ASSERT_EQ(to.view().data()[i], p.row < rows && p.col < blocks ? scale_at(p.row, p.col) : 0)
              << name(source) << " to " << name(target) << " " << rows << "x" << blocks << " at " << i;
        }
      }
}

TYPED_TEST(Interleave, keeps_to_the_pitch_of_wrapped_memory) {
  const TypeParam exec;
  ScaleMatrix<Space> from("from", 130, 6, ScaleLayout::linear);
  for (std::int64_t r = 0; r < 130; ++r)
    for (std::int64_t b = 0; b < 6; ++b) from.view()(r, b) = scale_at(r, b);
  Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, Space> memory("memory", 2, 1024 + 32);
  Kokkos::deep_copy(memory, std::uint8_t{0xee});
  const ScaleMatrix<Space> to(memory, 130, 6, ScaleLayout::tcgen);
  interleave_scales(exec, from, to);
  exec.fence();
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 1024; j < 1024 + 32; ++j) EXPECT_EQ(memory(i, j), 0xee);
  ScaleMatrix<Space> back("back", 130, 6, ScaleLayout::linear);
  deinterleave_scales(exec, to, back);
  exec.fence();
  for (std::int64_t r = 0; r < 130; ++r)
    for (std::int64_t b = 0; b < 6; ++b) EXPECT_EQ(back.view()(r, b), scale_at(r, b));
}

TEST(InterleaveErrors, extents_and_layouts) {
  ScaleMatrix<Space> a("a", 4, 5, ScaleLayout::linear), b("b", 5, 4, ScaleLayout::tcgen),
      c("c", 4, 5, ScaleLayout::tcgen);
  expect_refused([&] { interleave_scales(a, b); }, {"interleave_scales", "to", "5 x 4", "4 x 5"});
  // Already interleaved scales are never taken for linear ones.
  expect_refused([&] { deinterleave_scales(a, c); }, {"deinterleave_scales", "tcgen", "linear"});
  expect_refused([&] { interleave_scales(a, a); }, {"interleave_scales", "memory of from"});
  Kokkos::View<std::uint8_t**, Space> small("small", 4, 5);
  Kokkos::View<std::uint8_t**, Kokkos::LayoutStride, Space> overlap(small.data(), Kokkos::LayoutStride(4, 3, 5, 1));
  expect_refused([&] { ScaleMatrix<Space>(overlap, 4, 5, ScaleLayout::linear); }, {"ScaleMatrix", "row stride 3", "5"});
  expect_refused([&] { ScaleMatrix<Space>(small, -1, 5, ScaleLayout::linear); }, {"ScaleMatrix", "-1 x 5"});
  expect_refused([&] { ScaleMatrix<Space>(small, 4, 5, ScaleLayout::tcgen); }, {"ScaleMatrix", "view", "1 x 1024"});
}

}  // namespace
