#include <Microscale_PeakKernels.hpp>
#include <Microscale_Peaks.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

namespace microscale::bench {
namespace {

const PeakKernels& kernels() {
  static const PeakKernels best = [] {
#if defined(MICROSCALE_BENCH_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni") &&
        __builtin_cpu_supports("avx512bf16"))
      return avx512_kernels();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_kernels();
#endif
    return generic_kernels();
  }();
  return best;
}

double now(bool processor_time) {
#if defined(CLOCK_PROCESS_CPUTIME_ID)
  if (processor_time) {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
#endif
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds that body(thread) takes on all threads at once.
double seconds_of(int threads, const std::function<void(int thread)>& body) {
  std::atomic<int> waiting{threads};
  std::vector<std::thread> others;
  const auto arrive = [&] {
    --waiting;
    while (waiting > 0) std::this_thread::yield();
  };
  for (int t = 1; t < threads; ++t)
    others.emplace_back([&, t] {
      arrive();
      body(t);
    });
  arrive();
  const Stopwatch watch(threads);
  body(0);
  for (std::thread& other : others) other.join();
  return watch.seconds();
}

/// Results go here, so that no loop is superfluous.
std::atomic<double> sink;

double instruction_rate(InstructionLoop loop, double operations, int threads, double seconds) {
  if (loop == nullptr) return 0;
  const auto run = [&](std::int64_t steps) {
    return seconds_of(threads, [&](int) { sink = sink + static_cast<double>(loop(steps)); });
  };
  std::int64_t steps = 1 << 12;  // as many as take a tenth of the time
  double taken = run(steps);
  while (taken < seconds / 10) {
    steps *= taken < seconds / 100 ? 8 : 2;
    taken = run(steps);
  }
  double best = taken, total = taken;
  while (total < seconds) {
    taken = run(steps);
    best = std::min(best, taken);
    total += taken;
  }
  return operations * static_cast<double>(steps) * threads / best;
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};

double memory_rate(Ceiling ceiling, int threads, double seconds) {
  const std::int64_t part = uncached_bytes() / threads / 4096 * 4096, bytes = part * threads;
  const auto buffer = [&] {
    return std::unique_ptr<char, Free>(static_cast<char*>(std::aligned_alloc(4096, static_cast<std::size_t>(bytes))));
  };
  const auto from = buffer(), to = ceiling == Ceiling::copy ? buffer() : nullptr;
  if (from == nullptr || (ceiling == Ceiling::copy && to == nullptr)) return 0;
  seconds_of(threads, [&](int t) {  // each thread's memory is where that thread runs
    std::memset(from.get() + t * part, 1, static_cast<std::size_t>(part));
    if (to != nullptr) std::memset(to.get() + t * part, 2, static_cast<std::size_t>(part));
  });
  double best = 0, total = 0;
  for (int turn = 0; total < seconds || turn < 2; ++turn) {
    const bool streaming = turn % 2 == 0 && kernels().copy != nullptr;  // by turns, as either may be the faster
    const double taken = seconds_of(threads, [&](int t) {
      const char* source = from.get() + t * part;
      if (to == nullptr)
        sink = sink + static_cast<double>(kernels().read(source, part));
      else if (streaming)
        kernels().copy(to.get() + t * part, source, part);
      else
        std::memcpy(to.get() + t * part, source, static_cast<std::size_t>(part));
    });
    best = std::max(best, static_cast<double>(bytes) / taken);
    total += taken;
  }
  if (to != nullptr) sink = sink + to.get()[bytes - 1];
  return best;
}

}  // namespace

const char* name(Ceiling ceiling) {
  switch (ceiling) {
    case Ceiling::vpdpbusd:
      return "vpdpbusd";
    case Ceiling::vdpbf16ps:
      return "vdpbf16ps";
    case Ceiling::fma:
      return "fma";
    case Ceiling::read:
      return "read";
    case Ceiling::copy:
      return "copy";
  }
  return "";
}

bool has(Ceiling ceiling) {
  if (ceiling == Ceiling::vpdpbusd) return kernels().vpdpbusd != nullptr;
  if (ceiling == Ceiling::vdpbf16ps) return kernels().vdpbf16ps != nullptr;
  return true;
}

std::int64_t uncached_bytes() {
  static const std::int64_t bytes = [] {
    std::int64_t kibibytes = 0;  // of the last cache; Linux knows it better than sysconf() where machines are virtual
    std::ifstream("/sys/devices/system/cpu/cpu0/cache/index3/size") >> kibibytes;
    return std::clamp<std::int64_t>(3 * kibibytes << 10, std::int64_t{64} << 20, std::int64_t{512} << 20);
  }();
  return bytes;
}

Stopwatch::Stopwatch(int threads) : m_processor_time(threads == 1), m_start(now(m_processor_time)) {}

double Stopwatch::seconds() const { return now(m_processor_time) - m_start; }

void Peaks::measure(Ceiling ceiling, double seconds) {
  const PeakKernels& k = kernels();
  double rate = 0;
  switch (ceiling) {
    case Ceiling::vpdpbusd:
      rate = instruction_rate(k.vpdpbusd, k.vpdpbusd_operations, m_threads, seconds);
      break;
    case Ceiling::vdpbf16ps:
      rate = instruction_rate(k.vdpbf16ps, k.vdpbf16ps_operations, m_threads, seconds);
      break;
    case Ceiling::fma:
      rate = instruction_rate(k.fma, k.fma_operations, m_threads, seconds);
      break;
    case Ceiling::read:
    case Ceiling::copy:
      rate = memory_rate(ceiling, m_threads, seconds);
      break;
  }
  double& best = m_rates[static_cast<int>(ceiling)];
  best = std::max(best, rate);
}

}  // namespace microscale::bench
