#include "TestData.hpp"
#include <Microscale_MatrixCopy.hpp>
#include <Microscale_Quantize.hpp>

namespace {

using namespace microscale;
using namespace microscale::Test;
using Bytes = Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, Space>;

template <class Format>
BlockScaledMatrix<Format, Space> quantized(std::int64_t rows, std::int64_t cols, ScaleLayout layout) {
  BlockScaledMatrix<Format, Space> matrix("matrix", rows, cols, layout);
  quantize(view_of<float, Kokkos::LayoutRight>(hostile_values(rows, cols, 3, true), rows, cols), matrix);
  Kokkos::fence();
  return matrix;
}

TEST(Matrix, extents_of_what_it_holds) {
  const BlockScaledMatrix<NVFP4, Space> matrix("m", 300, 200, ScaleLayout::tcgen);
  EXPECT_EQ(matrix.rows(), 300);
  EXPECT_EQ(matrix.cols(), 200);
  EXPECT_EQ(matrix.blocks(), 13);
  EXPECT_EQ(matrix.data().extent(0), 300u);
  EXPECT_EQ(matrix.data().extent(1), 100u);
  EXPECT_EQ(matrix.scales().extent(0), 3u);
  EXPECT_EQ(matrix.scales().extent(1), 4u * 512u);
  EXPECT_EQ(matrix.tensor_scale()().decode, 1.0f);
  EXPECT_EQ(matrix.scale_layout(), ScaleLayout::tcgen);
  const BlockScaledMatrix<MXFP6_E2M3, Space> six("six", 2, 35);
  EXPECT_EQ(six.data().extent(1), 27u);  // 35 * 6 bits
  EXPECT_EQ(six.tensor_scale().data(), nullptr);
}

TEST(Matrix, grouped_activations_have_a_partial_tile_more_for_each_group) {
  using M = BlockScaledMatrix<MXFP4, Space>;
  EXPECT_EQ(M::grouped("g", 350, 64, 3, ScaleLayout::tcgen).scales().extent(0), 3u + 3u);
  EXPECT_EQ(M::grouped("g", 0, 64, 3, ScaleLayout::tcgen).scales().extent(0), 3u);
  EXPECT_EQ(M::grouped("g", 350, 64, 3, ScaleLayout::linear).scales().extent(0), 350u);
  EXPECT_FALSE(M::grouped("g", 350, 64, 3, ScaleLayout::linear).has_grouped_scales());
}

TEST(Matrix, wrap_shares_memory_with_any_pitch) {
  Bytes data("data", 5, 70), scales("scales", 1, 1100);
  Kokkos::deep_copy(data, std::uint8_t{0xaa});
  Kokkos::View<TensorScalePair, Space> pair("pair");
  const auto matrix = BlockScaledMatrix<NVFP4, Space>::wrap(data, scales, pair, 5, 100, ScaleLayout::tcgen);
  const auto values = hostile_values(5, 100, 3, false);
  quantize(view_of<float, Kokkos::LayoutRight>(values, 5, 100), matrix);
  Kokkos::fence();
  expect_holds(matrix, quantize_plainly<NVFP4>(values, 5, 100, {.tensor_scale = dynamic_pair<NVFP4>(values)}),
               "wrapped");
  EXPECT_EQ(&matrix.data()(4, 3), &data(4, 3));
  for (int r = 0; r < 5; ++r)
    for (int j = 50; j < 70; ++j) EXPECT_EQ(data(r, j), 0xaa) << "beyond the row";
}

TEST(Matrix, wrap_refuses_what_does_not_fit) {
  using NV = BlockScaledMatrix<NVFP4, Space>;
  using MX = BlockScaledMatrix<MXFP4, Space>;
  const Bytes data("data", 8, 32), scales("scales", 8, 4);
  const Kokkos::View<TensorScalePair, Space> pair("pair"), absent;
  EXPECT_NO_THROW(NV::wrap(data, scales, pair, 8, 64));
  expect_refused([&] { NV::wrap(data, scales, pair, 9, 64); }, {"wrap", "data", "8 x 32", "9 x 32"});
  expect_refused([&] { NV::wrap(data, scales, pair, 8, 66); }, {"wrap", "data", "8 x 32", "8 x 33"});
  expect_refused([&] { NV::wrap(data, Bytes("s", 8, 3), pair, 8, 64); }, {"wrap", "scales", "8 x 3", "8 x 4"});
  expect_refused([&] { NV::wrap(data, scales, pair, 8, 64, ScaleLayout::tcgen); }, {"wrap", "scales", "1 x 512"});
  expect_refused([&] { NV::wrap(data, scales, absent, 8, 64); }, {"wrap", "tensor_scale", "absent"});
  expect_refused([&] { MX::wrap(data, scales, pair, 8, 64); }, {"wrap", "tensor_scale", "no tensor scale"});
  expect_refused([&] { NV::wrap(data, scales, pair, -1, 64); }, {"extents", "-1 x 64"});
  const Kokkos::View<std::uint8_t**, Kokkos::LayoutLeft, Space> left("left", 8, 32);
  expect_refused([&] { NV::wrap(left, scales, pair, 8, 64); }, {"wrap", "data", "column stride", "contiguous"});
  const Kokkos::View<std::uint8_t**, Kokkos::LayoutStride, Space> overlap(data.data(),
                                                                          Kokkos::LayoutStride(8, 16, 32, 1));
  expect_refused([&] { NV::wrap(overlap, scales, pair, 8, 64); }, {"wrap", "data", "row stride", "overlap"});
}

TEST(Matrix, row_ranges_exist_at_whole_tiles) {
  const auto matrix = quantized<NVFP4>(300, 100, ScaleLayout::tcgen);
  const auto part = matrix.row_range(128, 300);
  EXPECT_EQ(part.rows(), 172);
  const auto whole = matrix.handle(), rows = part.handle();
  for (std::int64_t r = 0; r < 172; ++r) {
    EXPECT_EQ(rows.row(r), whole.row(r + 128));
    for (std::int64_t b = 0; b < 7; ++b) EXPECT_EQ(&rows.scale(r, b), &whole.scale(r + 128, b));
  }
  EXPECT_EQ(part.tensor_scale().data(), matrix.tensor_scale().data());
  expect_refused([&] { matrix.row_range(1, 128); }, {"row_range", "[1, 128)", "128", "tcgen"});
  expect_refused([&] { matrix.row_range(0, 127); }, {"row_range", "[0, 127)"});
  expect_refused([&] { matrix.row_range(128, 301); }, {"row_range", "end <= 300"});
  expect_refused([&] { matrix.row_range(256, 128); }, {"row_range"});
  EXPECT_NO_THROW(quantized<NVFP4>(300, 100, ScaleLayout::linear).row_range(1, 2));
  EXPECT_NO_THROW(quantized<NVFP4>(300, 100, ScaleLayout::cdna4).row_range(32, 64));
  EXPECT_EQ(matrix.row_range(128, 128).rows(), 0);
}

TEST(Matrix, batched_form_pads_each_matrix) {
  const auto batch = BlockScaledMatrix<NVFP4, Space>::batched("batch", 3, 130, 80, ScaleLayout::tcgen);
  EXPECT_EQ(batch.batch(), 3);
  EXPECT_EQ(batch.scale_stride(), 2 * 2 * 512);
  EXPECT_EQ(batch.matrix(2).scales().data(), batch.scales().data() + 2 * 2048);
  EXPECT_EQ(batch.matrix(2).data().data(), batch.data().data() + 2 * 130 * 40);
  EXPECT_EQ(batch.matrix(2).tensor_scale().data(), batch.tensor_scale().data() + 2);
  expect_refused([&] { batch.matrix(3); }, {"matrix", "is 3", "0 to 2"});
  using Batched = BatchedBlockScaledMatrix<NVFP4, Space>;
  const auto wrapped = Batched::wrap(batch.data(), batch.scales(), batch.tensor_scale(), 130, 80, ScaleLayout::tcgen);
  EXPECT_EQ(wrapped.matrix(1).data().data(), batch.matrix(1).data().data());
  expect_refused([&] { Batched::wrap(batch.data(), batch.scales(), {}, 130, 80, ScaleLayout::tcgen); },
                 {"tensor_scale"});
  expect_refused(
      [&] { Batched::wrap(batch.data(), batch.scales(), batch.tensor_scale(), 130, 82, ScaleLayout::tcgen); },
      {"data", "130 x 41"});
}

TEST(Matrix, copies_keep_bytes_across_layouts) {
  for_each_format([](auto format) {
    using Format = decltype(format);
    const auto matrix = quantized<Format>(67, 77, ScaleLayout::linear);
    for (const ScaleLayout layout : all_layouts) {
      BlockScaledMatrix<Format, Space> copy("copy", 67, 77, layout);
      poison(copy, 0x99);
      deep_copy(copy, matrix);
      EXPECT_EQ(copy.bytes(), matrix.bytes()) << Format::name << " " << name(layout);
      const auto back = from_bytes<Format, Space>("back", 67, 77, matrix.bytes(), layout);
      EXPECT_EQ(raw_bytes(back), raw_bytes(copy)) << Format::name << " " << name(layout);
      EXPECT_EQ(raw_bytes(create_mirror_and_copy(copy)), raw_bytes(copy));
    }
  });
}

TEST(Matrix, bytes_are_codes_then_scales_then_the_pair) {
  Kokkos::View<float**, Kokkos::LayoutRight, Space> view("view", 1, 18);
  view(0, 0) = 1.0f;
  view(0, 1) = 2.0f;
  view(0, 17) = -6.0f;
  BlockScaledMatrix<NVFP4, Space> matrix("matrix", 1, 18, ScaleLayout::tcgen);
  quantize(view, matrix, {.tensor_scale = TensorScale::encode(2.0f)});
  Kokkos::fence();
  // Blocks: amax 2 -> scale 2/6*2 = 0.667 -> 0.6875 (0x33); amax 6 -> 2 (0x40). Codes by value * 2 / scale.
  const std::vector<std::uint8_t> expected = {0x75, 0, 0, 0, 0,    0, 0, 0, 0xf0, 0x33,
                                              0x40, 0, 0, 0, 0x3f, 0, 0, 0, 0x40};
  EXPECT_EQ(matrix.bytes(), expected);
  expect_refused([&] { from_bytes<NVFP4, Space>("m", 1, 19, expected); }, {"from_bytes", "size 19", "20"});
}

TEST(Matrix, deep_copy_refuses_what_does_not_fit_and_writes_nothing) {
  BlockScaledMatrix<MXFP4, Space> a("a", 3, 32), b("b", 3, 64);
  poison(a, 0x44);
  const auto before = raw_bytes(a);
  expect_refused([&] { deep_copy(a, b); }, {"deep_copy", "3 x 32", "3 x 64"});
  const auto grouped = BlockScaledMatrix<MXFP4, Space>::grouped("grouped", 3, 32, 2, ScaleLayout::tcgen);
  expect_refused([&] { deep_copy(a, grouped); }, {"deep_copy", "grouped"});
  EXPECT_EQ(raw_bytes(a), before);
}

TEST(Matrix, grouped_matrices_and_batches_are_mirrored_whole) {
  const auto grouped = BlockScaledMatrix<NVFP4, Space>::grouped("grouped", 200, 40, 5, ScaleLayout::tcgen);
  poison(grouped, 0x5a);
  const auto mirror = create_mirror_and_copy(grouped);
  EXPECT_TRUE(mirror.has_grouped_scales());
  EXPECT_EQ(raw_bytes(mirror), raw_bytes(grouped));
  expect_refused([&] { grouped.bytes(); }, {"bytes", "grouped"});

  const auto batch = BlockScaledMatrix<NVFP4, Space>::batched("batch", 3, 20, 40, ScaleLayout::cdna4);
  for (int e = 0; e < 3; ++e) poison(batch.matrix(e), 0x11 * (e + 1));
  const auto batch_mirror = create_mirror_and_copy(batch);
  for (int e = 0; e < 3; ++e) EXPECT_EQ(raw_bytes(batch_mirror.matrix(e)), raw_bytes(batch.matrix(e)));
  const auto other = BlockScaledMatrix<NVFP4, Space>::batched("other", 2, 20, 40, ScaleLayout::cdna4);
  expect_refused([&] { deep_copy(other, batch); }, {"deep_copy", "batch 2", "3"});
}

TEST(Matrix, a_batch_does_not_overlap_itself) {
  using Batched = BatchedBlockScaledMatrix<MXFP4, Space>;
  const Kokkos::View<std::uint8_t*, Space> memory("memory", 1000);
  using Strided = Kokkos::View<std::uint8_t***, Kokkos::LayoutStride, Space>;
  const Strided data(memory.data(), Kokkos::LayoutStride(3, 64, 4, 16, 16, 1)),
      scales(memory.data(), Kokkos::LayoutStride(3, 4, 4, 1, 1, 1));
  const Strided over(memory.data(), Kokkos::LayoutStride(3, 63, 4, 16, 16, 1));
  EXPECT_NO_THROW(Batched::wrap(data, scales, {}, 4, 32));
  expect_refused([&] { Batched::wrap(over, scales, {}, 4, 32); }, {"wrap", "data", "batch stride 63", "64"});
}

TEST(Matrix, sizes_beyond_any_machine_are_refused) {
  using M = BlockScaledMatrix<MXFP8_E4M3, Space>;
  const std::int64_t big = std::int64_t{1} << 33, biggest = INT64_MAX;
  expect_refused([&] { M("m", big, big); }, {"extents", "8589934592 x 8589934592", "2^62"});
  expect_refused([&] { M("m", 0, biggest); }, {"extents", "2^62"});
  expect_refused([&] { M("m", biggest, 0); }, {"extents", "2^62"});
  expect_refused([&] { M::batched("m", 2, big, big); }, {"extents", "2^62"});
  expect_refused([&] { M::grouped("m", big, big, 3); }, {"extents", "2^62"});
}

TEST(Matrix, an_empty_matrix_without_memory_can_be_copied) {
  for_each_format([](auto format) {
    using M = BlockScaledMatrix<decltype(format), Space>;
    const M none, empty("empty", 0, 0);
    EXPECT_EQ(create_mirror_and_copy(none).rows(), 0);
    EXPECT_EQ(none.bytes(), empty.bytes());
    EXPECT_NO_THROW(deep_copy(none, empty));
    EXPECT_NO_THROW(deep_copy(empty, none));
  });
}

// int32 offsets wrap past 2^31.
TEST(Matrix, index_arithmetic_is_64_bit) {
  const ScaleMap map{ScaleLayout::tcgen, 40'000'001, 448};
  EXPECT_EQ(map.offset(40'000'000, 0), 17'920'000'000);
  EXPECT_EQ(packed_bytes<MXFP6_E2M3>(std::int64_t{1} << 40), (std::int64_t{6} << 40) / 8);
  auto* const base = reinterpret_cast<std::uint8_t*>(std::uintptr_t{1} << 20);  // never read
  Impl::MatrixHandle<NVFP4> handle{};
  handle.data = base;
  handle.row_pitch = 1344;
  EXPECT_EQ(handle.row(3'999'999) - base, 5'375'998'656);
}

}  // namespace
