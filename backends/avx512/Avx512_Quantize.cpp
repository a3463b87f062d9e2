#include <Microscale_Avx512_Kernels.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

Status quantize(const Problem&, const Config&, void*, const Native&) { return {false, "no kernel does this operation"}; }

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
