#include "TestData.hpp"
#include <Microscale_Dequantize.hpp>
#include <Microscale_Requantize.hpp>

#include <stdexcept>

namespace {

using namespace microscale;
using namespace microscale::Test;

template <class Exec>
class Requantize : public testing::Test {};
TYPED_TEST_SUITE(Requantize, Spaces);

/// Blocks that neither divide nor are divided by those of the library's formats.
struct Blocks24 : MXFP8_E5M2 {
  static constexpr int block_size = 24;
  static constexpr const char* name = "blocks24";
};

template <class F>
void for_each_format(const F& f) {
  f(NVFP4{});
  f(MXFP4{});
  f(MXFP8_E4M3{});
  f(MXFP8_E5M2{});
  f(MXFP6_E2M3{});
  f(MXFP6_E3M2_Bytes{});
  f(Blocks24{});
}

/// The values of a matrix, block by block by the block function.
template <class Format>
std::vector<float> values_of(const BlockScaledMatrix<Format, Space>& matrix) {
  std::vector<float> values(static_cast<std::size_t>(matrix.rows() * matrix.cols()));
  const auto handle = matrix.handle();
  for (std::int64_t r = 0; r < matrix.rows(); ++r)
    for (std::int64_t b = 0; b < matrix.blocks(); ++b)
      dequantize_block<Format>(handle.block(r, b), handle.block_length(b), handle.scale(r, b),
                               &values[static_cast<std::size_t>(r * matrix.cols() + b * Format::block_size)],
                               handle.pair().decode);
  return values;
}

TYPED_TEST(Requantize, is_dequantize_to_float_and_quantize_for_every_pair) {
  const TypeParam exec;
  for_each_format([&](auto from_format) {
    using From = decltype(from_format);
    for_each_format([&](auto to_format) {
      using To = decltype(to_format);
      int shape = 0;
      for (const auto& [rows, cols] : {std::pair{0, 5}, std::pair{3, 0}, std::pair{1, 1}, std::pair{9, 47},
                                       std::pair{33, 130}, std::pair{129, 96}}) {
        const ScaleLayout from_layout = all_layouts[static_cast<std::size_t>(shape) % 4];
        const ScaleLayout to_layout = all_layouts[static_cast<std::size_t>(shape++ + 1) % 4];
        BlockScaledMatrix<From, Space> from("from", rows, cols, from_layout);
        BlockScaledMatrix<To, Space> to("to", rows, cols, to_layout);
        quantize(exec, view_of<float, Kokkos::LayoutRight>(hostile_values(rows, cols, 31, cols == 47), rows, cols),
                 from);
        exec.fence();
        const auto values = values_of(from);
        const auto before = raw_bytes(from);
        poison(to, 0x7f);
        requantize(exec, from, to);
        exec.fence();
        const Plain plain = quantize_plainly<To>(values, rows, cols, {.tensor_scale = dynamic_pair<To>(values)});
        expect_holds(
            to, plain,
            std::string(From::name) + " to " + To::name + ", " + std::to_string(rows) + "x" + std::to_string(cols));
        if (testing::Test::HasFatalFailure()) return;
        ASSERT_EQ(raw_bytes(from), before);
      }
    });
  });
}

TYPED_TEST(Requantize, tensor_scale_given_stored_or_dynamic) {
  const TypeParam exec;
  const std::int64_t rows = 5, cols = 64;
  BlockScaledMatrix<MXFP8_E4M3, Space> from("from", rows, cols);
  quantize(exec, view_of<float, Kokkos::LayoutRight>(hostile_values(rows, cols, 1, false), rows, cols), from);
  exec.fence();
  const auto values = values_of(from);
  BlockScaledMatrix<NVFP4, Space> to("to", rows, cols, ScaleLayout::tcgen);
  requantize(exec, from, to, {.tensor_scale = TensorScale::encode(8.0f)});
  exec.fence();
  const Plain given = quantize_plainly<NVFP4>(values, rows, cols, {.tensor_scale = {0.125f, 8.0f}});
  expect_holds(to, given, "given");
  poison(to, 0x55);
  to.tensor_scale()() = {0.125f, 8.0f};
  requantize(exec, from, to, {.tensor_scale = TensorScale::stored()});
  exec.fence();
  expect_holds(to, given, "stored");
  requantize(from, to);  // default instance
  Kokkos::fence();
  expect_holds(to, quantize_plainly<NVFP4>(values, rows, cols, {.tensor_scale = dynamic_pair<NVFP4>(values)}),
               "dynamic");
}

// Values that a block can hold survive: under RCEIL the scale is at most the one before.
TYPED_TEST(Requantize, to_the_same_format_is_a_change_of_layout) {
  const TypeParam exec;
  const std::int64_t rows = 130, cols = 72;
  std::vector<float> values = hostile_values(rows, cols, 6, false);
  for (float& x : values)
    if (std::abs(x) > 0x1p20f || std::abs(x) < 0x1p-20f) x = 0.0f;  // no clamped scale bytes
  const auto source = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
  BlockScaledMatrix<MXFP4, Space> from("from", rows, cols), to("to", rows, cols, ScaleLayout::cdna4);
  quantize(exec, source, from);
  requantize(exec, from, to);
  exec.fence();
  EXPECT_EQ(values_of(to), values_of(from));
}

TYPED_TEST(Requantize, mxfp4_to_mxfp8_is_exact) {
  const TypeParam exec;
  const auto values = hostile_values(40, 160, 9, false);
  BlockScaledMatrix<MXFP4, Space> from("from", 40, 160);
  BlockScaledMatrix<MXFP8_E4M3, Space> to("to", 40, 160, ScaleLayout::tcgen);
  quantize(exec, view_of<float, Kokkos::LayoutRight>(values, 40, 160), from);
  requantize(exec, from, to);
  exec.fence();
  const auto a = values_of(from), b = values_of(to);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i]) < 0x1p-120f && a[i] != 0.0f) continue;  // below what a clamped scale byte can hold
    ASSERT_EQ(Bits::from_float(a[i]), Bits::from_float(b[i]));
  }
}

TYPED_TEST(Requantize, a_nan_block_makes_the_blocks_it_touches_nan) {
  const TypeParam exec;
  BlockScaledMatrix<MXFP4, Space> from("from", 1, 96);
  BlockScaledMatrix<NVFP4, Space> to("to", 1, 96);
  Kokkos::deep_copy(from.data(), std::uint8_t{0x22});  // ones
  for (int b = 0; b < 3; ++b) from.scales()(0, b) = 127;
  from.scales()(0, 1) = 0xff;
  requantize(exec, from, to);
  exec.fence();
  for (int b = 0; b < 6; ++b) EXPECT_EQ(to.scales()(0, b) == 0x7f, b == 2 || b == 3) << b;
  EXPECT_EQ(to.tensor_scale()().encode, 2688.0f);  // amax over finite values
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

TYPED_TEST(Requantize, wrong_arguments_throw) {
  const TypeParam exec;
  const BlockScaledMatrix<NVFP4, Space> a("a", 4, 32), b("b", 4, 33);
  const BlockScaledMatrix<MXFP4, Space> m("m", 4, 32);
  EXPECT_EQ(message_of([&] { requantize(exec, a, b); }),
            "microscale::requantize: src has extents 4 x 32; expected 4 x 33");
  EXPECT_EQ(message_of([&] { requantize(exec, a, a); }),
            "microscale::requantize: dst shares the memory of src; expected memory of its own");
  const auto shared = BlockScaledMatrix<NVFP4, Space>::wrap(
      Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, Space>("d", 4, 16),
      Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, Space>("s", 4, 2), a.tensor_scale(), 4, 32);
  EXPECT_EQ(message_of([&] { requantize(exec, a, shared); }),
            "microscale::requantize: dst shares the tensor scale of src; expected one of its own, or the option "
            "TensorScale::stored()");
  EXPECT_EQ(message_of([&] { requantize(exec, a, shared, {.tensor_scale = TensorScale::stored()}); }),
            "nothing thrown");
  exec.fence();
  const auto grouped = BlockScaledMatrix<MXFP4, Space>::grouped("g", 4, 32, 2, ScaleLayout::tcgen);
  EXPECT_EQ(message_of([&] { requantize(exec, a, grouped); }),
            "microscale::requantize: dst has grouped scales; expected a matrix that is not grouped");
  EXPECT_EQ(message_of([&] { requantize(exec, grouped, a); }),
            "microscale::requantize: src has grouped scales; expected a matrix that is not grouped");
  EXPECT_EQ(message_of([&] { requantize(exec, a, m, {.axis = Axis::columns}); }),
            "microscale::requantize: axis is columns; expected rows");
  EXPECT_EQ(message_of([&] { requantize(exec, a, m, {.tensor_scale = TensorScale::none()}); }),
            "microscale::requantize: tensor_scale is given; expected none: this format has no tensor scale");
}

TEST(Requantize, empty_matrices_without_memory) {
  const Exec exec;
  EXPECT_NO_THROW(requantize(exec, BlockScaledMatrix<NVFP4, Space>(), BlockScaledMatrix<NVFP4, Space>()));
  EXPECT_NO_THROW(requantize(exec, BlockScaledMatrix<MXFP4, Space>(), BlockScaledMatrix<NVFP4, Space>()));
}

}  // namespace
