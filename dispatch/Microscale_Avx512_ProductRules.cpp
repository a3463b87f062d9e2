#include <Microscale_Avx512_Rules.hpp>

namespace microscale::Impl {

Support avx512_product_supports(const Problem&) { return {false, "no kernel does this operation yet"}; }
double avx512_product_cost(const Problem&) { return 1.0; }
Config avx512_product_config(const Problem&) { return {}; }
Support avx512_product_accepts(const Problem&, const Config&) { return {false, "there is nothing to configure"}; }
std::int64_t avx512_product_workspace_bytes(const Problem&, const Config&) { return 0; }
PreparedForm avx512_product_prepared_form(const Problem&) { return {}; }

}  // namespace microscale::Impl
