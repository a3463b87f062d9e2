#include <Microscale_Avx512_Decode.hpp>
#include <Microscale_Avx512_IntegerPath.hpp>
#include <Microscale_Avx512_Product.hpp>
#include <Microscale_Avx512_RealTile.hpp>
#include <Microscale_Avx512_TensorScale.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {
namespace {

struct IntegerScratch {
  IntegerPanel a[avx512_layout::tile_rows / group_rows];
  IntegerPanel b[3];
};

/// c = the tile, of FP4 operands, by pieces of Piece columns. false: some scales are too extreme for that, and c is spoilt.
template <int Piece>
bool multiply_tile_integers(const TileOfProduct& tile, IntegerScratch& scratch, float* c, int64_t c_pitch) {
  const auto panel = [&]<bool OfB>(const PanelSource& source, int64_t row, int rows, int64_t k, int count,
                                   IntegerPanel& to) {
    return source.fp4_codes(row, rows, k, count, [&](const uint8_t* codes, const uint8_t* scales) {
      return expand_integers<OfB, Piece>(source.scale_type(), source.block(), codes, scales, count, to);
    });
  };
  for (int r = 0; r < tile.rows; ++r) memset(c + r * c_pitch, 0, sizeof(float) * 16 * tile.vectors());
  for (int64_t k = 0; k < tile.k; k += IntegerPanel::columns) {
    const int count = static_cast<int>(smaller(tile.k - k, IntegerPanel::columns));
    const int pieces = (count + Piece - 1) / Piece;
    ExponentRange a_range;
    for (int g = 0; g < tile.row_groups(); ++g)
      a_range.include(panel.template operator()<false>(tile.a, tile.row + g * group_rows, tile.rows_of_group(g), k,
                                                       count, scratch.a[g]));
    if (!is_exact_in_integers(a_range)) return false;
    const bool done = for_column_steps(tile.vectors(), [&](int v, int n) {
      ExponentRange b_range;
      for (int i = 0; i < n; ++i)
        b_range.include(panel.template operator()<true>(tile.b, tile.column + (v + i) * group_rows,
                                                        tile.columns_of_vector(v + i), k, count, scratch.b[i]));
      if (!is_exact_in_integers(b_range)) return false;
      multiply_integers<Piece / 4>(tile.rows, n, pieces, scratch.a, scratch.b, c + 16 * v, c_pitch);
      return true;
    });
    if (!done) return false;
  }
  return true;
}
bool multiply_tile_integers(const TileOfProduct& tile, IntegerScratch& scratch, float* c, int64_t c_pitch) {
  return tile.a.block() == 16 || tile.b.block() == 16 ? multiply_tile_integers<16>(tile, scratch, c, c_pitch)
                                                      : multiply_tile_integers<32>(tile, scratch, c, c_pitch);
}

union Scratch {
  IntegerScratch integers;
  TileScratch reals;
};

/// Rows [row, row + rows) by columns [col, col + cols) of A B^T, without epilogue; col is a multiple of 16.
void multiply(const ProductSlice& slice, int64_t row, int rows, int64_t col, int cols, Scratch& scratch, float* sums,
              int64_t pitch) {
  if (rows <= decode_rows) {
    decode_tile(slice.a, row, rows, slice.a_scale_shift, slice.b, col, cols, 0, slice.a.cols, sums, pitch);
    return;
  }
  const PanelSource a(slice.a, slice.a_scale_shift), b(slice.b);
  const TileOfProduct tile{a, row, rows, b, col, cols, slice.a.cols};
  if (a.fp4() && b.fp4() && multiply_tile_integers(tile, scratch.integers, sums, pitch)) return;
  multiply_tile(tile, !(a.fp4() && b.fp4()) && bf16_is_fast(), scratch.reals, sums, pitch);
}

}  // namespace

void product_tile(const Problem& problem, const ProductSlice& slice, int64_t row, int rows, int64_t col, int cols) {
  // Under halved gates there are two ranges of columns of A B^T, of which the second may begin up to 15 columns early.
  constexpr int pitch = avx512_layout::tile_cols + 2 * group_rows;
  alignas(64) Scratch scratch;
  alignas(64) float sums[avx512_layout::tile_rows * pitch];
  const EpilogueData& e = problem.epilogue;
  const bool gated = e.gate != Gate::none, halved = gated && e.gate_columns == GateColumns::halved;
  const int columns_of_one = gated && !halved ? 2 : 1;
  const float* ups = nullptr;
  multiply(slice, row, rows, columns_of_one * col, columns_of_one * cols, scratch, sums, pitch);
  if (halved) {
    const int64_t up = slice.c.cols + col;
    const int lead = static_cast<int>(up % group_rows), width = (cols + group_rows - 1) / group_rows * group_rows;
    multiply(slice, row, rows, up - lead, lead + cols, scratch, sums + width, pitch);
    ups = sums + width + lead;
  }
  TileEpilogue epilogue(problem, slice);
  epilogue(row, rows, col, cols, {sums, ups, pitch});
}

void resolve_output_scale(const Problem& problem) {
  if (problem.c.tensor_scale == nullptr || problem.quantize.source != TensorScaleSource::given) return;
  for (int64_t e = 0; e < problem.c.batch; ++e) problem.c.tensor_scale[e] = given_tensor_scale(problem.quantize);
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
