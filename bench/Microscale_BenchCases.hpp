#ifndef MICROSCALE_BENCHCASES_HPP
#define MICROSCALE_BENCHCASES_HPP

#include <Microscale.hpp>

#include <cstdint>

// The one table of what is measured: shapes here, formats below them. To measure something else, add a line.
namespace microscale::bench {

/// rows x cols of a matrix that is converted.
struct Extents {
  std::int64_t rows, cols;
};
inline constexpr Extents conversions[] = {{1024, 4096}, {1, 4096}};

/// C [m, n] = A [m, k] B [n, k]^T.
struct Product {
  std::int64_t m, n, k;
};
inline constexpr Product dense[] = {{1024, 1024, 1024}, {130, 300, 200}};
inline constexpr Product decode[] = {{1, 2048, 2048}, {4, 2048, 2048}, {16, 2048, 2048}};

/// A layer of `experts` weights [n, k]; `tokens` rows go to `active` of the experts, most of them to a few.
struct GroupedProduct {
  std::int64_t tokens, active, experts, n, k;
};
inline constexpr GroupedProduct grouped[] = {{256, 8, 8, 768, 1024}, {16, 8, 32, 768, 1024}};

template <class... T>
struct Types {};
template <class A, class B>
struct Pair {};

using ConvertedFormats = Types<NVFP4, MXFP4, MXFP6_E2M3, MXFP6_E3M2, MXFP8_E4M3, MXFP8_E5M2>;
using PlainTypes = Types<float, bf16>;
/// Formats of A and B; a plain type is an unquantized A.
using ProductFormats = Types<Pair<NVFP4, NVFP4>, Pair<MXFP4, MXFP4>, Pair<MXFP6_E2M3, MXFP6_E2M3>,
                             Pair<MXFP8_E4M3, MXFP8_E4M3>, Pair<MXFP8_E4M3, MXFP4>, Pair<bf16, MXFP4>>;
using GroupedFormats = Types<Pair<NVFP4, NVFP4>, Pair<MXFP4, MXFP4>, Pair<bf16, MXFP4>>;

}  // namespace microscale::bench

#endif
