#include "../../core/TestData.hpp"
#include <Microscale_Dequantize.hpp>
#include <Microscale_GroupedQuantize.hpp>
#include <Microscale_Interleave.hpp>
#include <Microscale_Requantize.hpp>

#include <bit>
#include <cmath>
#include <cstring>

// The conversions of the AVX-512 backend, byte for byte those of the reference. The backend is forced in every call.
namespace {

using namespace microscale;
using namespace microscale::Test;
using microscale::half;  // CUDA has another one
using Host = Kokkos::DefaultHostExecutionSpace;

template <class T>
using Strided = Kokkos::View<T**, Kokkos::LayoutStride, Space>;

// How a matrix lies in memory: its rows or its columns contiguous, with and without a gap, or neither.
constexpr int memory_orders = 5;
template <class T>
Strided<T> strided_view(std::int64_t rows, std::int64_t cols, int order) {
  const auto r = static_cast<std::size_t>(rows), c = static_cast<std::size_t>(cols);
  using Layout = Kokkos::LayoutStride;
  const Layout layouts[memory_orders] = {Layout(r, c, c, 1), Layout(r, 1, c, r), Layout(r, c + 5, c, 1),
                                         Layout(r, 1, c, r + 3), Layout(r, 2 * c + 3, c, 2)};
  return Strided<T>("values", layouts[order]);
}

template <class T>
Strided<T> strided_view(const std::vector<float>& values, std::int64_t rows, std::int64_t cols, int order) {
  const Strided<T> view = strided_view<T>(rows, cols, order);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) {
      view(r, c) = static_cast<T>(values[static_cast<std::size_t>(r * cols + c)]);
      if constexpr (std::is_same_v<T, double>) view(r, c) *= 1 + 0x1.8p-25;  // no longer exact in float
    }
  return view;
}

DispatchOptions on_avx512() { return {.backend = "avx512"}; }

template <class Format, class T>
void expect_reference(const Strided<T>& view, std::int64_t rows, std::int64_t cols, ScaleLayout layout,
                      QuantizeOptions options, const std::string& what) {
  BlockScaledMatrix<Format, Space> given("given", rows, cols, layout), expected("expected", rows, cols, layout);
  poison(given, 0xab);
  poison(expected, 0xab);
  if constexpr (Format::tensor_scale)
    if (given.tensor_scale().data() != nullptr) given.tensor_scale()() = expected.tensor_scale()() = {0.5f, 2.0f};
  const Host exec;
  reference::quantize(exec, view, expected, options);
  options.dispatch = on_avx512();
  quantize(exec, view, given, options);
  exec.fence();
  ASSERT_EQ(raw_bytes(given), raw_bytes(expected))
      << what << " " << Format::name << " " << rows << "x" << cols << " " << name(layout);
}

template <class T>
void quantizes_as_the_reference() {
  for_each_format([&](auto format) {
    using Format = decltype(format);
    int n = 0;
    const std::int64_t shapes[][2] = {{0, 5},    {4, 0},    {1, 1},     {3, 31},   {17, 64}, {5, 512}, {2, 1030},
                                      {33, 100}, {130, 33}, {1, 17000}, {19, 256}, {40, 16}, {7, 777}};
    for (const auto& [rows, cols] : shapes)
      for (int order = 0; order < memory_orders; ++order)
        for (const NonFinite policy : {NonFinite::strict, NonFinite::saturate}) {
          const auto values = hostile_values(rows, cols, static_cast<std::uint64_t>(n), n % 3 == 0);
          ++n;
          const auto view = strided_view<T>(values, rows, cols, order);
          for (int variant = 0; variant < 4; ++variant) {
            QuantizeOptions options{.non_finite = policy};
            if constexpr (Format::tensor_scale) {
              const TensorScale scales[] = {TensorScale::dynamic(), TensorScale::decode(0.01f),
                                            TensorScale::encode(672.0f), TensorScale::stored()};
              options.tensor_scale = scales[variant];
            } else {
              options.scale_rule = static_cast<ScaleRule>(variant);
            }
            expect_reference<Format>(view, rows, cols, all_layouts[static_cast<std::size_t>((n + variant) % 4)],
                                     options,
                                     "memory order " + std::to_string(order) + " variant " + std::to_string(variant));
            if (testing::Test::HasFatalFailure()) return;
          }
        }
  });
}

TEST(Avx512Conversions, QuantizesFloatAsTheReference) { quantizes_as_the_reference<float>(); }
TEST(Avx512Conversions, QuantizesBf16AsTheReference) { quantizes_as_the_reference<bf16>(); }
TEST(Avx512Conversions, QuantizesHalfAsTheReference) { quantizes_as_the_reference<half>(); }
TEST(Avx512Conversions, QuantizesDoubleAsTheReference) { quantizes_as_the_reference<double>(); }

template <class T>
void quantizes_these_bits(const Strided<T>& view, std::int64_t rows, std::int64_t cols) {
  for_each_format([&](auto format) {
    using Format = decltype(format);
    for (int rule = 0; rule < (Format::tensor_scale ? 1 : 4); ++rule)
      for (const NonFinite policy : {NonFinite::strict, NonFinite::saturate}) {
        QuantizeOptions options{
            .scale_rule = rule == 0 ? ScaleRule::rceil : static_cast<ScaleRule>(rule == 1 ? 0 : rule),
            .non_finite = policy};
        if constexpr (Format::tensor_scale) options.tensor_scale = TensorScale::decode(0.25f);
        expect_reference<Format>(view, rows, cols, ScaleLayout::linear, options, "bits");
        if (testing::Test::HasFatalFailure()) return;
      }
  });
}

TEST(Avx512Conversions, QuantizesEveryBf16AndEveryHalf) {
  // Twice each: in a row of numbers that grow, so that neighbours are alike, and scattered.
  const std::int64_t cols = 512, rows = 2 * 65536 / cols;
  const Strided<bf16> bf16s = strided_view<bf16>(rows, cols, 0);
  const Strided<half> halves = strided_view<half>(rows, cols, 0);
  for (int i = 0; i < 2 * 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i < 65536 ? i : i * 40503);
    bf16s.data()[i] = bf16::from_bits(bits);
    halves.data()[i] = half::from_bits(bits);
  }
  quantizes_these_bits(bf16s, rows, cols);
  quantizes_these_bits(halves, rows, cols);
}

TEST(Avx512Conversions, QuantizesAMillionBitPatternsOfFloat) {
  const std::int64_t cols = 4096, rows = (1 << 20) / cols;
  const Strided<float> view = strided_view<float>(rows, cols, 0);
  Random random(5);
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    auto bits = static_cast<std::uint32_t>(random.bits());
    if (i % 4096 < 2048) bits = (bits & 0x83ffffffu) | 0x3c000000u;  // so that not every block has a NaN or is all tiny
    view.data()[i] = Bits::to_float(bits);
  }
  quantizes_these_bits(view, rows, cols);
}

/// The same bits, or NaN in both.
template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(static_cast<double>(static_cast<float>(a))) &&
                                                std::isnan(static_cast<double>(static_cast<float>(b))));
}

template <class Format, class T>
void dequantizes_as_the_reference(std::int64_t rows, std::int64_t cols, ScaleLayout layout, int order,
                                  TensorScalePair pair, std::uint64_t seed) {
  BlockScaledMatrix<Format, Space> matrix("matrix", rows, cols, layout);
  Random random(seed);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::size_t j = 0; j < matrix.data().extent(1); ++j)
      matrix.data()(r, j) = static_cast<std::uint8_t>(random.bits());
    for (std::int64_t b = 0; b < matrix.blocks(); ++b)  // every byte in turn
      matrix.handle().scale(r, b) = static_cast<std::uint8_t>(r * matrix.blocks() + b);
  }
  if constexpr (Format::tensor_scale)
    if (matrix.tensor_scale().data() != nullptr) matrix.tensor_scale()() = pair;
  const Strided<T> given = strided_view<T>(rows, cols, order), expected = strided_view<T>(rows, cols, order);
  const std::size_t span = given.span();
  if (span > 0) {
    std::memset(static_cast<void*>(given.data()), 0x5a, span * sizeof(T));
    std::memset(static_cast<void*>(expected.data()), 0x5a, span * sizeof(T));
  }
  const Host exec;
  reference::dequantize(exec, matrix, expected);
  dequantize(exec, matrix, given, on_avx512());
  exec.fence();
  for (std::size_t i = 0; i < span; ++i)
    ASSERT_TRUE(same(given.data()[i], expected.data()[i]))
        << Format::name << " " << rows << "x" << cols << " " << name(layout) << " memory order " << order << " element "
        << i << ": " << static_cast<float>(given.data()[i]) << ", expected " << static_cast<float>(expected.data()[i]);
}

template <class T>
void dequantizes_everything() {
  for_each_format([&](auto format) {
    using Format = decltype(format);
    std::uint64_t n = 0;
    // 256 blocks a row and 256 codes a block row on average: every code under every scale byte.
    const std::int64_t shapes[][2] = {{0, 3}, {2, 0}, {1, 1}, {3, 31}, {17, 65}, {33, 100}, {130, 33}, {9, 8192}};
    for (const auto& [rows, cols] : shapes)
      for (int order = 0; order < memory_orders; ++order)
        for (const TensorScalePair pair :
             {TensorScalePair{1, 1}, TensorScalePair{0.37f, 1}, TensorScalePair{0x1p-120f, 1}}) {
          dequantizes_as_the_reference<Format, T>(rows, cols, all_layouts[n % 4], order, pair, n + 1);
          ++n;
          if (testing::Test::HasFatalFailure()) return;
          if (!Format::tensor_scale) break;
        }
  });
}

TEST(Avx512Conversions, DequantizesToFloatAsTheReference) { dequantizes_everything<float>(); }
TEST(Avx512Conversions, DequantizesToDoubleAsTheReference) { dequantizes_everything<double>(); }
TEST(Avx512Conversions, DequantizesToHalfAsTheReference) { dequantizes_everything<half>(); }
TEST(Avx512Conversions, DequantizesToBf16AsTheReference) { dequantizes_everything<bf16>(); }

TEST(Avx512Conversions, InterleavesAsTheReference) {
  const Host exec;
  Random random(3);
  for (const ScaleLayout from_layout : all_layouts)
    for (const ScaleLayout to_layout : all_layouts)
      for (const std::int64_t rows : {0, 1, 7, 33, 129, 300})
        for (const std::int64_t blocks : {0, 1, 3, 4, 9, 37, 300}) {
          const ScaleMatrix<Space> from("from", rows, blocks, from_layout), given("given", rows, blocks, to_layout),
              expected("expected", rows, blocks, to_layout);
          for (std::size_t i = 0; i < from.view().span(); ++i) {
            from.view().data()[i] = static_cast<std::uint8_t>(random.bits());
          }
          const std::size_t bytes = given.view().span();
          if (bytes > 0) std::memset(given.view().data(), 0xab, bytes);
          reference::interleave_scales(exec, from, expected);
          interleave_scales(exec, from, given, on_avx512());
          exec.fence();
          if (bytes > 0) {
            ASSERT_EQ(std::memcmp(given.view().data(), expected.view().data(), bytes), 0)
                << name(from_layout) << " to " << name(to_layout) << ", " << rows << "x" << blocks;
          }
        }
}

Kokkos::View<std::int32_t*, Space> ints(const std::vector<std::int32_t>& values) {
  Kokkos::View<std::int32_t*, Space> view("array", values.size());
  std::copy(values.begin(), values.end(), view.data());
  return view;
}

/// Groups with random counts, many of them empty, some skipped; or with offsets that contradict one another.
Groups<Space> random_groups(std::int64_t rows, std::int64_t slots, ScaleLayout layout, Random& random, bool broken) {
  std::vector<std::int32_t> offsets = {0}, experts, scale_offsets;
  const int tile = scale_tile(layout).rows;
  std::int64_t tiles = 0, left = rows;
  for (std::int64_t s = 0; s < slots; ++s) {
    const auto most = static_cast<std::uint64_t>(left) + 1;
    const auto count = static_cast<std::int64_t>(random.below(3) == 0 ? 0 : random.below(most));
    scale_offsets.push_back(static_cast<std::int32_t>(tiles - offsets.back() / tile));
    tiles += (count + tile - 1) / tile;
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(count));
    left -= count;
    experts.push_back(static_cast<std::int32_t>(random.below(6)) - 1);
  }
  if (broken) {
    offsets[random.below(offsets.size())] += 5 - static_cast<std::int32_t>(random.below(20));
    scale_offsets[random.below(scale_offsets.size())] -= static_cast<std::int32_t>(random.below(3));
  }
  return {ints(offsets), ints(experts), ints(scale_offsets), slots};
}

template <class Format, class T>
void quantizes_groups_as_the_reference() {
  Random random(11);
  const Host exec;
  for (int n = 0; n < 96; ++n) {
    const ScaleLayout layout = all_layouts[static_cast<std::size_t>(n % 4)];
    const std::int64_t rows = static_cast<std::int64_t>(random.below(150)), slots = 1 + n % 7;
    const std::int64_t cols = std::array<std::int64_t, 4>{33, 512, 160, 1030}[static_cast<std::size_t>(n / 4 % 4)];
    const auto view = strided_view<T>(hostile_values(rows, cols, static_cast<std::uint64_t>(n), n % 2 == 0), rows, cols,
                                      n % memory_orders);
    const auto groups = random_groups(rows, slots, layout, random, n % 5 == 4);
    GroupedQuantizeOptions<Space> options;
    options.skipped_rows = n / 3 % 2 == 0 ? SkippedRows::zero : SkippedRows::untouched;
    options.quantize.non_finite = n / 2 % 2 == 0 ? NonFinite::strict : NonFinite::saturate;
    if constexpr (Format::tensor_scale) {
      if (n % 3 == 0) {
        Kokkos::View<float*, Space> scales("scales", 4);
        for (int e = 0; e < 4; ++e) scales(e) = e == 2 ? 0.0f : 0.01f * static_cast<float>(e + 1);
        options.expert_decode_scales = scales;
      } else if (n % 3 == 1) {
        options.quantize.tensor_scale = TensorScale::decode(0.02f);
      }
    }
    const auto made = [&](const char* label) {
      auto result = layout == ScaleLayout::linear
                        ? BlockScaledMatrix<Format, Space>(label, rows, cols, layout)
                        : BlockScaledMatrix<Format, Space>::grouped(label, rows, cols, slots, layout);
      poison(result, 0xab);
      return result;
    };
    const auto given = made("given"), expected = made("expected");
    reference::grouped_quantize(exec, view, expected, groups, options);
    options.quantize.dispatch = on_avx512();
    grouped_quantize(exec, view, given, groups, options);
    exec.fence();
    ASSERT_EQ(raw_bytes(given), raw_bytes(expected)) << Format::name << " case " << n;
  }
}

TEST(Avx512Conversions, QuantizesGroupsAsTheReference) {
  quantizes_groups_as_the_reference<NVFP4, float>();
  quantizes_groups_as_the_reference<NVFP4, bf16>();
  quantizes_groups_as_the_reference<MXFP4, half>();
  quantizes_groups_as_the_reference<MXFP8_E4M3, bf16>();
}

struct LongBlocks : MXFP4 {
  static constexpr int block_size = 64;
  static constexpr const char* name = "long_blocks";
};

TEST(Avx512Conversions, RefusesInWords) {
  const Host exec;
  const auto view = strided_view<float>({1.0f, 2.0f}, 1, 2, 0);
  BlockScaledMatrix<LongBlocks, Space> custom("custom", 1, 2);
  BlockScaledMatrix<MXFP4, Space> matrix("matrix", 1, 2), other("other", 1, 2);
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(
      message([&] { quantize(exec, view, custom, {.dispatch = on_avx512()}); }).find("no kernel for this block format"),
      std::string::npos);
  EXPECT_NE(message([&] {
              requantize(exec, matrix, other, {.dispatch = on_avx512()});
            }).find("no kernel does this operation"),
            std::string::npos);
}

// The smallest of problems already are faster than by the reference, as the backend estimates.
TEST(Avx512Conversions, IsChosenFromTheSmallestSizesUp) {
  for (const Operation operation :
       {Operation::quantize, Operation::dequantize, Operation::grouped_quantize, Operation::interleave_scales})
    for (const std::int64_t size : {1, 32, 4096}) {
      BlockScaledMatrix<NVFP4, Space> matrix("matrix", size, 32);
      const auto view = strided_view<float>(size, 32, static_cast<int>(size % 2));
      Problem problem = Impl::problem_on(Host(), operation);
      problem.m = size;
      problem.k = 32;
      problem.a = Impl::operand(view);
      problem.c = Impl::operand(matrix);
      if (operation == Operation::dequantize) std::swap(problem.a, problem.c);
      EXPECT_EQ(default_context().explain(problem).choice.name, "avx512") << size;
    }
}

}  // namespace
