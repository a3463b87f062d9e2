#ifndef MICROSCALE_AVX512_KERNELS_HPP
#define MICROSCALE_AVX512_KERNELS_HPP

#include <Microscale_Interface.hpp>

// The operations of this backend; each has a source of its own. All of these sources are compiled twice: for the
// processor, with the flags of MICROSCALE_AVX512_OPTIONS, and for the tests with MICROSCALE_AVX512_MODEL, where
// Microscale_Avx512_Vector.hpp stands for vectors of plain C++ that run anywhere.
#if defined(MICROSCALE_AVX512_MODEL)
#define MICROSCALE_AVX512_NAMESPACE backend_avx512_model
#else
#define MICROSCALE_AVX512_NAMESPACE backend_avx512
#endif

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// Of this folder, for dispatch.
const Kernels& kernels();

/// Whether this processor and the system have every instruction that the kernels use. MICROSCALE_AVX512=off in the
/// environment says no.
Support cpu_support();

Status quantize(const Problem& problem, const Config& config, void* workspace, const Native& native);
Status dequantize(const Problem& problem, const Config& config, void* workspace, const Native& native);
Status interleave_scales(const Problem& problem, const Config& config, void* workspace, const Native& native);
Status grouped_quantize(const Problem& problem, const Config& config, void* workspace, const Native& native);
/// matmul and batched_matmul.
Status matmul(const Problem& problem, const Config& config, void* workspace, const Native& native);
Status grouped_matmul(const Problem& problem, const Config& config, void* workspace, const Native& native);
/// Repacks b (all of its batch) as `form` says.
Status prepare(const Problem& problem, const PreparedForm& form, void* destination, const Native& native);

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
