#include "TestMatmul.hpp"
#include <Microscale.hpp>
#include <Small_Backend.hpp>

#include <string>
#include <vector>

// matmul by a backend that is not the reference: arguments, prepared operands, workspace, functors.
namespace {

using namespace microscale;
using namespace microscale::Test;
using Space = Kokkos::HostSpace;
using Host = Kokkos::DefaultHostExecutionSpace;
using Matrix = BlockScaledMatrix<MXFP4, Space>;

constexpr std::int64_t rows = 37, cols = 70, depth = 130;

class MatmulDispatch : public testing::Test {
 protected:
  Context context;
  const Host exec;
  const Matrix a = random_operand<MXFP4>(rows, depth, ScaleLayout::linear, 1);
  const Matrix b = random_operand<MXFP4>(cols, depth, ScaleLayout::linear, 2);
  const Kokkos::View<float**, Space> c{"c", rows, cols};
  MatmulOptions options;
  Kokkos::View<std::byte*, Space> workspace;

  MatmulDispatch() {
    context.add_backend(backend_small::backend());
    options.context = &context;
    options.backend = "small";
    lend(matmul_problem(exec, a, b, c));
    poison_view(c);
  }

  void lend(const Problem& problem) {
    workspace = Kokkos::View<std::byte*, Space>("workspace", workspace_bytes(problem, options));
    options.workspace = workspace;
  }
};

/// Names of the regions and kernels that f causes.
std::vector<std::string> names_during(const std::function<void()>& f) {
  static std::vector<std::string> names;
  names.clear();
  namespace Tools = Kokkos::Tools::Experimental;
  Tools::set_push_region_callback([](const char* name) { names.emplace_back(std::string("region ") + name); });
  Tools::set_begin_parallel_for_callback(
      [](const char* name, std::uint32_t, std::uint64_t*) { names.emplace_back(std::string("kernel ") + name); });
  f();
  Tools::set_push_region_callback(nullptr);
  Tools::set_begin_parallel_for_callback(nullptr);
  return names;
}

TEST_F(MatmulDispatch, runs_the_forced_backend_on_the_callers_instance) {
  const auto names = names_during([&] { matmul(exec, a, b, c, Epilogue{}.alpha(0.75f), options); });
  expect_product(
      plain(a), plain(b), c, [](float v, auto, auto) { return v * 0.75f; }, "small");
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.front(), "region microscale::matmul[small]");
  for (std::size_t i = 1; i < names.size(); ++i) EXPECT_EQ(names[i], "kernel microscale::matmul[small]");
  EXPECT_GT(names.size(), 1u);
}

TEST_F(MatmulDispatch, on_every_host_instance) {
  const auto run = [&](const auto& instance) {
    poison_view(c);
    matmul(instance, a, b, c, {}, options);
    expect_product(plain(a), plain(b), c, "instance");
  };
#ifdef KOKKOS_ENABLE_SERIAL
  run(Kokkos::Serial());
#endif
#ifdef KOKKOS_ENABLE_OPENMP
  for (const auto& part : Kokkos::Experimental::partition_space(Kokkos::OpenMP(), 1, 1)) run(part);
#endif
}

TEST_F(MatmulDispatch, strides_of_views_arrive) {
  const Kokkos::View<float**, Kokkos::LayoutRight, Space> big("big", rows + 2, cols + 9);
  const auto part = Kokkos::subview(big, Kokkos::pair<int, int>(1, 1 + rows), Kokkos::pair<int, int>(4, 4 + cols));
  const auto upper = random_operand<MXFP4>(2 * rows, depth, ScaleLayout::linear, 3);
  const Matrix middle = upper.row_range(20, 20 + rows);
  matmul(exec, middle, b, part, {}, options);
  expect_product(plain(middle), plain(b), part, "parts");
}

// The functor runs after the backend, over C, and gives what the reference gives in one pass.
TEST_F(MatmulDispatch, functor_is_a_pass_over_c) {
  const Kokkos::View<float**, Space> fused("fused", rows, cols), out("out", rows, cols);
  const auto returning = Epilogue{}.alpha(0.5f).then(
      [](std::int64_t m, std::int64_t n, float v) { return v * 1.01f + static_cast<float>(m - n); });
  const auto names = names_during([&] { matmul(exec, a, b, c, returning, options); });
  EXPECT_EQ(names.back(), "kernel microscale::matmul[functor]");
  reference::matmul(exec, a, b, fused, returning);
  const auto expect_same = [&](const auto& x, const auto& y) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) ASSERT_TRUE(same_bits(x(i, j), y(i, j))) << i << ", " << j;
  };
  expect_same(c, fused);
  matmul(exec, a, b, c, Epilogue{}.then([=](std::int64_t m, std::int64_t n, float v) { out(m, n) = v; }), options);
  reference::matmul(exec, a, b, fused);
  expect_same(c, fused);
  expect_same(out, fused);
}

TEST_F(MatmulDispatch, no_workspace_no_backend_that_needs_some) {
  options.workspace = {};
  options.backend = {};
  const auto names = names_during([&] { matmul(exec, a, b, c, {}, options); });
  EXPECT_EQ(names, std::vector<std::string>{"kernel microscale::matmul[reference]"});
  const std::string text = context.explain(matmul_problem(exec, a, b, c), {.without_workspace = true}).to_string();
  EXPECT_NE(text.find("bytes of workspace, and the call lends none"), std::string::npos) << text;
}

TEST_F(MatmulDispatch, too_little_workspace_is_refused_before_anything_is_written) {
  Kokkos::deep_copy(c, 3.0f);
  options.workspace = {workspace.data(), 64};
  expect_refused([&] { matmul(exec, a, b, c, {}, options); },
                 {"microscale::matmul: workspace has 64 bytes", std::to_string(workspace.extent(0)).c_str()});
  options.workspace = {};  // forced, so there is no way around it
  expect_refused([&] { matmul(exec, a, b, c, {}, options); }, {"microscale::matmul: workspace has 0 bytes"});
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) ASSERT_EQ(c(i, j), 3.0f);
}

TEST_F(MatmulDispatch, configuration_of_the_caller) {
  const Config good{.tile_m = 4, .tile_n = 8}, bad{.tile_n = 7};
  options.config = &good;
  matmul(exec, a, b, c, {}, options);
  expect_product(plain(a), plain(b), c, "tiles");
  options.config = &bad;
  expect_refused([&] { matmul(exec, a, b, c, {}, options); }, {"tile_n is a multiple of 8"});
}

TEST_F(MatmulDispatch, forced_backend_that_cannot_is_an_error) {
  const auto expect_error = [&](const auto& call, const char* reason) {
    try {
      call();
      ADD_FAILURE() << "no error: " << reason;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  };
  expect_error([&] { matmul(exec, a, b, c, Epilogue{}.relu(), options); }, "no epilogue but alpha");
  const BlockScaledMatrix<MXFP8_E4M3, Space> q("q", rows, cols);
  expect_error([&] { matmul(exec, a, b, q, {}, options); }, "only float output");
  expect_error([&] { matmul(exec, a, b, q, Epilogue{}.then([](auto, auto, float v) { return v; }), options); },
               "only the reference calls a functor before it quantizes");
  options.backend = "reference";
  matmul(exec, a, b, q, Epilogue{}.then([](auto, auto, float v) { return v; }), options);
}

TEST_F(MatmulDispatch, prepared_operand) {
  const PreparedMatrix<MXFP4, Space> prepared =
      prepare(exec, b, {.typical_m = rows, .backend = "small", .context = &context});
  EXPECT_GT(prepared.prepared_bytes(), 0);
  EXPECT_TRUE(prepared.has_original());
  EXPECT_EQ(prepared.rows(), cols);
  EXPECT_EQ(prepared.cols(), depth);
  lend(matmul_problem(exec, a, prepared, c));
  // What the backend reads is the prepared form: changing the original has no effect any more.
  const PlainOperand before = plain(b);
  const Matrix copy = random_operand<MXFP4>(cols, depth, ScaleLayout::linear, 2);
  poison(b, 0x11);
  matmul(exec, a, prepared, c, {}, options);
  expect_product(plain(a), before, c, "prepared");
  std::memcpy(b.data().data(), copy.data().data(), copy.data().span());
  std::memcpy(b.scales().data(), copy.scales().data(), copy.scales().span());
  // The reference takes it too, and uses the original.
  poison_view(c);
  reference::matmul(exec, a, prepared, c);
  expect_product(plain(a), before, c, "original");
}

TEST_F(MatmulDispatch, prepared_operand_without_its_original) {
  auto own = random_operand<MXFP4>(cols, depth, ScaleLayout::linear, 2);
  const PlainOperand pb = plain(own);
  const auto prepared =
      prepare(exec, own, {.typical_m = rows, .keep_original = false, .backend = "small", .context = &context});
  EXPECT_FALSE(prepared.has_original());
  EXPECT_EQ(own.data().use_count(), 1);  // nobody else holds it
  lend(matmul_problem(exec, a, prepared, c));
  matmul(exec, a, prepared, c, {}, options);
  expect_product(plain(a), pb, c, "prepared");
  expect_refused([&] { reference::matmul(exec, a, prepared, c); }, {"b has only a prepared form"});
  EXPECT_THROW(matmul(exec, a, prepared, c, Epilogue{}.relu(), {.context = &context}), std::runtime_error);
}

TEST_F(MatmulDispatch, prepare_is_the_identity_for_the_reference) {
  const auto batch = Matrix::batched("batch", 2, cols, depth);
  for (const auto& [bytes, kept] :
       {std::pair(prepare(exec, b, {.backend = "reference"}).prepared_bytes(), true),
        std::pair(prepare(b).prepared_bytes(), true), std::pair(prepare(exec, batch).prepared_bytes(), true)})
    EXPECT_EQ(bytes, kept ? 0 : 1);
  const auto prepared = prepare(exec, b, {.keep_original = false, .backend = "reference"});
  EXPECT_TRUE(prepared.has_original());  // there is nothing else
  matmul(exec, a, prepared, c);
  expect_product(plain(a), plain(b), c, "identity");
  const auto grouped = Matrix::grouped("grouped", 8, 64, 2, ScaleLayout::tcgen);
  expect_refused([&] { prepare(exec, grouped); }, {"microscale::prepare: b has grouped scales"});
}

}  // namespace
