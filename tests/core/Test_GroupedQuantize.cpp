#include "TestData.hpp"
#include <Microscale_ExpertRouting.hpp>
#include <Microscale_GroupedMatmul.hpp>
#include <Microscale_GroupedQuantize.hpp>
#include <Microscale_Matmul.hpp>
#include <Microscale_Validate.hpp>

#include <cmath>
#include <stdexcept>

namespace {

using namespace microscale;
using namespace microscale::Test;
using microscale::half;  // CUDA has another one
using Ints = std::vector<std::int32_t>;

template <class Exec>
class GroupedQuantize : public testing::Test {};
TYPED_TEST_SUITE(GroupedQuantize, Spaces);

constexpr std::uint8_t poison_byte = 0x7f;

Groups<Space> groups_of(const Ints& row_offsets, const Ints& expert_ids, const Ints& a_scale_offsets) {
  const auto copy = [](const Ints& values) {
    Kokkos::View<std::int32_t*, Space> view("array", values.size());
    std::copy(values.begin(), values.end(), view.data());
    return view;
  };
  return {copy(row_offsets), copy(expert_ids), copy(a_scale_offsets), static_cast<std::int64_t>(expert_ids.size())};
}

/// Groups of the given counts in order, laid out one after the other; ids are `expert_ids` or the slot numbers.
Groups<Space> groups_of_counts(const Ints& counts, ScaleLayout layout, Ints expert_ids = {}) {
  Ints offsets = {0}, scale_offsets;
  std::int64_t tiles = 0;
  const int tile = scale_tile(layout).rows;
  for (const std::int32_t count : counts) {
    scale_offsets.push_back(static_cast<std::int32_t>(tiles - offsets.back() / tile));
    tiles += (count + tile - 1) / tile;
    offsets.push_back(offsets.back() + count);
  }
  if (expert_ids.empty())
    for (std::size_t s = 0; s < counts.size(); ++s) expert_ids.push_back(static_cast<std::int32_t>(s));
  return groups_of(offsets, expert_ids, scale_offsets);
}

/// What a grouped matrix must hold, as it is written down byte by byte: poison where nothing may be written.
template <class Format>
struct Expected {
  std::int64_t rows, cols;
  ScaleMap map;
  std::vector<std::uint8_t> codes, scales;

  Expected(const BlockScaledMatrix<Format, Space>& matrix, std::uint8_t fill)
      : rows(matrix.rows()),
        cols(matrix.cols()),
        map(matrix.scale_map()),
        codes(static_cast<std::size_t>(rows * packed_bytes<Format>(cols)), fill),
        scales(matrix.scales().extent(0) * matrix.scales().extent(1), 0) {}

  /// Rows [begin, end), quantized by themselves, with their scales from row of tiles `tile` on (`below` rows further).
  void put(const std::vector<float>& values, std::int64_t begin, std::int64_t end, std::int64_t tile,
           const BlockScaling& scaling, std::int64_t below = 0) {
    const std::vector<float> part(values.begin() + begin * cols, values.begin() + end * cols);
    const Plain plain = quantize_plainly<Format>(part, end - begin, cols, scaling);
    std::copy(plain.codes.begin(), plain.codes.end(), codes.begin() + begin * packed_bytes<Format>(cols));
    for (std::int64_t r = 0; r < end - begin; ++r)
      for (std::int64_t b = 0; b < map.cols; ++b) {
        const std::int64_t scale_row = map.layout == ScaleLayout::linear ? begin + r : tile * tile_rows() + below + r;
        scales[static_cast<std::size_t>(map.offset(scale_row, b))] =
            plain.scales[static_cast<std::size_t>(r * map.cols + b)];
      }
  }
  int tile_rows() const { return scale_tile(map.layout).rows; }
};

template <class Format>
void expect_equal(const BlockScaledMatrix<Format, Space>& matrix, const Expected<Format>& expected,
                  const std::string& what) {
  auto bytes = expected.codes;
  bytes.insert(bytes.end(), expected.scales.begin(), expected.scales.end());
  auto actual = raw_bytes(matrix);
  actual.resize(bytes.size());  // the tensor scale is checked apart
  for (std::size_t i = 0; i < bytes.size(); ++i)
    ASSERT_EQ(int{actual[i]}, int{bytes[i]})
        << what << ": " << (i < expected.codes.size() ? "code byte " : "scale byte ")
        << (i < expected.codes.size() ? i : i - expected.codes.size());
}

template <class Format>
BlockScaledMatrix<Format, Space> poisoned(std::int64_t rows, std::int64_t cols, std::int64_t slots, ScaleLayout layout,
                                          int byte = poison_byte) {
  auto matrix = BlockScaledMatrix<Format, Space>::grouped("grouped", rows, cols, slots, layout);
  poison(matrix, byte);
  return matrix;
}

const std::vector<Ints> interesting_counts = {{100, 200, 50}, {1, 31, 44, 130},
                                              {128, 128, 1},  {127, 1, 128},
                                              {129, 255},     {0, 5, 0, 0, 3, 0},
                                              {0, 0, 0},      {},
                                              {0, 0, 40},     {300}};

template <class Format, class Exec>
void expect_slots_like_matrices(const Exec& exec) {
  for (const Ints& counts : interesting_counts)
    for (const ScaleLayout layout : all_layouts)
      for (const std::int64_t cols : {1, 70, 130}) {
        std::int64_t rows = 0;
        for (const auto count : counts) rows += count;
        const auto values = hostile_values(rows, cols, static_cast<std::uint64_t>(rows + cols), cols == 70);
        const auto source = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
        const auto slots = static_cast<std::int64_t>(counts.size());
        const auto matrix = poisoned<Format>(rows, cols, slots, layout);
        grouped_quantize(exec, source, matrix, groups_of_counts(counts, layout));
        exec.fence();
        Expected<Format> expected(matrix, poison_byte);
        const BlockScaling scaling{ScaleRule::rceil, NonFinite::strict, dynamic_pair<Format>(values)};
        std::int64_t begin = 0, tile = 0;
        for (const auto count : counts) {
          expected.put(values, begin, begin + count, tile, scaling);
          begin += count;
          tile += (count + expected.tile_rows() - 1) / expected.tile_rows();
        }
        expect_equal(matrix, expected,
                     std::string(Format::name) + " " + name(layout) + " " + std::to_string(slots) + " slots, " +
                         std::to_string(rows) + "x" + std::to_string(cols));
        if (testing::Test::HasFatalFailure()) return;
        if constexpr (Format::tensor_scale) {
          ASSERT_EQ(matrix.tensor_scale()().decode, scaling.tensor_scale.decode);
          ASSERT_EQ(matrix.tensor_scale()().encode, scaling.tensor_scale.encode);
        }
        for (std::size_t i = 0; i < values.size(); ++i)
          ASSERT_EQ(Bits::from_float(source.data()[i]), Bits::from_float(values[i]));
      }
}

TYPED_TEST(GroupedQuantize, gives_every_slot_the_bytes_of_a_matrix_of_its_own) {
  const TypeParam exec;
  expect_slots_like_matrices<NVFP4>(exec);
  expect_slots_like_matrices<MXFP4>(exec);
  expect_slots_like_matrices<MXFP8_E4M3>(exec);
  expect_slots_like_matrices<MXFP6_E3M2>(exec);
}

// B47, B52, B55: groups without rows, of any size, and no row at all are among interesting_counts; after a call without
// rows an ordinary one is right.
TYPED_TEST(GroupedQuantize, nothing_to_do_then_an_ordinary_call) {
  const TypeParam exec;
  for (const auto& [rows, cols] : {std::pair{0, 64}, std::pair{5, 0}, std::pair{0, 0}}) {
    const auto matrix = poisoned<NVFP4>(rows, cols, 2, ScaleLayout::tcgen);
    grouped_quantize(exec, Kokkos::View<float**, Kokkos::LayoutRight, Space>("x", rows, cols), matrix,
                     groups_of_counts({rows, 0}, ScaleLayout::tcgen));
    exec.fence();
    for (std::size_t i = 0; i < matrix.scales().extent(0); ++i)
      for (std::size_t j = 0; j < matrix.scales().extent(1); ++j) EXPECT_EQ(matrix.scales()(i, j), 0);
    EXPECT_EQ(matrix.tensor_scale()().decode, 1.0f);
  }
  expect_slots_like_matrices<NVFP4>(exec);
}

TYPED_TEST(GroupedQuantize, sources_of_every_type_and_layout_give_the_same_bytes) {
  const TypeParam exec;
  const std::int64_t rows = 140, cols = 45;
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  Random random(5);
  for (float& x : values) x = static_cast<float>(static_cast<int>(random.below(511)) - 255) / 16.0f;  // exact in bf16
  const auto groups = groups_of_counts({130, 10}, ScaleLayout::tcgen);
  const auto run = [&](const auto& source) {
    const auto matrix = poisoned<NVFP4>(rows, cols, 2, ScaleLayout::tcgen);
    grouped_quantize(exec, source, matrix, groups);
    exec.fence();
    return raw_bytes(matrix);
  };
  const auto expected = run(view_of<float, Kokkos::LayoutRight>(values, rows, cols));
  EXPECT_EQ(run(view_of<float, Kokkos::LayoutLeft>(values, rows, cols)), expected);
  EXPECT_EQ(run(view_of<double, Kokkos::LayoutRight>(values, rows, cols)), expected);
  EXPECT_EQ(run(view_of<half, Kokkos::LayoutLeft>(values, rows, cols)), expected);
  EXPECT_EQ(run(view_of<bf16, Kokkos::LayoutRight>(values, rows, cols)), expected);
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> wide("wide", rows, cols + 20);
  Kokkos::deep_copy(wide, NAN);
  const auto part = Kokkos::subview(wide, Kokkos::ALL, Kokkos::pair(std::int64_t{7}, 7 + cols));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) part(r, c) = values[static_cast<std::size_t>(r * cols + c)];
  EXPECT_EQ(run(part), expected);
}

TYPED_TEST(GroupedQuantize, options_are_those_of_quantize) {
  const TypeParam exec;
  const std::int64_t rows = 33, cols = 96;
  const auto values = hostile_values(rows, cols, 77, true);
  const auto source = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
  const auto groups = groups_of_counts({30, 3}, ScaleLayout::cdna4);
  for (const ScaleRule rule : {ScaleRule::floor, ScaleRule::rceil, ScaleRule::ceil, ScaleRule::even})
    for (const NonFinite policy : {NonFinite::strict, NonFinite::saturate}) {
      const auto matrix = poisoned<MXFP4>(rows, cols, 2, ScaleLayout::cdna4);
      grouped_quantize(exec, source, matrix, groups, {.quantize = {.scale_rule = rule, .non_finite = policy}});
      exec.fence();
      Expected<MXFP4> expected(matrix, poison_byte);
      expected.put(values, 0, 30, 0, {rule, policy, {}});
      expected.put(values, 30, 33, 1, {rule, policy, {}});
      expect_equal(matrix, expected, "rule " + std::to_string(static_cast<int>(rule)));
    }
  const auto matrix = poisoned<NVFP4>(rows, cols, 2, ScaleLayout::cdna4);
  grouped_quantize(exec, source, matrix, groups, {.quantize = {.tensor_scale = TensorScale::decode(0.25f)}});
  exec.fence();
  Expected<NVFP4> expected(matrix, poison_byte);
  for (const auto& [begin, end, tile] : {std::array{0, 30, 0}, std::array{30, 33, 1}})
    expected.put(values, begin, end, tile, {ScaleRule::rceil, NonFinite::strict, pair_from_decode(0.25f)});
  expect_equal(matrix, expected, "given");
  EXPECT_EQ(matrix.tensor_scale()().decode, 0.25f);
  EXPECT_EQ(matrix.tensor_scale()().encode, 4.0f);
  poison(matrix, poison_byte);
  matrix.tensor_scale()() = {0.25f, 4.0f};
  grouped_quantize(exec, source, matrix, groups, {.quantize = {.tensor_scale = TensorScale::stored()}});
  exec.fence();
  expect_equal(matrix, expected, "stored");
}

// Slots in an order of their own, one of them without an expert: each expert's scale is found by its id.
TYPED_TEST(GroupedQuantize, tensor_scales_of_experts_are_indexed_by_expert_id) {
  const TypeParam exec;
  const std::int64_t rows = 200, cols = 40;
  const auto values = hostile_values(rows, cols, 13, false);
  const auto source = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
  const Ints counts = {130, 20, 0, 50}, ids = {3, -1, 0, 1};
  Kokkos::View<float*, Space> decode("decode", 4);
  const float scales[] = {NAN, 0.37f, 5.0f, 0x1p-20f};
  std::copy(scales, scales + 4, decode.data());
  for (const ScaleLayout layout : all_layouts) {
    const auto matrix = poisoned<NVFP4>(rows, cols, 4, layout);
    grouped_quantize(exec, source, matrix, groups_of_counts(counts, layout, ids), {.expert_decode_scales = decode});
    exec.fence();
    Expected<NVFP4> expected(matrix, 0);
    const int tile = expected.tile_rows();
    const auto tiles = [tile](std::int64_t n) { return (n + tile - 1) / tile; };
    expected.put(values, 0, 130, 0, {.tensor_scale = pair_from_decode(0x1p-20f)});
    expected.put(values, 150, 200, tiles(130) + tiles(20), {.tensor_scale = pair_from_decode(0.37f)});
    expect_equal(matrix, expected, name(layout));
    EXPECT_EQ(matrix.tensor_scale()().decode, 1.0f);
    EXPECT_EQ(matrix.tensor_scale()().encode, 1.0f);
  }
}

// The factor that tensor scales of experts leave out of a product comes back as the epilogue's expert scale. (Powers of
// two, so that it does not matter when they are multiplied.)
TYPED_TEST(GroupedQuantize, the_product_takes_expert_scales_in_its_epilogue) {
  const TypeParam exec;
  const std::int64_t rows = 9, n = 5, cols = 64;
  std::vector<float> a_values(static_cast<std::size_t>(rows * cols)), b_values(static_cast<std::size_t>(n * cols));
  Random random(31);
  for (float& x : a_values) x = random.unit();
  for (float& x : b_values) x = random.unit();
  const auto source = view_of<float, Kokkos::LayoutRight>(a_values, rows, cols);
  BatchedBlockScaledMatrix<MXFP4, Space> b("b", 2, n, cols);
  for (const std::int64_t e : {0, 1})
    quantize(exec, view_of<float, Kokkos::LayoutRight>(b_values, n, cols), b.matrix(e));
  Kokkos::View<float*, Space> decode("decode", 2);
  decode(0) = 0x1p-9f;
  decode(1) = 0x1p-12f;
  const auto groups = groups_of_counts({6, 3}, ScaleLayout::tcgen, {1, 0});
  const auto a = poisoned<NVFP4>(rows, cols, 2, ScaleLayout::tcgen);
  Kokkos::View<float**, Kokkos::LayoutRight, Space> c("c", rows, n), expected("expected", rows, n);
  grouped_quantize(exec, source, a, groups, {.expert_decode_scales = decode});
  grouped_matmul(exec, a, b, c, groups, Epilogue{}.expert_scale(decode));
  for (const auto& [begin, end, expert] : {std::array{0, 6, 1}, std::array{6, 9, 0}}) {
    BlockScaledMatrix<NVFP4, Space> part("part", end - begin, cols);
    quantize(exec, Kokkos::subview(source, Kokkos::pair(begin, end), Kokkos::ALL), part,
             {.tensor_scale = TensorScale::decode(decode(static_cast<std::size_t>(expert)))});
    matmul(exec, part, b.matrix(expert), Kokkos::subview(expected, Kokkos::pair(begin, end), Kokkos::ALL));
  }
  exec.fence();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      ASSERT_EQ(c(i, j), expected(i, j)) << i << ", " << j;
      ASSERT_NE(c(i, j), 0.0f);
    }
}

// B20: an invalid or zero scale of one expert makes NaN blocks of its rows alone; rows of zeros stay zeros.
TYPED_TEST(GroupedQuantize, an_invalid_expert_scale_gives_nan_blocks_to_its_rows_only) {
  const TypeParam exec;
  const std::vector<float> values(4 * 32, 1.0f);
  const auto source = view_of<float, Kokkos::LayoutRight>(values, 4, 32);
  for (const float bad : {0.0f, -1.0f, NAN, INFINITY}) {
    Kokkos::View<float*, Space> decode("decode", 2);
    decode(0) = bad;
    decode(1) = 0.5f;
    const auto matrix = poisoned<NVFP4>(4, 32, 2, ScaleLayout::linear, 0);
    const auto groups = groups_of_counts({1, 3}, ScaleLayout::linear);
    grouped_quantize(exec, source, matrix, groups, {.expert_decode_scales = decode});
    exec.fence();
    Expected<NVFP4> expected(matrix, 0);
    expected.put(values, 1, 4, 0, {.tensor_scale = pair_from_decode(0.5f)});
    expected.scales[0] = expected.scales[1] = 0x7f;
    expect_equal(matrix, expected, std::to_string(bad));
    EXPECT_EQ(validate(exec, matrix).nan_scales, 2);
  }
}

// B20, B22: zeroed experts and rows take part like any others.
TYPED_TEST(GroupedQuantize, zero_rows_give_zero_bytes_and_no_nan) {
  const TypeParam exec;
  std::vector<float> values(8 * 48, 0.0f);
  const auto zeros = view_of<float, Kokkos::LayoutRight>(values, 8, 48);
  for (int c = 0; c < 48; ++c) values[2 * 48 + static_cast<std::size_t>(c)] = static_cast<float>(c);
  const auto some = view_of<float, Kokkos::LayoutRight>(values, 8, 48);
  const auto groups = groups_of_counts({4, 4}, ScaleLayout::tcgen);
  const auto matrix = poisoned<NVFP4>(8, 48, 2, ScaleLayout::tcgen);
  grouped_quantize(exec, zeros, matrix, groups);
  exec.fence();
  auto bytes = raw_bytes(matrix);
  bytes.resize(bytes.size() - sizeof(TensorScalePair));
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(bytes.size(), 0));
  EXPECT_EQ(matrix.tensor_scale()().decode, 1.0f);
  grouped_quantize(exec, some, matrix, groups);
  exec.fence();
  Expected<NVFP4> expected(matrix, 0);
  expected.put(values, 0, 4, 0, {.tensor_scale = pair_from_amax<NVFP4>(47.0f)});
  expect_equal(matrix, expected, "one row");
}

TYPED_TEST(GroupedQuantize, skipped_rows_are_zeroed_or_untouched_and_do_not_count_in_amax) {
  const TypeParam exec;
  const std::int64_t rows = 150, cols = 33;  // slots: 10, 20 skipped, 40; the last 80 rows are in none
  auto values = hostile_values(rows, cols, 21, false);
  values[15 * 33] = 0x1p126f;  // in the skipped slot
  values[100 * 33] = NAN;      // in no slot
  const auto source = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
  std::vector<float> counted(values.begin(), values.begin() + 10 * 33);
  counted.insert(counted.end(), values.begin() + 30 * 33, values.begin() + 70 * 33);
  const BlockScaling scaling{.tensor_scale = dynamic_pair<NVFP4>(counted)};
  for (const ScaleLayout layout : all_layouts)
    for (const bool zero : {true, false}) {
      const auto groups = groups_of_counts({10, 20, 40}, layout, {2, -1, 0});
      const auto matrix = poisoned<NVFP4>(rows, cols, 3, layout);
      grouped_quantize(exec, source, matrix, groups,
                       {.skipped_rows = zero ? SkippedRows::zero : SkippedRows::untouched});
      exec.fence();
      const std::uint8_t fill = zero ? 0 : poison_byte;
      Expected<NVFP4> expected(matrix, fill);
      const int tile = expected.tile_rows();
      const auto tiles = [tile](std::int64_t n) { return (n + tile - 1) / tile; };
      const bool linear = layout == ScaleLayout::linear;
      for (std::int64_t r = 10; r < (linear ? rows : 30); ++r)  // tiled: rows in no slot have no scales
        for (std::int64_t b = 0; b < matrix.blocks(); ++b)
          expected
              .scales[static_cast<std::size_t>(matrix.scale_map().offset(linear ? r : tiles(10) * tile + r - 10, b))] =
              fill;
      expected.put(values, 0, 10, 0, scaling);
      expected.put(values, 30, 70, tiles(10) + tiles(20), scaling);
      expect_equal(matrix, expected, std::string(name(layout)) + (zero ? " zero" : " untouched"));
      EXPECT_EQ(matrix.tensor_scale()().encode, scaling.tensor_scale.encode);
    }
}

// Arrays that contradict themselves: nothing is read or written out of bounds (the sanitizers watch), slots that do not
// hold together are as if they were not there, and the outcome does not depend on the number of threads.
TYPED_TEST(GroupedQuantize, malformed_groups_have_a_defined_result) {
  const TypeParam exec;
  const std::int64_t rows = 20, cols = 16;
  const auto values = hostile_values(rows, cols, 3, false);
  const auto source = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
  const Ints ids = {0, 1, 2};
  struct Part {
    std::int64_t begin, end, tile, below = 0;
  };
  const auto expect = [&](const Ints& offsets, const Ints& scale_offsets, const std::vector<Part>& parts,
                          const Ints& expert_ids = {0, 1, 2}) {
    const auto matrix = poisoned<MXFP8_E4M3>(rows, cols, 3, ScaleLayout::tile_8x4);  // 6 rows of tiles
    grouped_quantize(exec, source, matrix, groups_of(offsets, expert_ids, scale_offsets));
    exec.fence();
    Expected<MXFP8_E4M3> expected(matrix, 0);
    for (const Part& part : parts) expected.put(values, part.begin, part.end, part.tile, {}, part.below);
    expect_equal(matrix, expected, testing::PrintToString(offsets) + testing::PrintToString(scale_offsets));
  };
  expect({0, 8, 12, 20}, {0, 0, 1}, {{0, 8, 0}, {8, 12, 1}, {12, 20, 2}});         // a good one
  expect({0, 8, 12, 21}, {0, 0, 1}, {{0, 8, 0}, {8, 12, 1}});                      // past the last row
  expect({-1, 8, 12, 20}, {0, 0, 1}, {{8, 12, 1}, {12, 20, 2}});                   // before the first
  expect({0, 12, 8, 20}, {0, 1, 2}, {{0, 12, 0}, {12, 20, 3, 4}});                 // descending; 8..11 are taken
  expect({0, INT32_MAX, INT32_MIN, 20}, {0, 0, 0}, {});                            // far off
  expect({0, 8, 12, 20}, {0, 5, 1}, {{0, 8, 0}, {12, 20, 2}});                     // tile 6 of 6
  expect({0, 8, 12, 20}, {-1, 0, 1}, {{8, 12, 1}, {12, 20, 2}});                   // tile -1
  expect({0, 8, 12, 20}, {INT32_MIN, INT32_MAX, 1}, {{12, 20, 2}});                // far off
  expect({0, 8, 12, 20}, {0, -1, 1}, {{0, 8, 0}, {12, 20, 2}});                    // tile of the first slot again
  expect({0, 9, 12, 20}, {0, 0, 1}, {{0, 9, 0}, {12, 20, 2}});                     // its second tile again
  expect({0, 8, 12, 20}, {0, 0, 1}, {{0, 8, 0}, {12, 20, 2}}, {5, INT32_MIN, 5});  // ids
}

TYPED_TEST(GroupedQuantize, ids_beyond_the_list_of_expert_scales_skip) {
  const TypeParam exec;
  const std::vector<float> values(6 * 16, 3.0f);
  Kokkos::View<float*, Space> decode("decode", 2);
  Kokkos::deep_copy(decode, 0.5f);
  const auto matrix = poisoned<NVFP4>(6, 16, 3, ScaleLayout::linear);
  grouped_quantize(exec, view_of<float, Kokkos::LayoutRight>(values, 6, 16), matrix,
                   groups_of({0, 2, 4, 6}, {2, 1, INT32_MAX}, {0, 0, 0}), {.expert_decode_scales = decode});
  exec.fence();
  Expected<NVFP4> expected(matrix, 0);
  expected.put(values, 2, 4, 0, {.tensor_scale = pair_from_decode(0.5f)});
  expect_equal(matrix, expected, "ids");
}

TYPED_TEST(GroupedQuantize, follows_a_routing_and_is_repeatable) {
  const TypeParam exec;
  const std::int64_t tokens = 300, k = 2, cols = 80, experts = 9;
  const auto values = hostile_values(tokens, cols, 8, true);
  const auto x = view_of<float, Kokkos::LayoutRight>(values, tokens, cols);
  Kokkos::View<std::int32_t**, Kokkos::LayoutRight, Space> ids("ids", tokens, k);
  Random random(2);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids.data()[i] = random.below(3) == 0 ? 4 : static_cast<std::int32_t>(random.below(10)) - 1;
  const auto routing = build_expert_offsets(exec, ids, experts);
  Kokkos::View<float**, Kokkos::LayoutRight, Space> sorted("sorted", tokens * k, cols);
  gather(exec, x, routing, sorted);
  const auto matrix = poisoned<NVFP4>(tokens * k, cols, experts, ScaleLayout::tcgen);
  grouped_quantize(exec, sorted, matrix, routing.groups());
  exec.fence();
  const std::vector<float> rows(sorted.data(), sorted.data() + sorted.size());
  const std::int64_t used = routing.row_offsets()(static_cast<std::size_t>(experts));
  const std::vector<float> counted(rows.begin(), rows.begin() + used * cols);
  ASSERT_LT(used, tokens * k);  // some were dropped
  Expected<NVFP4> expected(matrix, 0);
  std::int64_t tile = 0;
  for (std::size_t e = 0; e < static_cast<std::size_t>(experts); ++e) {
    const std::int64_t begin = routing.row_offsets()(e), end = routing.row_offsets()(e + 1);
    expected.put(rows, begin, end, tile, {.tensor_scale = dynamic_pair<NVFP4>(counted)});
    tile += (end - begin + 127) / 128;
  }
  expect_equal(matrix, expected, "routing");
  const auto first = raw_bytes(matrix);
  for (int run = 0; run < 20; ++run) {
    poison(matrix, run);
    grouped_quantize(exec, sorted, matrix, routing.groups());
    exec.fence();
    ASSERT_EQ(raw_bytes(matrix), first);
  }
}

TYPED_TEST(GroupedQuantize, wrapped_buffers_with_a_pitch_keep_their_surroundings) {
  const TypeParam exec;
  const std::int64_t rows = 140, cols = 40;
  const auto values = hostile_values(rows, cols, 4, false);
  const auto groups = groups_of_counts({135, 5}, ScaleLayout::tcgen);
  Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, Space> data("data", rows + 2, 30), scales("scales", 4, 520);
  Kokkos::deep_copy(data, std::uint8_t{0xcd});
  Kokkos::deep_copy(scales, std::uint8_t{0xcd});
  const auto all = [](auto n) { return Kokkos::pair(decltype(n){0}, n); };
  const auto matrix = BlockScaledMatrix<MXFP4, Space>::wrap(data, Kokkos::subview(scales, all(3), all(512)), {}, rows,
                                                            cols, ScaleLayout::tcgen, true);  // just 3 tiles
  grouped_quantize(exec, view_of<float, Kokkos::LayoutRight>(values, rows, cols), matrix, groups);
  exec.fence();
  Expected<MXFP4> expected(matrix, 0);
  expected.put(values, 0, 135, 0, {});
  expected.put(values, 135, 140, 2, {});
  expect_equal(matrix, expected, "wrapped");
  for (std::size_t i = 0; i < data.extent(0); ++i)
    for (std::size_t j = i < 140 ? 20 : 0; j < 30; ++j) ASSERT_EQ(data(i, j), 0xcd);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = i < 3 ? 512 : 0; j < 520; ++j) ASSERT_EQ(scales(i, j), 0xcd);
}

template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing thrown";
}

TYPED_TEST(GroupedQuantize, wrong_arguments_throw_before_anything_is_written) {
  const TypeParam exec;
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> x("x", 4, 32);
  const auto groups = groups_of_counts({1, 3}, ScaleLayout::tcgen);
  const auto nvfp4 = poisoned<NVFP4>(4, 32, 2, ScaleLayout::tcgen);
  const auto mxfp4 = poisoned<MXFP4>(4, 32, 2, ScaleLayout::tcgen);
  const auto before = raw_bytes(nvfp4);
  Kokkos::View<float*, Space> decode("decode", 2);
  EXPECT_EQ(message_of([&] {
              grouped_quantize(exec, Kokkos::View<float**, Kokkos::LayoutRight, Space>("x", 4, 33), nvfp4, groups);
            }),
            "microscale::grouped_quantize: src has extents 4 x 33; expected 4 x 32");
  EXPECT_EQ(
      message_of(
          [&] { grouped_quantize(exec, x, BlockScaledMatrix<NVFP4, Space>("m", 4, 32, ScaleLayout::tcgen), groups); }),
      "microscale::grouped_quantize: dst has tiled scales of one matrix; expected linear scales, or a matrix made "
      "by BlockScaledMatrix::grouped");
  EXPECT_EQ(message_of([&] { grouped_quantize(exec, x, nvfp4, groups, {.quantize = {.axis = Axis::columns}}); }),
            "microscale::grouped_quantize: axis is columns; expected rows: groups are ranges of rows");
  EXPECT_EQ(message_of([&] { grouped_quantize(exec, x, mxfp4, groups, {.expert_decode_scales = decode}); }),
            "microscale::grouped_quantize: expert_decode_scales is given; expected none: this format has no tensor "
            "scale");
  EXPECT_EQ(message_of([&] {
              grouped_quantize(exec, x, nvfp4, groups,
                               {.quantize = {.tensor_scale = TensorScale::none()}, .expert_decode_scales = decode});
            }),
            "microscale::grouped_quantize: tensor_scale is given beside expert_decode_scales; expected one of the two");
  EXPECT_EQ(
      message_of([&] { grouped_quantize(exec, x, nvfp4, groups, {.quantize = {.scale_rule = ScaleRule::floor}}); }),
      "microscale::grouped_quantize: scale_rule is not the default; expected the default: only formats with E8M0 "
      "scales have scale rules");
  auto short_groups = groups;
  short_groups.a_scale_offsets = {};
  EXPECT_EQ(message_of([&] { grouped_quantize(exec, x, nvfp4, short_groups); }),
            "microscale::grouped_quantize: groups.a_scale_offsets has extent 0; expected at least 2 for 2 slots");
  EXPECT_EQ(raw_bytes(nvfp4), before);
}

}  // namespace
