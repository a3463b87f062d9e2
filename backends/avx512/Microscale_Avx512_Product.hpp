#ifndef MICROSCALE_AVX512_PRODUCT_HPP
#define MICROSCALE_AVX512_PRODUCT_HPP

#include <Microscale_Avx512_Epilogue.hpp>
#include <Microscale_Avx512_Layout.hpp>
#include <stdint.h>

// Tiles of C: what matmul and grouped_matmul are made of.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// Rows and columns of the tiles of C under a configuration. A tile begins at a column that is a multiple of 32.
struct TileSize {
  int64_t rows, cols;

  TileSize(const Problem& problem, const Config& config) {
    const int most_rows = avx512_layout::tile_rows;
    const int most_cols = avx512_layout::tile_cols / (problem.epilogue.gate == Gate::none ? 1 : 2);
    rows = config.tile_m > 0 && config.tile_m < most_rows ? config.tile_m : most_rows;
    cols = config.tile_n > 0 && config.tile_n < most_cols ? config.tile_n : most_cols;
  }
};

/// Computes and stores rows [row, row + rows) and columns [col, col + cols) of C. Takes half a megabyte of stack.
void product_tile(const Problem& problem, const ProductSlice& slice, int64_t row, int rows, int64_t col, int cols);

/// Brings the tensor scale of a quantized C (of all its batch) to what the options ask for.
void resolve_output_scale(const Problem& problem);

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
