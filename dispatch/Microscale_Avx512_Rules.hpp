#ifndef MICROSCALE_AVX512_RULES_HPP
#define MICROSCALE_AVX512_RULES_HPP

#include <Microscale_Interface.hpp>

#include <cstdint>

// What the AVX-512 backend can do, what that costs and how it is tiled: the members of Backend of the same names, in
// two halves. Those but supports() are called for supported problems only.
namespace microscale::Impl {

/// Of block formats.
bool avx512_has_kernels_for(FormatId format);

// quantize, dequantize, interleave_scales, grouped_quantize. They need no workspace and have nothing to configure.
Support avx512_conversion_supports(const Problem& problem);
double avx512_conversion_cost(const Problem& problem);

// matmul, batched_matmul, grouped_matmul.
Support avx512_product_supports(const Problem& problem);
double avx512_product_cost(const Problem& problem);
Config avx512_product_config(const Problem& problem);
Support avx512_product_accepts(const Problem& problem, const Config& config);
std::int64_t avx512_product_workspace_bytes(const Problem& problem, const Config& config);
PreparedForm avx512_product_prepared_form(const Problem& problem);

}  // namespace microscale::Impl

#endif
