#ifndef MICROSCALE_PEAKKERNELS_HPP
#define MICROSCALE_PEAKKERNELS_HPP

#include <stdint.h>

// The loops that Peaks times. Each file of kernels is compiled under its own instruction set, so this header, and what
// those files include, has no inline code.
namespace microscale::bench {

/// Does `steps` steps and returns something that depends on all of them.
using InstructionLoop = float (*)(int64_t steps);
/// Reads all bytes (a multiple of 1024) and returns something that depends on each.
using ReadLoop = uint64_t (*)(const void* data, int64_t bytes);
/// Copies all bytes (a multiple of 1024, pointers aligned to 64) past the caches.
using CopyLoop = void (*)(void* to, const void* from, int64_t bytes);

struct PeakKernels {
  InstructionLoop vpdpbusd = nullptr;  ///< null: the instruction set has none
  double vpdpbusd_operations = 0;      ///< of one step
  InstructionLoop vdpbf16ps = nullptr;
  double vdpbf16ps_operations = 0;
  InstructionLoop fma = nullptr;
  double fma_operations = 0;
  ReadLoop read = nullptr;
  CopyLoop copy = nullptr;  ///< null: memcpy() is all there is
};

#if defined(MICROSCALE_BENCH_X86)
PeakKernels avx512_kernels();  ///< F, VNNI, BF16
PeakKernels avx2_kernels();    ///< AVX2, FMA
#endif
PeakKernels generic_kernels();

}  // namespace microscale::bench

#endif
