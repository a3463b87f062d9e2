#include <Microscale_HostCeilings.hpp>
#include <Microscale_Peaks.hpp>

namespace microscale::tools {

Device measure_this_host(int threads) {
  constexpr double seconds = 0.02;  // enough to plan by; scripts/bench measures better
  bench::Peaks peaks(threads);
  const auto rate = [&](bench::Ceiling ceiling) {
    peaks.measure(ceiling, seconds);
    return peaks.rate(ceiling);
  };
  const double fp4 = rate(bench::Ceiling::vpdpbusd), bf16 = rate(bench::Ceiling::vdpbf16ps);
  return {"this host",
          "avx512",
          threads,
          rate(bench::Ceiling::read),
          {fp4, fp4, 0, 0, bf16, rate(bench::Ceiling::fma)},
          "measured just now, in a fraction of a second"};
}

}  // namespace microscale::tools
