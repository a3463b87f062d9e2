#ifndef MICROSCALE_AVX512_DECODE_HPP
#define MICROSCALE_AVX512_DECODE_HPP

#include <Microscale_Avx512_Kernels.hpp>
#include <stdint.h>

// Products with few rows, which cost what it takes to read B: it is read once, and decoded on the way.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

inline constexpr int decode_rows = 16;   ///< at most, of a tile
inline constexpr int decode_cols = 256;  ///< likewise

/// Rows [row, row + rows) by columns [col, col + cols) of A B^T over elements [k_begin, k_end), without tensor scales
/// and epilogue, to out[i * pitch + j]. a and b are one matrix each; col is a multiple of 16, k_begin one of 2048.
/// a_scale_shift: what is added to a row of A to get its row in A's scale buffer. out has room for whole groups of 16
/// columns.
///
/// Rounding: two FP4 operands, or float activations, give the reference's bits (docs/numerics.md, section 8), whatever
/// their scales. All others sum in another order within the reference's bound: c = L + P + 4 (one more for half
/// activations, whose two parts are summed by themselves).
void decode_tile(const Operand& a, int64_t row, int rows, int64_t a_scale_shift, const Operand& b, int64_t col,
                 int cols, int64_t k_begin, int64_t k_end, float* out, int64_t pitch);

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
