#include <Microscale_Avx512_Kernels.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

Status prepare(const Problem&, const PreparedForm&, void*, const Native&) {
  return {false, "there is no prepared form"};
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
