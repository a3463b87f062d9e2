#include "TestData.hpp"
#include <Microscale_Dequantize.hpp>
#include <Microscale_MatrixCopy.hpp>

#include <thread>

namespace {

using namespace microscale;
using namespace microscale::Test;
using microscale::half;  // CUDA has another one

template <class Exec>
class Quantize : public testing::Test {};
TYPED_TEST_SUITE(Quantize, Spaces);

template <class Format>
BlockScaling dynamic_scaling(const std::vector<float>& values) {
  return {ScaleRule::rceil, NonFinite::strict, dynamic_pair<Format>(values)};
}

TYPED_TEST(Quantize, equals_the_block_function_for_all_tails_and_layouts) {
  const TypeParam exec;
  for_each_format([&](auto format) {
    using Format = decltype(format);
    // Pairwise: each row count meets each kind of column tail, both sides of every tile boundary.
    for (const std::int64_t rows : {0, 1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 130})
      for (std::int64_t cols = rows % 3; cols <= 130; cols += cols < 34 ? 1 : 3) {
        const auto values = hostile_values(rows, cols, static_cast<std::uint64_t>(rows * 1000 + cols), cols % 5 == 0);
        const auto view = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
        const Plain plain = quantize_plainly<Format>(values, rows, cols, dynamic_scaling<Format>(values));
        const ScaleLayout layout = all_layouts[static_cast<std::size_t>((rows + cols) % 4)];
        BlockScaledMatrix<Format, Space> matrix("matrix", rows, cols, layout);
        poison(matrix, 0x7f);
        quantize(exec, view, matrix);
        exec.fence();
        expect_holds(
            matrix, plain,
            std::string(Format::name) + " " + name(layout) + " " + std::to_string(rows) + "x" + std::to_string(cols));
        if (testing::Test::HasFatalFailure()) return;
        for (std::int64_t i = 0; i < rows * cols; ++i)
          ASSERT_EQ(Bits::from_float(view.data()[i]), Bits::from_float(values[static_cast<std::size_t>(i)]));
      }
  });
}

TYPED_TEST(Quantize, all_scale_rules_and_policies) {
  const TypeParam exec;
  const std::int64_t rows = 21, cols = 100;
  const auto values = hostile_values(rows, cols, 7, true);
  const auto view = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
  for_each_format([&](auto format) {
    using Format = decltype(format);
    for (const ScaleRule rule : {ScaleRule::floor, ScaleRule::rceil, ScaleRule::ceil, ScaleRule::even})
      for (const NonFinite policy : {NonFinite::strict, NonFinite::saturate}) {
        if (Format::scale::type != ScaleType::e8m0 && rule != ScaleRule::rceil) continue;
        BlockScaledMatrix<Format, Space> matrix("matrix", rows, cols);
        poison(matrix, 0xff);
        quantize(exec, view, matrix, {.scale_rule = rule, .non_finite = policy});
        exec.fence();
        expect_holds(matrix, quantize_plainly<Format>(values, rows, cols, {rule, policy, dynamic_pair<Format>(values)}),
                     Format::name);
      }
  });
}

// A non-contiguous or transposed source quantized from the wrong memory; output written with the input's strides.
TYPED_TEST(Quantize, any_layout_and_stride_gives_the_same_bytes) {
  const TypeParam exec;
  const std::int64_t rows = 37, cols = 90;
  const auto values = hostile_values(rows, cols, 11, true);
  for_each_format([&](auto format) {
    using Format = decltype(format);
    const Plain plain = quantize_plainly<Format>(values, rows, cols, dynamic_scaling<Format>(values));
    const auto check = [&](const auto& view, const char* what) {
      BlockScaledMatrix<Format, Space> matrix("matrix", rows, cols, ScaleLayout::tcgen);
      poison(matrix, 0x55);
      quantize(exec, view, matrix);
      exec.fence();
      expect_holds(matrix, plain, what);
    };
    check(view_of<float, Kokkos::LayoutLeft>(values, rows, cols), "LayoutLeft");
    check(view_of<double, Kokkos::LayoutRight>(values, rows, cols), "double");
    // A column slice of a larger matrix, whose other columns would change the result.
    Kokkos::View<float**, Kokkos::LayoutRight, Space> big("big", rows, cols + 45);
    Kokkos::deep_copy(big, 1e30f);
    const auto slice = Kokkos::subview(big, Kokkos::ALL, Kokkos::pair<int, int>(32, 32 + static_cast<int>(cols)));
    Kokkos::deep_copy(slice, view_of<float, Kokkos::LayoutRight>(values, rows, cols));
    check(slice, "column slice");
    Kokkos::View<float**, Kokkos::LayoutStride, Space> strided(
        "strided", Kokkos::LayoutStride(rows, 3, cols, 3 * static_cast<std::size_t>(rows) + 5));
    Kokkos::deep_copy(strided, view_of<float, Kokkos::LayoutRight>(values, rows, cols));
    check(strided, "both strides above 1");
    check(Kokkos::View<const float**, Kokkos::LayoutStride, Space>(strided), "const");
  });
}

TYPED_TEST(Quantize, along_columns_is_the_exact_transpose) {
  const TypeParam exec;
  const std::int64_t rows = 70, cols = 45;
  const auto values = hostile_values(rows, cols, 13, false);
  std::vector<float> transposed(values.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      transposed[static_cast<std::size_t>(c * rows + r)] = values[static_cast<std::size_t>(r * cols + c)];
  const auto check = [&]<class Format, class Layout>() {
    BlockScaledMatrix<Format, Space> matrix("matrix", cols, rows, ScaleLayout::cdna4);
    poison(matrix, 0x55);
    quantize(exec, view_of<float, Layout>(values, rows, cols), matrix, {.axis = Axis::columns});
    exec.fence();
    expect_holds(matrix, quantize_plainly<Format>(transposed, cols, rows, dynamic_scaling<Format>(values)), "columns");
  };
  for_each_format([&](auto format) {
    check.template operator()<decltype(format), Kokkos::LayoutRight>();
    check.template operator()<decltype(format), Kokkos::LayoutLeft>();
  });
}

// FP4 packing that assumed 16-bit input.
TYPED_TEST(Quantize, half_and_bf16_equal_the_same_values_in_float) {
  const TypeParam exec;
  const std::int64_t rows = 5, cols = 64;
  std::vector<float> values;
  Random random(3);
  for (std::int64_t i = 0; i < rows * cols; ++i)  // exact in half and in bf16
    values.push_back(Bits::pow2(static_cast<int>(random.below(12)) - 6) *
                     static_cast<float>(static_cast<int>(random.below(255)) - 127) / 128);
  for_each_format([&](auto format) {
    using Format = decltype(format);
    const Plain plain = quantize_plainly<Format>(values, rows, cols, dynamic_scaling<Format>(values));
    const auto check = [&]<class T>(T) {
      BlockScaledMatrix<Format, Space> matrix("matrix", rows, cols);
      quantize(exec, view_of<T, Kokkos::LayoutRight>(values, rows, cols), matrix);
      exec.fence();
      expect_holds(matrix, plain, "16-bit");
    };
    check(half{});
    check(bf16{});
    check(Kokkos::Experimental::half_t{});
    check(Kokkos::Experimental::bhalf_t{});
  });
}

TYPED_TEST(Quantize, rank_1_is_one_row) {
  const TypeParam exec;
  const auto values = hostile_values(1, 75, 17, false);
  Kokkos::View<float*, Space> view("view", 75);
  for (int i = 0; i < 75; ++i) view(i) = values[static_cast<std::size_t>(i)];
  BlockScaledMatrix<NVFP4, Space> matrix("matrix", 1, 75);
  quantize(exec, view, matrix);
  exec.fence();
  expect_holds(matrix, quantize_plainly<NVFP4>(values, 1, 75, dynamic_scaling<NVFP4>(values)), "rank 1");
  Kokkos::View<float*, Space> back("back", 75);
  dequantize(exec, matrix, back);
  exec.fence();
  EXPECT_EQ(back(3), NVFP4::element::decode(read_code<NVFP4>(&matrix.data()(0, 0), 3)) *
                         UE4M3::decode(matrix.scales()(0, 0)) * matrix.tensor_scale()().decode);
}

TYPED_TEST(Quantize, tensor_scale_sources) {
  const TypeParam exec;
  const std::int64_t rows = 9, cols = 50;
  const auto values = hostile_values(rows, cols, 19, true);
  const auto view = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
  BlockScaledMatrix<NVFP4, Space> matrix("matrix", rows, cols);
  const auto expect_pair = [&](const TensorScale& scale, TensorScalePair pair, const char* what) {
    poison(matrix, 0x55);
    quantize(exec, view, matrix, {.tensor_scale = scale});
    exec.fence();
    expect_holds(matrix, quantize_plainly<NVFP4>(values, rows, cols, {.tensor_scale = pair}), what);
  };
  expect_pair(TensorScale::none(), {1.0f, 1.0f}, "none");
  expect_pair(TensorScale::decode(0.01f), {0.01f, 1.0f / 0.01f}, "decode");
  expect_pair(TensorScale::decode(0.01), {0.01f, 1.0f / 0.01f}, "decode, double");
  expect_pair(TensorScale::encode(672.0f), {1.0f / 672.0f, 672.0f}, "encode");
  Kokkos::View<float, Space> s("s");
  s() = 3.0f;
  expect_pair(TensorScale::decode(s), {3.0f, 1.0f / 3.0f}, "decode on the device");
  expect_pair(TensorScale::encode(s), {1.0f / 3.0f, 3.0f}, "encode on the device");
  expect_pair(TensorScale::dynamic(), dynamic_pair<NVFP4>(values), "dynamic");
  const auto bytes = matrix.bytes();
  quantize(exec, view, matrix, {.tensor_scale = TensorScale::stored()});
  exec.fence();
  EXPECT_EQ(matrix.bytes(), bytes) << "quantizing again with the matrix's own pair";
}

TYPED_TEST(Quantize, an_invalid_tensor_scale_on_the_device_gives_nan_blocks) {
  const TypeParam exec;
  const auto view = view_of<float, Kokkos::LayoutRight>(hostile_values(3, 40, 23, false), 3, 40);
  for (const float bad : {0.0f, -1.0f, Bits::to_float(Bits::infinity), Bits::to_float(Bits::quiet_nan)}) {
    Kokkos::View<float, Space> s("s");
    s() = bad;
    BlockScaledMatrix<NVFP4, Space> matrix("matrix", 3, 40);
    quantize(exec, view, matrix, {.tensor_scale = TensorScale::decode(s)});
    exec.fence();
    for (int r = 0; r < 3; ++r) {
      for (int b = 0; b < 3; ++b) EXPECT_EQ(matrix.scales()(r, b), 0x7f) << bad;
      for (int j = 0; j < 20; ++j) EXPECT_EQ(matrix.data()(r, j), 0) << bad;
    }
  }
}

// All-zero expert or padded tokens divide by zero in dynamic quantization.
TYPED_TEST(Quantize, zero_tensor) {
  const TypeParam exec;
  Kokkos::View<float**, Kokkos::LayoutRight, Space> zeros("zeros", 32, 64);
  zeros(3, 5) = -0.0f;
  BlockScaledMatrix<NVFP4, Space> matrix("matrix", 32, 64);
  poison(matrix, 0x55);
  quantize(exec, zeros, matrix);
  exec.fence();
  EXPECT_EQ(matrix.tensor_scale()().decode, 1.0f);
  EXPECT_EQ(matrix.tensor_scale()().encode, 1.0f);
  for (int r = 0; r < 32; ++r) {
    for (int b = 0; b < 4; ++b) EXPECT_EQ(matrix.scales()(r, b), 0);
    for (int j = 0; j < 32; ++j) EXPECT_EQ(matrix.data()(r, j), r == 3 && j == 2 ? 0x80 : 0);
  }
}

TYPED_TEST(Quantize, an_empty_matrix_without_memory) {
  const TypeParam exec;
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> nothing("nothing", 0, 0);
  quantize(exec, nothing, BlockScaledMatrix<NVFP4, Space>());
  quantize(exec, nothing, BlockScaledMatrix<MXFP4, Space>(), {.axis = Axis::columns});
  dequantize(exec, BlockScaledMatrix<NVFP4, Space>(), nothing);
  exec.fence();
}

// One all-zero block made a NaN scale byte in an exported checkpoint.
TYPED_TEST(Quantize, zero_block_beside_a_tiny_one_has_no_nan_scale) {
  const TypeParam exec;
  Kokkos::View<float**, Kokkos::LayoutRight, Space> view("view", 1, 32);
  view(0, 20) = 1e-3f;
  BlockScaledMatrix<NVFP4, Space> matrix("matrix", 1, 32);
  quantize(exec, view, matrix);
  exec.fence();
  EXPECT_EQ(matrix.scales()(0, 0), 0);
  EXPECT_EQ(matrix.scales()(0, 1), 0x7e);
}

// The tensor scale left out the 6; quantize of amax 4 reports decode scale 4/2688; encode and decode conventions agree.
TYPED_TEST(Quantize, dynamic_tensor_scale_uses_the_whole_range) {
  const TypeParam exec;
  Kokkos::View<float**, Kokkos::LayoutRight, Space> view("view", 2, 16);
  view(0, 3) = 4.0f;
  view(1, 1) = -0.5f;
  BlockScaledMatrix<NVFP4, Space> matrix("matrix", 2, 16), given("given", 2, 16);
  quantize(exec, view, matrix);
  quantize(exec, view, given, {.tensor_scale = TensorScale::encode(672.0f)});
  exec.fence();
  EXPECT_EQ(matrix.tensor_scale()().encode, 672.0f);
  EXPECT_EQ(matrix.tensor_scale()().decode, 1.0f / 672.0f);
  EXPECT_EQ(matrix.scales()(0, 0), 0x7e);
  EXPECT_EQ(read_code<NVFP4>(&matrix.data()(0, 0), 3), 7);
  EXPECT_EQ(given.bytes(), matrix.bytes());
}

TYPED_TEST(Quantize, the_same_bytes_again_and_again) {
  const TypeParam exec;
  const std::int64_t rows = 257, cols = 512;
  const auto view = view_of<float, Kokkos::LayoutRight>(hostile_values(rows, cols, 29, false), rows, cols);
  BlockScaledMatrix<NVFP4, Space> matrix("matrix", rows, cols, ScaleLayout::tcgen);
  quantize(exec, view, matrix);
  exec.fence();
  const auto first = raw_bytes(matrix);
  for (int i = 0; i < 50; ++i) {
    poison(matrix, i);
    quantize(exec, view, matrix);
    exec.fence();
    ASSERT_EQ(raw_bytes(matrix), first) << "run " << i;
  }
}

TYPED_TEST(Quantize, several_instances_at_once) {
  const auto instances = Kokkos::Experimental::partition_space(TypeParam(), std::vector<int>{1, 1});
  const std::int64_t rows = 130, cols = 256;
  std::array<std::vector<std::uint8_t>, 2> expected, got;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto values = hostile_values(rows, cols, 31 + i, false);
    const auto view = view_of<float, Kokkos::LayoutRight>(values, rows, cols);
    BlockScaledMatrix<NVFP4, Space> matrix("matrix", rows, cols);
    quantize(TypeParam(), view, matrix);
    Kokkos::fence();
    expected[i] = raw_bytes(matrix);
    poison(matrix, 0x55);
    threads.emplace_back([=, &got, exec = instances[i]] {
      for (int n = 0; n < 20; ++n) quantize(exec, view, matrix);
      exec.fence();
      got[i] = raw_bytes(matrix);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(got, expected);
}

TEST(QuantizeBatch, each_matrix_has_its_own_tensor_scale) {
  const Exec exec;
  Kokkos::View<float***, Kokkos::LayoutLeft, Space> view("view", 3, 20, 48);
  auto batch = BlockScaledMatrix<NVFP4, Space>::batched("batch", 3, 20, 48, ScaleLayout::tcgen);
  std::vector<std::vector<float>> values;
  for (int e = 0; e < 3; ++e) {
    values.push_back(hostile_values(20, 48, 37 + static_cast<std::uint64_t>(e), false));
    for (int r = 0; r < 20; ++r)
      for (int c = 0; c < 48; ++c) view(e, r, c) = values.back()[static_cast<std::size_t>(r * 48 + c)];
  }
  quantize(exec, view, batch);
  Kokkos::View<float***, Space> back("back", 3, 20, 48);
  dequantize(exec, batch, back);
  exec.fence();
  for (int e = 0; e < 3; ++e) {
    const auto& v = values[static_cast<std::size_t>(e)];
    expect_holds(batch.matrix(e), quantize_plainly<NVFP4>(v, 20, 48, dynamic_scaling<NVFP4>(v)), "batch");
    Kokkos::View<float**, Space> one("one", 20, 48);
    dequantize(exec, batch.matrix(e), one);
    exec.fence();
    for (int r = 0; r < 20; ++r)
      for (int c = 0; c < 48; ++c) ASSERT_EQ(Bits::from_float(back(e, r, c)), Bits::from_float(one(r, c)));
  }
}

TEST(QuantizeErrors, say_what_was_given_and_expected_and_write_nothing) {
  Kokkos::View<float**, Space> view("view", 4, 40);
  BlockScaledMatrix<NVFP4, Space> wrong("wrong", 4, 48), nv("nv", 4, 40);
  BlockScaledMatrix<MXFP4, Space> mx("mx", 4, 40);
  poison(wrong, 0x33);
  const auto before = raw_bytes(wrong);
  expect_refused([&] { quantize(view, wrong); }, {"quantize", "src", "4 x 40", "4 x 48"});
  expect_refused([&] { quantize(view, nv, {.axis = Axis::columns}); }, {"quantize", "src", "40 x 4", "4 x 40"});
  EXPECT_EQ(raw_bytes(wrong), before);
  expect_refused([&] { quantize(view, nv, {.scale_rule = ScaleRule::floor}); }, {"quantize", "scale_rule", "E8M0"});
  expect_refused([&] { quantize(view, mx, {.tensor_scale = TensorScale::decode(1.0f)}); },
                 {"quantize", "tensor_scale", "no tensor scale"});
  auto grouped = BlockScaledMatrix<NVFP4, Space>::grouped("grouped", 4, 40, 2, ScaleLayout::tcgen);
  expect_refused([&] { quantize(view, grouped); }, {"quantize", "dst", "grouped"});
  auto none = BlockScaledMatrix<NVFP4, Space>::batched("none", 0, 4, 40);
  Kokkos::View<float***, Space> cube("cube", 0, 4, 41);
  expect_refused([&] { quantize(Exec(), cube, none); }, {"src", "4 x 41", "4 x 40"});
  for (const float bad : {0.0f, -2.0f, Bits::to_float(Bits::infinity), Bits::to_float(Bits::quiet_nan)}) {
    expect_refused([&] { TensorScale::decode(bad); }, {"TensorScale::decode", "positive finite"});
    expect_refused([&] { TensorScale::encode(bad); }, {"TensorScale::encode", "positive finite"});
  }
  expect_refused([&] { TensorScale::encode(0x1p-130f); }, {"TensorScale::encode", "reciprocal"});
  EXPECT_NO_THROW(TensorScale::decode(0x1p-130f));  // its encode half is capped at FLT_MAX
}

}  // namespace
