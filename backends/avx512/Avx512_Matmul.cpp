#include <Microscale_Avx512_Parallel.hpp>
#include <Microscale_Avx512_Product.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

// One task is one tile of C. Tasks that follow one another have the same columns, and so the same part of B.
Status matmul(const Problem& problem, const Config& config, void*, const Native& native) {
  const Operand& c = problem.c;
  const auto [rows, cols] = TileSize(problem, config);
  const int64_t row_tiles = (c.rows + rows - 1) / rows, col_tiles = (c.cols + cols - 1) / cols;
  resolve_output_scale(problem);
  if (c.format.block_size > 0)
    for (int64_t e = 0; e < c.batch; ++e) {  // the padding below the last row; the rest comes with the tiles
      const ScaleRows scales(matrix_of(c, e));
      const int64_t blocks = (c.cols + c.format.block_size - 1) / c.format.block_size;
      const int64_t end = (c.rows + scales.tile_rows() - 1) / scales.tile_rows() * scales.tile_rows();
      for (int64_t row = c.rows; row < end; ++row) scales.clear(row, 0, scales.padded(blocks));
    }
  parallel_for(native, c.batch * row_tiles * col_tiles, [&](int64_t task) {
    const int64_t e = task / (row_tiles * col_tiles);
    const int64_t row = task % row_tiles * rows, col = task / row_tiles % col_tiles * cols;
    const ProductSlice slice{matrix_of(problem.a, e), matrix_of(problem.b, e), matrix_of(c, e), e};
    product_tile(problem, slice, row, static_cast<int>(smaller(c.rows - row, rows)), col,
                 static_cast<int>(smaller(c.cols - col, cols)));
  });
  return {};
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
