#include <Microscale_Bench.hpp>

// What this machine can do at best, by code compiled as the library is: a copy of floats (bytes/s counts what is read),
// and multiplications and additions in registers (FLOP/s). The ratios of the others to these are comparable between
// machines.
namespace microscale::bench {
namespace {

void copy_floats(benchmark::State& state) {
  const Extents e = conversions[0];
  const auto source = random_matrix<float>("source", e.rows, e.cols);
  const Matrix<float> result("result", e.rows, e.cols);
  measure(state, result.data(), {{"bytes/s", static_cast<double>(e.rows * e.cols) * sizeof(float)}},
          [&](const Exec& exec) { Kokkos::deep_copy(exec, result, source); });
}

struct MultiplyAdd {
  static constexpr int lanes = 64;  // independent sums, enough to hide the latency of each
  static constexpr int steps = 1 << 16;
  Kokkos::View<float* [lanes], Kokkos::LayoutRight, Space> values;

  KOKKOS_FUNCTION void operator()(int task) const {
    float sums[lanes];
    for (int i = 0; i < lanes; ++i) sums[i] = values(task, i);
    for (int s = 0; s < steps; ++s)
      for (int i = 0; i < lanes; ++i) sums[i] = sums[i] * 0.999f + 0.5f;
    for (int i = 0; i < lanes; ++i) values(task, i) = sums[i];
  }
};

void multiply_add(benchmark::State& state) {
  const int tasks = Exec().concurrency();
  const MultiplyAdd kernel{{"values", static_cast<std::size_t>(tasks)}};
  const double operations = 2.0 * tasks * MultiplyAdd::lanes * MultiplyAdd::steps;
  measure(state, kernel.values.data(), {{"FLOP/s", operations}}, [&](const Exec& exec) {
    Kokkos::parallel_for("microscale_bench::multiply_add", Kokkos::RangePolicy<Exec>(exec, 0, tasks), kernel);
  });
}

}  // namespace

void add_ceilings() {
  add("ceiling/copy/float" + extent("M", conversions[0].rows) + extent("K", conversions[0].cols), "kokkos",
      copy_floats);
  add("ceiling/multiply_add/float", "kokkos", multiply_add);
}

}  // namespace microscale::bench
