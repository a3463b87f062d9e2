#ifndef MICROSCALE_MACROS_HPP
#define MICROSCALE_MACROS_HPP

// Microscale promises bits. Fast-math lets a compiler reassociate, flush and approximate, so it is refused outright.
#if defined(__FAST_MATH__)
#error "Microscale: compile without -ffast-math (or its equivalents); every result is defined bit for bit."
#endif

#if defined(__CUDACC__) || defined(__HIPCC__)
#define MICROSCALE_FUNCTION __host__ __device__
#else
#define MICROSCALE_FUNCTION
#endif

// Code that runs on a GPU: one element a lane, multiplications cheap, 64-bit integers and branches dear.
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define MICROSCALE_DEVICE_CODE 1
#else
#define MICROSCALE_DEVICE_CODE 0
#endif

// For what a loop over a block calls: left as a call, it keeps the loop from being vectorized, and in a large kernel
// compilers do leave it.
#if defined(__GNUC__)
#define MICROSCALE_FORCEINLINE_FUNCTION MICROSCALE_FUNCTION inline __attribute__((always_inline))
#else
#define MICROSCALE_FORCEINLINE_FUNCTION MICROSCALE_FUNCTION inline
#endif

// Inline code may be compiled several times under different instruction sets (a backend has its own flags). Were the
// copies to share one name, the linker would keep any one of them, perhaps one that this machine cannot run. Each set
// of x86 extensions therefore has an inline namespace of its own: isa, then a name for each that the flags allow. Plain
// data that crosses between such parts stays outside of it.
#if defined(__SSE4_2__)
#define MICROSCALE_ISA_SSE4_2 _sse42
#else
#define MICROSCALE_ISA_SSE4_2
#endif
#if defined(__AVX__)
#define MICROSCALE_ISA_AVX _avx
#else
#define MICROSCALE_ISA_AVX
#endif
#if defined(__F16C__)
#define MICROSCALE_ISA_F16C _f16c
#else
#define MICROSCALE_ISA_F16C
#endif
#if defined(__FMA__)
#define MICROSCALE_ISA_FMA _fma
#else
#define MICROSCALE_ISA_FMA
#endif
#if defined(__AVX2__)
#define MICROSCALE_ISA_AVX2 _avx2
#else
#define MICROSCALE_ISA_AVX2
#endif
#if defined(__BMI2__)
#define MICROSCALE_ISA_BMI2 _bmi2
#else
#define MICROSCALE_ISA_BMI2
#endif
#if defined(__AVX512F__)
#define MICROSCALE_ISA_AVX512F _f
#else
#define MICROSCALE_ISA_AVX512F
#endif
#if defined(__AVX512BW__)
#define MICROSCALE_ISA_AVX512BW _bw
#else
#define MICROSCALE_ISA_AVX512BW
#endif
#if defined(__AVX512DQ__)
#define MICROSCALE_ISA_AVX512DQ _dq
#else
#define MICROSCALE_ISA_AVX512DQ
#endif
#if defined(__AVX512VL__)
#define MICROSCALE_ISA_AVX512VL _vl
#else
#define MICROSCALE_ISA_AVX512VL
#endif
#if defined(__AVX512VBMI__)
#define MICROSCALE_ISA_AVX512VBMI _vbmi
#else
#define MICROSCALE_ISA_AVX512VBMI
#endif
#if defined(__AVX512VNNI__)
#define MICROSCALE_ISA_AVX512VNNI _vnni
#else
#define MICROSCALE_ISA_AVX512VNNI
#endif
#if defined(__AVX512BF16__)
#define MICROSCALE_ISA_AVX512BF16 _bf16
#else
#define MICROSCALE_ISA_AVX512BF16
#endif
#if defined(__AVX512FP16__)
#define MICROSCALE_ISA_AVX512FP16 _fp16
#else
#define MICROSCALE_ISA_AVX512FP16
#endif
#if defined(__AMX_TILE__)
#define MICROSCALE_ISA_AMX_TILE _amx
#else
#define MICROSCALE_ISA_AMX_TILE
#endif
#define MICROSCALE_ISA_JOIN_(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14) \
  isa##x0##x1##x2##x3##x4##x5##x6##x7##x8##x9##x10##x11##x12##x13##x14
#define MICROSCALE_ISA_JOIN(...) MICROSCALE_ISA_JOIN_(__VA_ARGS__)
#define MICROSCALE_ISA                                                                                           \
  MICROSCALE_ISA_JOIN(MICROSCALE_ISA_SSE4_2, MICROSCALE_ISA_AVX, MICROSCALE_ISA_F16C, MICROSCALE_ISA_FMA,        \
                      MICROSCALE_ISA_AVX2, MICROSCALE_ISA_BMI2, MICROSCALE_ISA_AVX512F, MICROSCALE_ISA_AVX512BW, \
                      MICROSCALE_ISA_AVX512DQ, MICROSCALE_ISA_AVX512VL, MICROSCALE_ISA_AVX512VBMI,               \
                      MICROSCALE_ISA_AVX512VNNI, MICROSCALE_ISA_AVX512BF16, MICROSCALE_ISA_AVX512FP16,           \
                      MICROSCALE_ISA_AMX_TILE)

#endif
