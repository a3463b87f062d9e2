#include <Microscale_Avx512_Rules.hpp>

namespace microscale::Impl {

Support avx512_conversion_supports(const Problem&) { return {false, "no kernel does this operation yet"}; }
double avx512_conversion_cost(const Problem&) { return 1.0; }

}  // namespace microscale::Impl
