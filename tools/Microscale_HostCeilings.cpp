#include <Microscale_HostCeilings.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#define MICROSCALE_HOST_X86
#include <immintrin.h>
#endif

namespace microscale::tools {
namespace {

constexpr int chains = 12;  // independent sums, enough to hide the latency of each
constexpr int steps = 1'000'000;

/// Does chains * steps instructions and returns something that depends on all of them.
using Kernel = float (*)();

float multiply_add() {
  float sums[4 * chains] = {};
  for (int s = 0; s < steps; ++s)
    for (float& sum : sums) sum = sum * 0.999f + 0.5f;
  float all = 0;
  for (const float sum : sums) all += sum;
  return all;
}

#if defined(MICROSCALE_HOST_X86)
__attribute__((target("avx2,fma"))) float fma_256() {
  __m256 sums[chains];
  for (auto& sum : sums) sum = _mm256_setzero_ps();
  const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.5f);
  for (int s = 0; s < steps; ++s)
    for (auto& sum : sums) sum = _mm256_fmadd_ps(sum, factor, term);
  float all = 0;
  for (const auto& sum : sums) all += sum[0];
  return all;
}
__attribute__((target("avx512f"))) float fma_512() {
  __m512 sums[chains];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  const __m512 factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.5f);
  for (int s = 0; s < steps; ++s)
    for (auto& sum : sums) sum = _mm512_fmadd_ps(sum, factor, term);
  float all = 0;
  for (const auto& sum : sums) all += sum[0];
  return all;
}
__attribute__((target("avx512f,avx512vnni"))) float vnni() {
  __m512i sums[chains];
  for (auto& sum : sums) sum = _mm512_setzero_si512();
  const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-5);
  for (int s = 0; s < steps; ++s)
    for (auto& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, b);
  float all = 0;
  for (const auto& sum : sums) all += static_cast<float>(sum[0]);
  return all;
}
__attribute__((target("avx512f,avx512bf16"))) float bf16() {
  __m512 sums[chains];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f)), b = a;
  for (int s = 0; s < steps; ++s)
    for (auto& sum : sums) sum = _mm512_dpbf16_ps(sum, a, b);
  float all = 0;
  for (const auto& sum : sums) all += sum[0];
  return all;
}
#endif

/// Runs body(t) on threads t = 0 .. threads - 1, three times; the shortest time.
template <class Body>
double seconds_of(int threads, const Body& body) {
  double best = 1e300;
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::vector<std::thread> team;
    const auto begin = std::chrono::steady_clock::now();
    for (int t = 1; t < threads; ++t) team.emplace_back(body, t);
    body(0);
    for (std::thread& thread : team) thread.join();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

volatile float sink;  // results go here, so that no work is left out

double rate(int threads, Kernel kernel, int flops_an_instruction) {
  const double seconds = seconds_of(threads, [&](int) { sink = kernel(); });
  return static_cast<double>(flops_an_instruction) * chains * steps * threads / seconds;
}

double read_rate(int threads) {
  constexpr std::size_t words = std::size_t{4} << 20;  // 32 MiB a thread, beyond its share of the caches
  std::vector<std::vector<std::uint64_t>> buffers(static_cast<std::size_t>(threads),
                                                  std::vector<std::uint64_t>(words, 1));
  const double seconds = seconds_of(threads, [&](int t) {
    std::uint64_t sum = 0;
    for (const std::uint64_t word : buffers[static_cast<std::size_t>(t)]) sum += word;
    sink = static_cast<float>(sum);
  });
  return static_cast<double>(words) * 8 * threads / seconds;
}

}  // namespace

Device measure_this_host(int threads) {
  Device device{"this host", "avx512", threads, read_rate(threads), {}, "measured just now"};
  const auto set = [&](Precision precision, Kernel kernel, int flops_an_instruction) {
    device.flops_per_second[static_cast<std::size_t>(precision)] = rate(threads, kernel, flops_an_instruction);
  };
#if defined(MICROSCALE_HOST_X86)
  if (__builtin_cpu_supports("avx512f"))
    set(Precision::fp32, fma_512, 32);
  else if (__builtin_cpu_supports("fma"))
    set(Precision::fp32, fma_256, 16);
  else
    set(Precision::fp32, multiply_add, 8);
  if (__builtin_cpu_supports("avx512bf16")) set(Precision::bf16, bf16, 64);
  if (__builtin_cpu_supports("avx512vnni")) {
    set(Precision::fp4_block16, vnni, 128);
    device.flops_per_second[static_cast<std::size_t>(Precision::fp4)] =
        device.flops_per_second[static_cast<std::size_t>(Precision::fp4_block16)];
  }
#else
  set(Precision::fp32, multiply_add, 8);
#endif
  return device;
}

}  // namespace microscale::tools
