#include <Microscale_PeakKernels.hpp>

// What the compiler makes of plain loops for the processor that the library is compiled for.
namespace microscale::bench {
namespace {

constexpr int sums = 32;

float multiply_add_loop(int64_t steps) {
  float sum[sums];
  for (int i = 0; i < sums; ++i) sum[i] = static_cast<float>(i);
  for (int64_t s = 0; s < steps; ++s)
    for (int i = 0; i < sums; ++i) sum[i] = sum[i] * 0.999f + 0.5f;
  float total = 0;
  for (int i = 0; i < sums; ++i) total += sum[i];
  return total;
}

uint64_t read_loop(const void* data, int64_t bytes) {
  const uint64_t* words = static_cast<const uint64_t*>(data);
  uint64_t sum[16] = {};
  for (int64_t at = 0; at < bytes / 8; at += 16)
    for (int i = 0; i < 16; ++i) sum[i] += words[at + i];
  uint64_t total = 0;
  for (int i = 0; i < 16; ++i) total += sum[i];
  return total;
}

}  // namespace

PeakKernels generic_kernels() {
  PeakKernels result;
  result.fma = multiply_add_loop;
  result.fma_operations = 2.0 * sums;
  result.read = read_loop;
  return result;
}

}  // namespace microscale::bench
