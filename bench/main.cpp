#include <Kokkos_Core.hpp>
#include <Microscale_Bench.hpp>

// How fast it is. Options are those of Google Benchmark (--benchmark_filter=quantize/) and Kokkos (--kokkos-num-threads=1).
int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const Kokkos::ScopeGuard guard(argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  microscale::bench::add_ceilings();
  microscale::bench::add_conversions();
  microscale::bench::add_interleaves();
  microscale::bench::add_products();
  microscale::bench::add_grouped();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
