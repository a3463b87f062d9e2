#include <immintrin.h>
#include <Microscale_PeakKernels.hpp>

// 16 sums that do not depend on each other hide the latency of any of these instructions.
namespace microscale::bench {
namespace {

constexpr int sums = 16;

float total(__m512* sum) {
  for (int i = 1; i < sums; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  float values[16], result = 0;
  _mm512_storeu_ps(values, sum[0]);
  for (int i = 0; i < 16; ++i) result += values[i];
  return result;
}

float fma_loop(int64_t steps) {
  __m512 sum[sums];
  for (int i = 0; i < sums; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.5f);
  for (int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 16
    for (int i = 0; i < sums; ++i) sum[i] = _mm512_fmadd_ps(sum[i], x, y);
  return total(sum);
}

float vpdpbusd_loop(int64_t steps) {
  using Integers = int32_t __attribute__((vector_size(64)));  // GCC would move an __m512i about at each step
  Integers sum[sums];
  for (int i = 0; i < sums; ++i) sum[i] = Integers(_mm512_set1_epi32(i));
  const __m512i x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(-5);
  for (int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 16
    for (int i = 0; i < sums; ++i) sum[i] = Integers(_mm512_dpbusd_epi32(__m512i(sum[i]), x, y));
  for (int i = 1; i < sums; ++i) sum[0] += sum[i];
  return static_cast<float>(sum[0][0]);
}

float vdpbf16ps_loop(int64_t steps) {
  __m512 sum[sums];
  for (int i = 0; i < sums; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 value = _mm512_set1_ps(0.75f);
  const __m512bh x = _mm512_cvtne2ps_pbh(value, value);
  for (int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 16
    for (int i = 0; i < sums; ++i) sum[i] = _mm512_dpbf16_ps(sum[i], x, x);
  return total(sum);
}

uint64_t read_loop(const void* data, int64_t bytes) {
  const char* p = static_cast<const char*>(data);
  __m512i sum[8];
  for (int i = 0; i < 8; ++i) sum[i] = _mm512_setzero_si512();
  for (int64_t at = 0; at < bytes; at += 512)
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sum[i] = _mm512_add_epi64(sum[i], _mm512_loadu_si512(p + at + 64 * i));
  for (int i = 1; i < 8; ++i) sum[0] = _mm512_add_epi64(sum[0], sum[i]);
  uint64_t words[8], result = 0;
  _mm512_storeu_si512(words, sum[0]);
  for (int i = 0; i < 8; ++i) result += words[i];
  return result;
}

void copy_loop(void* to, const void* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(static_cast<char*>(to) + at),
                        _mm512_loadu_si512(static_cast<const char*>(from) + at));
  _mm_sfence();
}

}  // namespace

PeakKernels avx512_kernels() {
  PeakKernels result;
  result.vpdpbusd = vpdpbusd_loop;
  result.vpdpbusd_operations = 2.0 * 64 * sums;
  result.vdpbf16ps = vdpbf16ps_loop;
  result.vdpbf16ps_operations = 2.0 * 32 * sums;
  result.fma = fma_loop;
  result.fma_operations = 2.0 * 16 * sums;
  result.read = read_loop;
  result.copy = copy_loop;
  return result;
}

}  // namespace microscale::bench
