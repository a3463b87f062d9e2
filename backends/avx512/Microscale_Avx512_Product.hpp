#ifndef MICROSCALE_AVX512_PRODUCT_HPP
#define MICROSCALE_AVX512_PRODUCT_HPP

#include <Microscale_Avx512_Epilogue.hpp>
#include <stdint.h>

// Tiles of C: what matmul and grouped_matmul are made of.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// A tile of C is at most this large; half as wide under a gate. It begins at a column that is a multiple of 32.
inline constexpr int product_tile_rows = 256;
inline constexpr int product_tile_cols = 192;
inline int most_tile_cols(const EpilogueData& epilogue) {
  return epilogue.gate == Gate::none ? product_tile_cols : product_tile_cols / 2;
}

/// Computes and stores rows [row, row + rows) and columns [col, col + cols) of C. Takes half a megabyte of stack.
void product_tile(const Problem& problem, const ProductSlice& slice, int64_t row, int rows, int64_t col, int cols);

/// Brings the tensor scale of a quantized C (of all its batch) to what the options ask for.
void resolve_output_scale(const Problem& problem);

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
