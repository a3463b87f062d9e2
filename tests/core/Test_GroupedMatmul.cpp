#include "TestMatmul.hpp"
#include <Microscale_GroupedMatmul.hpp>

#include <limits>
#include <string>
#include <vector>

namespace {

using namespace microscale;
using namespace microscale::Test;
using microscale::half;  // CUDA has another one

constexpr std::int64_t experts = 5, depth = 90, cols = 70;
constexpr float untouched = -1234.5f;

/// Slots as a caller has them: how many rows each, and whose they are.
struct Slots {
  std::vector<int> sizes;
  std::vector<int> ids;

  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const int n : sizes) sum += n;
    return sum;
  }
};

Kokkos::View<std::int32_t*, Space> index_view(const std::vector<int>& values) {
  const Kokkos::View<std::int32_t*, Space> v("indices", values.size());
  for (std::size_t i = 0; i < values.size(); ++i) v(i) = values[i];
  return v;
}

Groups<Space> groups_of(const Slots& slots, ScaleLayout layout) {
  std::vector<int> offsets{0}, scale_offsets;
  std::int64_t tile = 0;
  const int tile_rows = scale_tile(layout).rows;
  for (const int n : slots.sizes) {
    scale_offsets.push_back(static_cast<int>(grouped_scale_offset(layout, offsets.back(), tile)));
    tile += (n + tile_rows - 1) / tile_rows;
    offsets.push_back(offsets.back() + n);
  }
  return {index_view(offsets), index_view(slots.ids), index_view(scale_offsets),
          static_cast<std::int64_t>(slots.sizes.size())};
}

/// The row of the scale buffer of a matrix row, by counting.
std::int64_t scale_row_of(const Slots& slots, ScaleLayout layout, std::int64_t row) {
  const int tile_rows = scale_tile(layout).rows;
  if (layout == ScaleLayout::linear) return row;
  std::int64_t begin = 0, tile = 0;
  for (const int n : slots.sizes) {
    if (row < begin + n) return tile * tile_rows + row - begin;
    begin += n;
    tile += (n + tile_rows - 1) / tile_rows;
  }
  return 0;
}

int expert_of(const Slots& slots, std::int64_t row) {
  std::int64_t begin = 0;
  for (std::size_t s = 0; s < slots.sizes.size(); begin += slots.sizes[s++])
    if (row < begin + slots.sizes[s]) return slots.ids[s] < experts ? slots.ids[s] : -1;
  return -1;
}

/// Activations of `rows` rows (some perhaps in no slot), NaN in all scales that belong to no row.
template <class F>
BlockScaledMatrix<F, Space> activations(const Slots& slots, std::int64_t rows, ScaleLayout layout, std::uint64_t seed) {
  auto m =
      BlockScaledMatrix<F, Space>::grouped("a", rows, depth, static_cast<std::int64_t>(slots.sizes.size()), layout);
  const auto h = m.handle();
  const auto source = random_operand<F>(rows, depth, ScaleLayout::linear, seed, Scales::moderate);
  const auto filled = source.handle();
  for (std::int64_t i = 0; i < h.tile_rows; ++i)
    for (std::int64_t j = 0; j < h.map.tile_row_bytes(); ++j) h.scales[i * h.scale_pitch + j] = 0xff;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < packed_bytes<F>(depth); ++j) h.row(r)[j] = filled.row(r)[j];
    for (std::int64_t b = 0; b < m.blocks(); ++b)
      if (r < slots.total()) h.scale(scale_row_of(slots, layout, r), b) = filled.scale(r, b);
  }
  if (F::tensor_scale) *h.tensor_scale = {0.25f, 4.0f};
  return m;
}

template <class F>
BatchedBlockScaledMatrix<F, Space> weights(ScaleLayout layout, std::int64_t n = cols) {
  const BatchedBlockScaledMatrix<F, Space> m("b", experts, n, depth, layout);
  for (std::int64_t e = 0; e < experts; ++e)
    fill(m.matrix(e).handle(), 100 + static_cast<std::uint64_t>(e), Scales::moderate, 0xff);
  return m;
}

/// What row r of C is: the product with its expert, or what `skipped` says for rows of none.
template <class View, class Value>
void expect_rows(const Slots& slots, const View& c, float skipped, const Value& value, const std::string& what) {
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.extent(0)); ++i) {
    const int e = expert_of(slots, i);
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(c.extent(1)); ++j) {
      const float expected = e >= 0 ? value(e, i, j) : skipped;
      ASSERT_TRUE(same_bits(static_cast<float>(c(i, j)), expected))
          << what << ": row " << i << " of expert " << e << ", column " << j << " is " << static_cast<float>(c(i, j))
          << ", expected " << expected;
    }
  }
}

template <class FA, class FB>
void check_groups(const Slots& slots, ScaleLayout layout_a, const std::string& what) {
  const std::int64_t rows = slots.total() + 3;  // three rows in no slot
  const auto a = activations<FA>(slots, rows, layout_a, 7);
  const auto b = weights<FB>(ScaleLayout::tcgen);
  const auto groups = groups_of(slots, layout_a);
  const PlainOperand pa = plain(a.handle(), [&](std::int64_t r) { return scale_row_of(slots, layout_a, r); });
  std::vector<PlainOperand> pb;
  for (int e = 0; e < experts; ++e) pb.push_back(plain(b.matrix(e)));
  const auto value = [&](int e, std::int64_t i, std::int64_t j) {
    const auto& w = pb[static_cast<std::size_t>(e)];
    return plain_product(pa, i, w, j) * pa.decode * w.decode;
  };
  const Kokkos::View<float**, Space> c("c", rows, cols);
  for (const SkippedRows skipped : {SkippedRows::zero, SkippedRows::untouched}) {
    Kokkos::deep_copy(c, untouched);
    grouped_matmul(Exec(), a, b, c, groups, {}, {.skipped_rows = skipped});
    expect_rows(slots, c, skipped == SkippedRows::zero ? 0.0f : untouched, value, what);
  }
}

// B52: group sizes that are multiples of nothing; B47: empty groups first, last, in between and all; more rows than a tile.
TEST(GroupedMatmul, sizes_of_groups) {
  const Slots cases[] = {{{1, 31, 44, 130}, {3, 0, 4, 1}},
                         {{0, 5, 0, 0, 3, 0}, {0, 1, 2, 3, 4, -1}},
                         {{0, 0, 0}, {0, 1, 2}},
                         {{128, 128}, {4, 2}},
                         {{1, 1, 1, 1, 1}, {4, 3, 2, 1, 0}},
                         {{200}, {2}},
                         {{}, {}},
                         {{65, 0, 63, 1}, {1, 0, 2, 3}}};
  int number = 0;
  for (const Slots& slots : cases)
    for (const ScaleLayout layout : all_layouts)
      check_groups<NVFP4, NVFP4>(slots, layout, "case " + std::to_string(number++ / 4) + ", " + name(layout));
}

TEST(GroupedMatmul, skipped_slots_and_rows_in_none) {
  const Slots cases[] = {{{4, 10, 3}, {2, -1, 0}}, {{4, 10, 3}, {-1, 1, -1}}, {{7, 7}, {-1, -1}}};
  for (const Slots& slots : cases)
    for (const ScaleLayout layout : all_layouts) check_groups<MXFP8_E4M3, MXFP4>(slots, layout, name(layout));
}

// Two slots may have the same expert.
TEST(GroupedMatmul, expert_of_two_slots) { check_groups<MXFP4, MXFP4>({{5, 6, 7}, {2, 1, 2}}, ScaleLayout::tcgen, ""); }

TEST(GroupedMatmul, unquantized_activations_and_other_outputs) {
  const Slots slots{{3, 0, 66, 2}, {1, 0, 4, -1}};
  const std::int64_t rows = slots.total();
  const auto a = random_view<bf16, Kokkos::LayoutLeft>(rows, depth, 4);
  const auto b = weights<MXFP4>(ScaleLayout::cdna4);
  const Kokkos::View<half**, Kokkos::LayoutLeft, Space> c("c", rows, cols);
  poison_view(c);
  grouped_matmul(a, b, c, groups_of(slots, ScaleLayout::linear));
  const PlainOperand pa = plain(a);
  expect_rows(
      slots, c, 0.0f,
      [&](int e, std::int64_t i, std::int64_t j) {
        return static_cast<float>(half(plain_product(pa, i, plain(b.matrix(e)), j)));
      },
      "bf16");
}

// B57: what belongs to an expert is found by its id; what belongs to a row, by the row.
TEST(GroupedMatmul, epilogue_by_expert_id_and_row) {
  const Slots slots{{3, 4, 2, 5}, {4, -1, 0, 2}};
  const std::int64_t rows = slots.total(), h = cols / 2;
  const auto a = activations<MXFP4>(slots, rows, ScaleLayout::tcgen, 7);
  const auto b = weights<NVFP4>(ScaleLayout::tcgen);
  const Kokkos::View<float*, Space> expert_scale("scale", experts), row_scale("row", rows);
  const Kokkos::View<bf16**, Space> bias("bias", experts, cols);
  for (int e = 0; e < experts; ++e) {
    expert_scale(e) = 0.01f * static_cast<float>(e + 1);
    for (int j = 0; j < cols; ++j) bias(e, j) = bf16(static_cast<float>(e) + 0.125f * static_cast<float>(j % 5));
  }
  for (int i = 0; i < rows; ++i) row_scale(i) = 0.5f + 0.1f * static_cast<float>(i);
  const PlainOperand pa = plain(a.handle(), [&](std::int64_t r) { return scale_row_of(slots, ScaleLayout::tcgen, r); });
  const auto linear = [&](int e, std::int64_t i, std::int64_t n) {
    const PlainOperand w = plain(b.matrix(e));
    float v = plain_product(pa, i, w, n) * pa.decode * w.decode;
    v = v * row_scale(i);
    v = v * expert_scale(e);
    return v + static_cast<float>(bias(e, n));
  };
  const Kokkos::View<float**, Space> c("c", rows, h);
  Kokkos::deep_copy(c, untouched);
  grouped_matmul(a, b, c, groups_of(slots, ScaleLayout::tcgen),
                 Epilogue{}
                     .bias(bias)
                     .row_scale(row_scale)
                     .expert_scale(expert_scale)
                     .gate_swiglu(GateColumns::interleaved)
                     .then(AddIndices{}));
  expect_rows(
      slots, c, 0.0f,
      [&](int e, std::int64_t i, std::int64_t j) {
        const float v = clamped_swiglu(linear(e, i, 2 * j), linear(e, i, 2 * j + 1), 7.0f, 1.702f);
        return v + static_cast<float>(i + j);
      },
      "epilogue");
}

// beta * C is added in rows that are not skipped.
TEST(GroupedMatmul, beta) {
  const Slots slots{{3, 4}, {1, -1}};
  const auto a = activations<MXFP4>(slots, 7, ScaleLayout::linear, 7);
  const auto b = weights<MXFP4>(ScaleLayout::linear);
  const Kokkos::View<float**, Space> c("c", 7, cols);
  Kokkos::deep_copy(c, 8.0f);
  grouped_matmul(a, b, c, groups_of(slots, ScaleLayout::linear), Epilogue{}.beta(0.5f),
                 {.skipped_rows = SkippedRows::untouched});
  const PlainOperand pa = plain(a), pb = plain(b.matrix(1));
  expect_rows(
      slots, c, 8.0f, [&](int, std::int64_t i, std::int64_t j) { return plain_product(pa, i, pb, j) + 4.0f; }, "beta");
}

// Codes, scales and padding of a quantized C: every byte is decided; skipped rows are zero or as they were, padding is
// always zero.
template <class F>
void check_quantized(ScaleLayout layout, SkippedRows skipped) {
  const Slots slots{{3, 30, 0, 9, 1}, {4, 1, 0, -1, 2}};
  const std::int64_t rows = slots.total() + 2;
  const auto a = activations<MXFP4>(slots, rows, layout, 7);
  const auto b = weights<MXFP4>(ScaleLayout::linear);
  const auto groups = groups_of(slots, layout);
  const auto c = BlockScaledMatrix<F, Space>::grouped("c", rows, cols, 5, layout);
  poison(c, 0x55);
  const BlockScaling scaling{.tensor_scale = F::tensor_scale ? pair_from_decode(0.5f) : TensorScalePair{}};
  MatmulOptions options{.skipped_rows = skipped};
  if (F::tensor_scale) options.quantize.tensor_scale = TensorScale::decode(0.5f);
  grouped_matmul(a, b, c, groups, {}, options);

  const PlainOperand pa = plain(a.handle(), [&](std::int64_t r) { return scale_row_of(slots, layout, r); });
  const auto h = c.handle();
  const std::int64_t bytes = packed_bytes<F>(cols);
  std::vector<std::uint8_t> expected_scales(static_cast<std::size_t>(h.tile_rows * h.map.tile_row_bytes()), 0);
  const auto expected_scale = [&](std::int64_t row, std::int64_t block) -> std::uint8_t& {
    const int tile_rows = scale_tile(layout).rows;
    return expected_scales[static_cast<std::size_t>(row / tile_rows * h.map.tile_row_bytes() +
                                                    h.map.offset_in_tile_row(row, block))];
  };
  for (std::int64_t i = 0; i < rows; ++i) {
    const int e = expert_of(slots, i);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(bytes), skipped == SkippedRows::zero ? 0 : 0x55);
    if (e >= 0) {
      std::vector<float> values;
      for (std::int64_t j = 0; j < cols; ++j) values.push_back(plain_product(pa, i, plain(b.matrix(e)), j));
      const Plain row = quantize_plainly<F>(values, 1, cols, scaling);
      codes = row.codes;
      for (std::int64_t k = 0; k < c.blocks(); ++k)
        expected_scale(scale_row_of(slots, layout, i), k) = row.scales[static_cast<std::size_t>(k)];
    } else if (skipped == SkippedRows::untouched && (i < slots.total() || layout == ScaleLayout::linear)) {
      for (std::int64_t k = 0; k < c.blocks(); ++k) expected_scale(scale_row_of(slots, layout, i), k) = 0x55;
    }
    for (std::int64_t j = 0; j < bytes; ++j)
      ASSERT_EQ(h.row(i)[j], codes[static_cast<std::size_t>(j)]) << "codes of row " << i << ", byte " << j;
  }
  for (std::int64_t t = 0; t < h.tile_rows; ++t)
    for (std::int64_t j = 0; j < h.map.tile_row_bytes(); ++j)
      ASSERT_EQ(h.scales[t * h.scale_pitch + j],
                expected_scales[static_cast<std::size_t>(t * h.map.tile_row_bytes() + j)])
          << name(layout) << ": scale byte " << j << " of row of tiles " << t;
}

TEST(GroupedMatmul, quantized_output) {
  for (const ScaleLayout layout : all_layouts)
    for (const SkippedRows skipped : {SkippedRows::zero, SkippedRows::untouched}) {
      check_quantized<NVFP4>(layout, skipped);
      check_quantized<MXFP8_E4M3>(layout, skipped);
    }
}

// B51: what lies in rows beyond the slots (NaN codes and scales) reaches no valid row; see activations() for the scales.
TEST(GroupedMatmul, nan_beyond_the_slots_stays_there) {
  const Slots slots{{5, 0, 64}, {0, 1, 2}};
  const std::int64_t rows = 192;
  const auto a = activations<MXFP8_E4M3>(slots, rows, ScaleLayout::tcgen, 7);
  for (std::int64_t i = slots.total(); i < rows; ++i)
    for (std::int64_t j = 0; j < depth; ++j) a.data()(i, j) = E4M3::nan_code;
  const auto b = weights<MXFP4>(ScaleLayout::linear);
  const Kokkos::View<float**, Space> c("c", rows, cols);
  poison_view(c);
  grouped_matmul(a, b, c, groups_of(slots, ScaleLayout::tcgen));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) {
      ASSERT_TRUE(std::isfinite(c(i, j))) << i;
      if (i >= slots.total()) {
        ASSERT_EQ(c(i, j), 0.0f);
      }
    }
}

// Whatever the arrays on the device hold, nothing outside is read or written (the sanitizer build sees it), rows keep to
// the rule of SlotTable, and two runs agree.
TEST(GroupedMatmul, senseless_groups_are_harmless) {
  const std::int64_t rows = 40;
  const auto b = weights<MXFP4>(ScaleLayout::tcgen);
  constexpr int huge = std::numeric_limits<std::int32_t>::max(), tiny = std::numeric_limits<std::int32_t>::min();
  struct Case {
    std::vector<int> offsets, ids, scale_offsets;
    std::vector<int> expert_of_row;  // of rows 0, 10, 20, 30 in linear layout
  };
  const Case cases[] = {
      {{0, 10, 20, 30}, {1, 77, -9, 0}, {0, 0, 1, 1}, {1, -1, -1, -1}},    // ids out of range
      {{0, 10, 5, 40}, {1, 2, 3, 0}, {0, 1, 1, 1}, {1, 3, 3, 3}},          // not ascending: the first slot has it
      {{-5, 10, 20, huge}, {1, 2, 3, 0}, {0, 1, 1, 1}, {-1, 2, -1, -1}},   // out of range
      {{0, 10, 20, 40}, {1, 2, 3, 0}, {huge, tiny, -7, 0}, {1, 2, 3, 3}},  // tiles out of range
      {{huge, tiny, huge, tiny}, {1, 2, 3, 0}, {0, 0, 0, 0}, {-1, -1, -1, -1}}};
  for (const Case& test : cases) {
    const Groups<Space> groups{index_view(test.offsets), index_view(test.ids), index_view(test.scale_offsets), 3};
    const Kokkos::View<float**, Space> c("c", rows, cols), again("again", rows, cols);
    const auto linear = random_operand<NVFP4>(rows, depth, ScaleLayout::linear, 3, Scales::moderate);
    grouped_matmul(linear, b, c, groups);
    for (std::size_t g = 0; g < 4; ++g) {
      const int e = test.expert_of_row[g];
      const auto i = static_cast<std::int64_t>(10 * g);
      for (std::int64_t j = 0; j < cols; ++j) {
        const PlainOperand pa = plain(linear);
        const float expected = e < 0 ? 0.0f : plain_product(pa, i, plain(b.matrix(e)), j) * pa.decode;
        ASSERT_TRUE(same_bits(c(i, j), expected)) << "row " << i << " has expert " << e;
      }
    }
    const auto tiled = BlockScaledMatrix<NVFP4, Space>::grouped("a", rows, depth, 3, ScaleLayout::tcgen);
    const auto out = BlockScaledMatrix<MXFP4, Space>::grouped("c", rows, cols, 3, ScaleLayout::tcgen);
    std::vector<std::vector<std::uint8_t>> results;
    for (int run = 0; run < 2; ++run) {
      poison(out, run == 0 ? 0x11 : 0x7f);
      grouped_matmul(tiled, b, again, groups);
      grouped_matmul(tiled, b, out, groups);
      results.push_back(raw_bytes(out));
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

// Hints and the number of threads change nothing.
TEST(GroupedMatmul, hints_change_no_bit) {
  const Slots slots{{17, 40, 3}, {2, 0, 1}};
  const auto a = activations<NVFP4>(slots, 60, ScaleLayout::tcgen, 7);
  const auto b = weights<NVFP4>(ScaleLayout::tcgen);
  const auto groups = groups_of(slots, ScaleLayout::tcgen);
  const Kokkos::View<float**, Space> c("c", 60, cols), d("d", 60, cols), e("e", 60, cols);
  grouped_matmul(a, b, c, groups);
  grouped_matmul(a, b, d, groups, {}, {.hints = {.estimated_total_m = 100000, .active_experts = 3}});
  reference::grouped_matmul(Exec(), a, b, e, groups);
  for (int i = 0; i < 60; ++i)
    for (int j = 0; j < cols; ++j) {
      ASSERT_TRUE(same_bits(c(i, j), d(i, j)));
      ASSERT_TRUE(same_bits(c(i, j), e(i, j)));
    }
}

// The kernel that other than host spaces run, on the host.
TEST(GroupedMatmul, kernels_of_devices_give_the_same_bits) {
  const Slots slots{{17, 0, 40, 3, 2}, {2, 1, 0, -1, 1}};
  const auto a = activations<NVFP4>(slots, 64, ScaleLayout::tcgen, 7);
  const auto b = weights<MXFP4>(ScaleLayout::tcgen);
  const auto groups = groups_of(slots, ScaleLayout::tcgen);
  const auto by_units = [&](const auto& c, const auto& epilogue) {
    const auto call =
        Impl::grouped_matmul_kernel(grouped_matmul_problem(Exec(), a, b, c, groups, epilogue), a, b, c, epilogue);
    Kokkos::parallel_for(Impl::IndexRange<Exec>(0, call.c.rows * call.padded_units),
                         Impl::GroupedMatmulUnits<std::remove_const_t<decltype(call)>>{call});
  };
  const auto epilogue = Epilogue{}.gate_swiglu(GateColumns::interleaved).then(AddIndices{-1, -1});
  const Kokkos::View<float**, Space> c("c", 64, cols / 2), d("d", 64, cols / 2);
  poison_view(c);
  poison_view(d);
  grouped_matmul(a, b, c, groups, epilogue);
  by_units(d, epilogue);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < cols / 2; ++j) ASSERT_TRUE(same_bits(c(i, j), d(i, j))) << i << ", " << j;
  const auto q = BlockScaledMatrix<MXFP4, Space>::grouped("q", 64, cols, 5, ScaleLayout::tcgen);
  const auto q_too = BlockScaledMatrix<MXFP4, Space>::grouped("q", 64, cols, 5, ScaleLayout::tcgen);
  grouped_matmul(a, b, q, groups);
  by_units(q_too, Epilogue{});
  EXPECT_EQ(raw_bytes(q), raw_bytes(q_too));
}

TEST(GroupedMatmul, refuses_what_does_not_fit) {
  const Slots slots{{3, 4}, {1, 0}};
  const auto a = activations<MXFP4>(slots, 7, ScaleLayout::tcgen, 7);
  const auto b = weights<MXFP4>(ScaleLayout::tcgen);
  const auto groups = groups_of(slots, ScaleLayout::tcgen);
  const Kokkos::View<float**, Space> c("c", 7, cols), other("other", 8, cols);
  expect_refused([&] { grouped_matmul(a, b, other, groups); }, {"microscale::grouped_matmul: c has extents 8 x 70"});
  auto short_groups = groups;
  short_groups.slots = 3;
  expect_refused([&] { grouped_matmul(a, b, c, short_groups); }, {"groups.row_offsets has extent 3", "3 slots"});
  auto no_scales = groups;
  no_scales.a_scale_offsets = {};
  expect_refused([&] { grouped_matmul(a, b, c, no_scales); }, {"groups.a_scale_offsets"});
  const BlockScaledMatrix<MXFP4, Space> plain_tiled("tiled", 7, depth, ScaleLayout::tcgen);
  expect_refused([&] { grouped_matmul(plain_tiled, b, c, groups); }, {"a has tiled scales that are not grouped"});
  const auto cdna = BlockScaledMatrix<MXFP4, Space>::grouped("c", 7, cols, 2, ScaleLayout::cdna4);
  expect_refused([&] { grouped_matmul(a, b, cdna, groups); }, {"c has scale layout cdna4", "tcgen"});
  const Kokkos::View<float*, Space> two("two", 2);
  expect_refused([&] { grouped_matmul(a, b, c, groups, Epilogue{}.expert_scale(two)); },
                 {"expert_scale has extent 2; expected 5"});
}

}  // namespace
