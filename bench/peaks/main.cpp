#include <Microscale_Peaks.hpp>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

// peaks [THREADS...]: prints the ceilings of this machine for so many threads (default: one, and all).
int main(int argc, char** argv) {
  using namespace microscale::bench;
  std::set<int> counts;
  for (int i = 1; i < argc; ++i) counts.insert(std::atoi(argv[i]));
  if (argc == 1) counts = {1, static_cast<int>(std::thread::hardware_concurrency())};
  for (const int threads : counts) {
    if (threads < 1) {
      std::fprintf(stderr, "usage: peaks [THREADS...]\n");
      return 2;
    }
    Peaks peaks(threads);
    for (const Ceiling ceiling : all_ceilings) {
      peaks.measure(ceiling, 1.0);
      if (has(ceiling))
        std::printf("%-10s %3d thread%s %9.1f %s\n", name(ceiling), threads, threads == 1 ? " " : "s",
                    peaks.rate(ceiling) * 1e-9, is_bandwidth(ceiling) ? "GB/s" : "GFLOP/s");
      else
        std::printf("%-10s not on this processor\n", name(ceiling));
    }
  }
}
