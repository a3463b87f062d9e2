#include <immintrin.h>
#include <Microscale_PeakKernels.hpp>

namespace microscale::bench {
namespace {

constexpr int sums = 12;  // and two constants: all of the 16 registers but two

float fma_loop(int64_t steps) {
  __m256 sum[sums];
  for (int i = 0; i < sums; ++i) sum[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.5f);
  for (int64_t s = 0; s < steps; ++s)
#pragma GCC unroll 12
    for (int i = 0; i < sums; ++i) sum[i] = _mm256_fmadd_ps(sum[i], x, y);
  for (int i = 1; i < sums; ++i) sum[0] = _mm256_add_ps(sum[0], sum[i]);
  float values[8], total = 0;
  _mm256_storeu_ps(values, sum[0]);
  for (int i = 0; i < 8; ++i) total += values[i];
  return total;
}

uint64_t read_loop(const void* data, int64_t bytes) {
  const char* p = static_cast<const char*>(data);
  __m256i sum[8];
  for (int i = 0; i < 8; ++i) sum[i] = _mm256_setzero_si256();
  for (int64_t at = 0; at < bytes; at += 256)
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
      sum[i] = _mm256_add_epi64(sum[i], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + at + 32 * i)));
  for (int i = 1; i < 8; ++i) sum[0] = _mm256_add_epi64(sum[0], sum[i]);
  uint64_t values[4], total = 0;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(values), sum[0]);
  for (int i = 0; i < 4; ++i) total += values[i];
  return total;
}

void copy_loop(void* to, const void* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(static_cast<char*>(to) + at),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const char*>(from) + at)));
  _mm_sfence();
}

}  // namespace

PeakKernels avx2_kernels() {
  PeakKernels result;
  result.fma = fma_loop;
  result.fma_operations = 2.0 * 8 * sums;
  result.read = read_loop;
  result.copy = copy_loop;
  return result;
}

}  // namespace microscale::bench
