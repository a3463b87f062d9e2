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

// For what a loop over a block calls: left as a call, it keeps the loop from being vectorized, and in a large kernel
// compilers do leave it.
#if defined(__GNUC__)
#define MICROSCALE_FORCEINLINE_FUNCTION MICROSCALE_FUNCTION inline __attribute__((always_inline))
#else
#define MICROSCALE_FORCEINLINE_FUNCTION MICROSCALE_FUNCTION inline
#endif

// Inline code may be compiled several times under different instruction sets (a backend has its own flags). Were the
// copies to share one name, the linker would keep any one of them, perhaps one that this machine cannot run. Each set
// of flags therefore has an inline namespace of its own. Plain data that crosses between such parts stays outside of
// it.
#if defined(__AVX512BF16__)
#define MICROSCALE_ISA isa_avx512bf16
#elif defined(__AVX512VNNI__)
#define MICROSCALE_ISA isa_avx512vnni
#elif defined(__AVX512F__)
#define MICROSCALE_ISA isa_avx512
#elif defined(__AVX2__)
#define MICROSCALE_ISA isa_avx2
#elif defined(__AVX__)
#define MICROSCALE_ISA isa_avx
#else
#define MICROSCALE_ISA isa_base
#endif

#endif
