#ifndef MICROSCALE_AVX512_REALTILE_HPP
#define MICROSCALE_AVX512_REALTILE_HPP

#include <Microscale_Avx512_Bf16Path.hpp>
#include <Microscale_Avx512_FmaPath.hpp>
#include <Microscale_Avx512_Panels.hpp>
#include <stdint.h>
#include <string.h>

// A tile of A B^T from the operands as they are: panels are made slab by slab of K, those of A for the whole tile (they
// stay in the second cache), those of B for three vectors of columns at a time (they stay in the first), and multiplied
// by the bf16 path, or by the FMA path where that one does not fit.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// Panels of one slab. It fits a thread's stack.
struct TileScratch {
  static constexpr int rows = 256;   ///< most rows of a tile
  static constexpr int vectors = 3;  ///< of columns at a time
  static constexpr int words = 2048;
  static constexpr int scales = 16 * group_rows;

  union Panel {
    uint32_t pairs[words];  ///< 256 columns of K
    float floats[words];    ///< 128 columns
  };
  alignas(64) Panel a[rows / group_rows];
  alignas(64) Panel b[vectors];
  alignas(64) float a_scales[rows / group_rows][scales];
  alignas(64) float b_scales[vectors][scales];
};

/// What is multiplied: rows [row, row + rows) of A by rows [column, column + columns) of B, which are columns of C, over
/// all K columns of both. columns begins at a multiple of 16.
struct TileOfProduct {
  const PanelSource& a;
  int64_t row;
  int rows;  ///< at most TileScratch::rows
  const PanelSource& b;
  int64_t column;
  int columns;
  int64_t k;

  int row_groups() const { return (rows + group_rows - 1) / group_rows; }
  int vectors() const { return (columns + group_rows - 1) / group_rows; }
  int rows_of_group(int g) const { return left(rows, g); }
  int columns_of_vector(int v) const { return left(columns, v); }

 private:
  static int left(int all, int g) { return all - g * group_rows < group_rows ? all - g * group_rows : group_rows; }
};

/// Calls step(v, n) for n <= 3 vectors from the v-th on, as for_register_tiles would take them.
template <class Step>
inline bool for_column_steps(int vectors, const Step& step) {
  for (int v = 0; v < vectors;) {
    const int left = vectors - v, n = left == 4 ? 2 : left < 3 ? left : 3;
    if (!step(v, n)) return false;
    v += n;
  }
  return true;
}

/// c += the tile, by bf16. false: some values are out of the range for that, and c is spoilt. c has room for whole vectors.
inline bool add_tile_bf16(const TileOfProduct& tile, TileScratch& scratch, float* c, int64_t c_pitch) {
  constexpr int slab = TileScratch::words / group_rows * 2;
  static_assert(slab <= max_stretch && slab == bf16_chunk);
  for (int64_t k = 0; k < tile.k; k += slab) {
    const int count = static_cast<int>(tile.k - k < slab ? tile.k - k : slab);
    ExponentRange a_range;
    for (int g = 0; g < tile.row_groups(); ++g)
      a_range.include(
          tile.a.bf16_pairs(tile.row + g * group_rows, tile.rows_of_group(g), k, count, scratch.a[g].pairs));
    const bool done = for_column_steps(tile.vectors(), [&](int v, int n) {
      ExponentRange b_range;
      for (int i = 0; i < n; ++i)
        b_range.include(tile.b.bf16_pairs(tile.column + (v + i) * group_rows, tile.columns_of_vector(v + i), k, count,
                                          scratch.b[i].pairs));
      if (!products_fit(a_range, b_range)) return false;
      multiply_bf16(tile.rows, n, (count + 1) / 2, scratch.a[0].pairs, TileScratch::words, scratch.b[0].pairs,
                    TileScratch::words, c + 16 * v, c_pitch);
      return true;
    });
    if (!done) return false;
  }
  return true;
}

/// c += the tile, by fused multiply-adds.
inline void add_tile_fma(const TileOfProduct& tile, TileScratch& scratch, float* c, int64_t c_pitch) {
  constexpr int slab = TileScratch::words / group_rows;
  static_assert(slab / 8 * group_rows <= TileScratch::scales);
  for (int64_t k = 0; k < tile.k; k += slab) {
    const int count = static_cast<int>(tile.k - k < slab ? tile.k - k : slab);
    FloatPanels a{scratch.a[0].floats,
                  TileScratch::words,
                  tile.a.block(),
                  scratch.a_scales[0],
                  TileScratch::scales,
                  tile.a.scale_type(),
                  {}};
    for (int g = 0; g < tile.row_groups(); ++g)
      a.scale_range.include(tile.a.floats(tile.row + g * group_rows, tile.rows_of_group(g), k, count,
                                          scratch.a[g].floats, scratch.a_scales[g]));
    for_column_steps(tile.vectors(), [&](int v, int n) {
      FloatPanels b{scratch.b[0].floats,
                    TileScratch::words,
                    tile.b.block(),
                    scratch.b_scales[0],
                    TileScratch::scales,
                    tile.b.scale_type(),
                    {}};
      for (int i = 0; i < n; ++i)
        b.scale_range.include(tile.b.floats(tile.column + (v + i) * group_rows, tile.columns_of_vector(v + i), k, count,
                                            scratch.b[i].floats, scratch.b_scales[i]));
      multiply_fma(tile.rows, n, count, a, b, c + 16 * v, c_pitch);
      return true;
    });
  }
}

/// c = the tile. prefer_bf16: whether the bf16 path is the faster one (see bf16_is_fast).
inline void multiply_tile(const TileOfProduct& tile, bool prefer_bf16, TileScratch& scratch, float* c,
                          int64_t c_pitch) {
  const bool bf16 = prefer_bf16 && tile.a.fits_bf16();
  const auto clear = [&] {
    for (int r = 0; r < tile.rows; ++r) memset(c + r * c_pitch, 0, sizeof(float) * 16 * tile.vectors());
  };
  clear();
  if (bf16 && add_tile_bf16(tile, scratch, c, c_pitch)) return;
  if (bf16) clear();
  add_tile_fma(tile, scratch, c, c_pitch);
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
