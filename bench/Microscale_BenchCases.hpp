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
inline constexpr Extents conversions[] = {{4096, 4096}, {1, 4096}};

/// C [m, n] = A [m, k] B [n, k]^T, with B prepared; also with B as it is quantized, if `plain_too`.
struct Product {
  std::int64_t m, n, k;
  bool plain_too = false;
};
inline constexpr Product products[] = {
    {512, 4096, 4096, true},                         // many rows: bound by instructions
    {1, 4096, 14336, true},                          // decode: bound by reading B
    {4, 4096, 14336},                                //
    {16, 4096, 14336},                               //
    {8, 4096, 4096, true},   {64, 4096, 4096},       // between the two
    {64, 64, 64, true},      {130, 300, 200, true},  // small, and with tails
    {4096, 2880, 2880},      {256, 768, 1024},       // as many operations as the grouped products below
};
/// Products of so few rows are bound by reading B, and their rate is in bytes.
inline constexpr std::int64_t decode_rows = 4;
/// The reference is not asked for products of more operations where it is what is measured: it is slow.
inline constexpr double reference_operations = 5e9;

/// A layer of `experts` weights [n, k]; `tokens` rows go to `active` of the experts, most of them to a few.
struct GroupedProduct {
  std::int64_t tokens, active, experts, n, k;
};
inline constexpr GroupedProduct grouped[] = {
    {4096, 32, 32, 2880, 2880}, {256, 8, 8, 768, 1024}, {16, 8, 32, 768, 1024}};

template <class... T>
struct Types {};
template <class A, class B>
struct Pair {};

using ConvertedFormats = Types<NVFP4, MXFP4, MXFP6_E2M3, MXFP6_E3M2, MXFP8_E4M3, MXFP8_E5M2>;
using PlainTypes = Types<float, bf16>;
/// Formats of A and B; a plain type is an unquantized A.
using ProductFormats =
    Types<Pair<MXFP4, MXFP4>, Pair<NVFP4, NVFP4>, Pair<MXFP8_E4M3, MXFP8_E4M3>, Pair<MXFP8_E4M3, MXFP4>,
          Pair<MXFP6_E2M3, MXFP6_E2M3>, Pair<bf16, MXFP4>, Pair<bf16, NVFP4>, Pair<bf16, MXFP8_E4M3>>;
using GroupedFormats = Types<Pair<NVFP4, NVFP4>, Pair<MXFP4, MXFP4>, Pair<bf16, MXFP4>>;

}  // namespace microscale::bench

#endif
