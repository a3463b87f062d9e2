#include "TestMatmul.hpp"
#include <Microscale_BatchedMatmul.hpp>

#include <vector>

namespace {

using namespace microscale;
using namespace microscale::Test;
using microscale::half;  // CUDA has another one

constexpr std::int64_t batch = 3, rows = 40, cols = 70, depth = 100;

template <class F>
BatchedBlockScaledMatrix<F, Space> random_batch(std::int64_t extent, ScaleLayout layout, std::uint64_t seed) {
  const BatchedBlockScaledMatrix<F, Space> m("batch", batch, extent, depth, layout);
  for (std::int64_t e = 0; e < batch; ++e)
    fill(m.matrix(e).handle(), seed + static_cast<std::uint64_t>(e), Scales::moderate, 0xff);
  return m;
}

TEST(BatchedMatmul, each_matrix_with_its_own_scales) {
  for (const ScaleLayout layout : all_layouts) {
    const auto a = random_batch<NVFP4>(rows, layout, 1);
    const auto b = random_batch<NVFP4>(cols, ScaleLayout::tcgen, 11);
    const Kokkos::View<float***, Kokkos::LayoutLeft, Space> c("c", batch, rows, cols);
    batched_matmul(Exec(), a, b, c);
    for (int e = 0; e < batch; ++e)
      expect_product(plain(a.matrix(e)), plain(b.matrix(e)), Kokkos::subview(c, e, Kokkos::ALL, Kokkos::ALL),
                     name(layout));
  }
}

TEST(BatchedMatmul, unquantized_activations_in_any_order) {
  const Kokkos::View<half***, Kokkos::LayoutLeft, Space> a("a", batch, rows, depth);
  Random random(5);
  for (int e = 0; e < batch; ++e)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < depth; ++j) a(e, i, j) = half(random.unit());
  const auto b = random_batch<MXFP8_E4M3>(cols, ScaleLayout::cdna4, 11);
  const Kokkos::View<bf16***, Kokkos::LayoutRight, Space> c("c", batch, rows, cols);
  batched_matmul(a, b, c);
  for (int e = 0; e < batch; ++e)
    expect_product(plain(Kokkos::subview(a, e, Kokkos::ALL, Kokkos::ALL)), plain(b.matrix(e)),
                   Kokkos::subview(c, e, Kokkos::ALL, Kokkos::ALL), "half");
}

TEST(BatchedMatmul, epilogue_knows_the_matrix) {
  const auto a = random_batch<MXFP4>(rows, ScaleLayout::linear, 1);
  const auto b = random_batch<MXFP4>(cols, ScaleLayout::linear, 11);
  const Kokkos::View<float*, Space> scale("scale", batch), row("row", rows);
  const Kokkos::View<float**, Kokkos::LayoutLeft, Space> bias("bias", batch, cols);
  for (int e = 0; e < batch; ++e) {
    scale(e) = 0.3f * static_cast<float>(e + 1);
    for (int j = 0; j < cols; ++j) bias(e, j) = static_cast<float>(100 * e + j);
  }
  for (int i = 0; i < rows; ++i) row(i) = 0.1f * static_cast<float>(i);
  const Kokkos::View<float***, Space> c("c", batch, rows, cols);
  batched_matmul(a, b, c, Epilogue{}.expert_scale(scale).bias(bias).row_scale(row).then(AddBatchIndices{}));
  for (int e = 0; e < batch; ++e)
    expect_product(
        plain(a.matrix(e)), plain(b.matrix(e)), Kokkos::subview(c, e, Kokkos::ALL, Kokkos::ALL),
        [&](float v, std::int64_t i, std::int64_t j) {
          v = v * row(i) * scale(e);
          v = v + bias(e, j);
          return v + static_cast<float>(1000 * e + 10 * i + j);
        },
        "epilogue");
}

TEST(BatchedMatmul, quantized_output) {
  const auto a = random_batch<MXFP4>(rows, ScaleLayout::linear, 1);
  const auto b = random_batch<MXFP4>(cols, ScaleLayout::linear, 11);
  const BatchedBlockScaledMatrix<NVFP4, Space> q("q", batch, rows, cols, ScaleLayout::tcgen);
  for (int e = 0; e < batch; ++e) poison(q.matrix(e), 0x7f);
  const TensorScale scale = TensorScale::decode(0.25f);
  batched_matmul(a, b, q, {}, {.quantize = {.tensor_scale = scale}});
  for (int e = 0; e < batch; ++e) {
    const PlainOperand pa = plain(a.matrix(e)), pb = plain(b.matrix(e));
    std::vector<float> values;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) values.push_back(plain_product(pa, i, pb, j));
    expect_holds(q.matrix(e), quantize_plainly<NVFP4>(values, rows, cols, {.tensor_scale = scale.pair()}), "batch");
  }
}

TEST(BatchedMatmul, empty_batches_and_refusals) {
  const BatchedBlockScaledMatrix<MXFP4, Space> none("none", 0, rows, depth), none_b("none_b", 0, cols, depth);
  batched_matmul(none, none_b, Kokkos::View<float***, Space>("c", 0, rows, cols));
  const auto a = random_batch<MXFP4>(rows, ScaleLayout::linear, 1);
  const auto b = random_batch<MXFP4>(cols, ScaleLayout::linear, 11);
  const Kokkos::View<float***, Space> c("c", batch, rows, cols), fewer("fewer", 2, rows, cols);
  expect_refused([&] { batched_matmul(a, b, fewer); }, {"microscale::batched_matmul: c has batch 2; expected 3"});
  expect_refused([&] { batched_matmul(none, b, c); }, {"a has batch 0; expected 3"});
  const Kokkos::View<float*, Space> two("two", 2);
  const Kokkos::View<float**, Space> two_biases("two_biases", 2, cols);
  expect_refused([&] { batched_matmul(a, b, c, Epilogue{}.expert_scale(two)); }, {"expert_scale has extent 2"});
  expect_refused([&] { batched_matmul(a, b, c, Epilogue{}.bias(two_biases)); }, {"bias has 2 rows", "3 experts"});
}

}  // namespace
