#include <benchmark/benchmark.h>
#include <Kokkos_Core.hpp>
#include <Microscale_Bench.hpp>

#include <exception>

// The same cases, without peers, under Google Benchmark. Options are its own (--benchmark_filter=^quantize/) and those of
// Kokkos (--kokkos-num-threads=1). Counters: the rate in operations or bytes a second, by wall-clock time, and its share
// of the ceiling.
namespace microscale::bench {
namespace {

void run(benchmark::State& state, const Case& c, Peaks& peaks) {
  try {
    const Trial trial = c.set();
    trial.ours();  // page faults, plans and thread pools are not measured
    if (peaks.rate(c.ceiling) == 0) peaks.measure(c.ceiling, 0.2);
    const Kokkos::Timer timer;
    for ([[maybe_unused]] auto _ : state) trial.ours();
    const double rate = c.amount() * static_cast<double>(state.iterations()) / timer.seconds();
    state.counters[is_bandwidth(c.ceiling) ? "bytes/s" : "FLOP/s"] = rate;
    state.counters[std::string("of ") + name(c.ceiling)] = rate / peaks.rate(c.ceiling);
  } catch (const std::exception& e) {
    state.SkipWithError(e.what());
  }
}

}  // namespace
}  // namespace microscale::bench

int main(int argc, char** argv) {
  using namespace microscale::bench;
  benchmark::Initialize(&argc, argv);
  const Kokkos::ScopeGuard guard(argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Peaks peaks(Exec().concurrency());
  for (const Case& c : all_cases())
    benchmark::RegisterBenchmark(c.name.c_str(), [c, &peaks](benchmark::State& state) {
      run(state, c, peaks);
    })->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
