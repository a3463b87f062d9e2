#ifndef MICROSCALE_AVX512_REGISTERTILES_HPP
#define MICROSCALE_AVX512_REGISTERTILES_HPP

#include <Microscale_Avx512_Kernels.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// Calls tile.template operator()<Rows, Vectors>(row, vector) for register tiles that cover `rows` rows and `vectors`
/// vectors of 16 columns: 8 x 3 (24 sums, 3 vectors of B and one of A take 28 of the 32 registers) and smaller ones at
/// the edges. A register tile never crosses from one group of 16 rows to the next.
template <class Tile>
inline void for_register_tiles(int rows, int vectors, const Tile& tile) {
  const auto rows_of = [&]<int Vectors>(int v) {
    int r = 0;
    for (; r + 8 <= rows; r += 8) tile.template operator()<8, Vectors>(r, v);
    if (r + 4 <= rows) tile.template operator()<4, Vectors>(r, v), r += 4;
    if (r + 2 <= rows) tile.template operator()<2, Vectors>(r, v), r += 2;
    if (r < rows) tile.template operator()<1, Vectors>(r, v);
  };
  for (int v = 0; v < vectors;) {
    const int left = vectors - v;
    if (left == 3 || left > 4)
      rows_of.template operator()<3>(v), v += 3;
    else if (left == 2 || left == 4)  // 2 + 2 keeps the processor busier than 3 + 1
      rows_of.template operator()<2>(v), v += 2;
    else
      rows_of.template operator()<1>(v), v += 1;
  }
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
