#ifndef MICROSCALE_BENCH_HPP
#define MICROSCALE_BENCH_HPP

#include <benchmark/benchmark.h>
#include <Microscale.hpp>
#include <Microscale_BenchCases.hpp>

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>

// What all benchmarks share: names, data, counters. Names are op/format.../M:../N:../K:../backend:../threads:..
namespace microscale::bench {

using Exec = Kokkos::DefaultExecutionSpace;
using Space = Exec::memory_space;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Space>;

template <class T>
inline constexpr const char* type_name = T::name;
template <>
inline constexpr const char* type_name<float> = "float";
template <>
inline constexpr const char* type_name<bf16> = "bf16";

/// Calls f with each type in turn.
template <class... T, class F>
void for_each_type(Types<T...>, const F& f) {
  (f(std::type_identity<T>()), ...);
}

inline std::string extent(const char* letter, std::int64_t n) {
  return std::string("/") + letter + ':' + std::to_string(n);
}

/// Registers `run`, which is given a benchmark::State, under a name completed by backend and threads.
template <class Run>
void add(const std::string& name, const std::string& backend, const Run& run) {
  const std::string full = name + "/backend:" + backend + "/threads:" + std::to_string(Exec().concurrency());
  benchmark::RegisterBenchmark(full.c_str(), run)->Unit(benchmark::kMicrosecond);
}

/// A matrix of normally distributed values with the first in each 64 ten times as large, as in real weights.
template <class T>
Matrix<T> random_matrix(const std::string& label, std::int64_t rows, std::int64_t cols) {
  Matrix<T> result(label, rows, cols);
  const auto host = Kokkos::create_mirror_view(result);
  std::mt19937 engine(static_cast<std::uint32_t>(rows * 31 + cols));
  std::normal_distribution<float> normal;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) host(r, c) = T(normal(engine) * (c % 64 == 0 ? 10.0f : 1.0f));
  Kokkos::deep_copy(result, host);
  return result;
}

/// What one launch moves or computes, and the counter that shows it as a rate, by wall-clock time.
struct Amount {
  const char* counter;
  double per_launch;
};

/// Runs `launch` until the benchmark has seen enough, waiting for each one. `output` is where it writes.
template <class Launch>
void measure(benchmark::State& state, const void* output, std::initializer_list<Amount> amounts, const Launch& launch) {
  const Exec exec;
  launch(exec);  // page faults, caches and thread pools of the first run are not measured
  exec.fence();
  const Kokkos::Timer timer;
  for ([[maybe_unused]] auto _ : state) {
    launch(exec);
    exec.fence();
    benchmark::DoNotOptimize(output);
    benchmark::ClobberMemory();
  }
  const double launches_per_second = static_cast<double>(state.iterations()) / timer.seconds();
  for (const Amount& amount : amounts) state.counters[amount.counter] = amount.per_launch * launches_per_second;
}

// Each registers the benchmarks of its file.
void add_ceilings();
void add_conversions();
void add_interleaves();
void add_products();
void add_grouped();

}  // namespace microscale::bench

#endif
