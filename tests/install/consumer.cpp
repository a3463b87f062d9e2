// A small program that stands for a user's: it multiplies two matrices whose values MXFP4 holds exactly.
#include <Kokkos_Core.hpp>
#include <Microscale.hpp>

#include <cstdio>

namespace {

// One of E2M1's values; the first of each block is its largest, 6, so that the block's scale is 1.
KOKKOS_FUNCTION float value(int row, int k) {
  constexpr float values[] = {6.f, 0.f, -0.5f, 1.f, -1.5f, 2.f, -3.f, 4.f};
  return k % 32 == 0 ? 6.f : values[(row + k) % 8];
}

template <class View>
void fill(const View& view) {
  Kokkos::parallel_for(
      "fill",
      Kokkos::MDRangePolicy<typename View::execution_space, Kokkos::Rank<2>>(
          {0, 0}, {static_cast<int>(view.extent(0)), static_cast<int>(view.extent(1))}),
      KOKKOS_LAMBDA(int i, int j) { view(i, j) = value(i, j); });
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard guard(argc, argv);
  namespace ms = microscale;
  using Exec = Kokkos::DefaultExecutionSpace;
  constexpr int m = 3, n = 5, k = 64;

  Kokkos::View<float**, Exec> a("a", m, k), b("b", n, k), c("c", m, n);
  fill(a);
  fill(b);
  ms::BlockScaledMatrix<ms::MXFP4, Exec::memory_space> qa("qa", m, k), qb("qb", n, k);
  Exec exec;
  ms::quantize(exec, a, qa);
  ms::quantize(exec, b, qb);
  ms::matmul(exec, qa, qb, c, ms::Epilogue{});

  const auto result = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), c);
  int wrong = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float expected = 0.f;
      for (int l = 0; l < k; ++l) expected += value(i, l) * value(j, l);
      wrong += result(i, j) != expected;
    }
  }
  std::printf("Microscale %s: %d wrong values\n", MICROSCALE_VERSION_STRING, wrong);
  return wrong == 0 ? 0 : 1;
}
