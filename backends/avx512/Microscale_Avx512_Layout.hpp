#ifndef MICROSCALE_AVX512_LAYOUT_HPP
#define MICROSCALE_AVX512_LAYOUT_HPP

#include <Microscale_FormatId.hpp>
#include <Microscale_Macros.hpp>
#include <stdint.h>

// The prepared form of B: codes unchanged, rows taken 16 at a time, so that a vector has the same four bytes of each.
//
//   codes   [ceil(N / 16)][row bytes / 4][16 rows][4 bytes]     row bytes: those of K rounded up to a multiple of 32
//   scales  [ceil(N / 16)][ceil(K / block)][16 rows]
//
// Rows past N and columns past K are zero codes; rows past N have the scale 1. Entries of a batch follow one another, each
// at a multiple of 64 bytes. No vector code here: dispatch asks for the size on every machine, and has therefore a copy of
// its own of what is inline (Microscale_Macros.hpp).
namespace microscale::avx512_layout::inline MICROSCALE_ISA {

inline constexpr int64_t tag = 1;
inline constexpr int64_t rows_of_group = 16;

/// The largest tile of C; half as wide under a gate.
inline constexpr int tile_rows = 256, tile_cols = 192;

struct InterleavedForm {
  int64_t groups, group_bytes, row_blocks;

  constexpr InterleavedForm(FormatId format, int64_t rows, int64_t cols)
      : groups((rows + rows_of_group - 1) / rows_of_group),
        group_bytes((cols + 31) / 32 * 32 * bits_per_code(format) / 8 * rows_of_group),
        row_blocks((cols + format.block_size - 1) / format.block_size) {}

  /// Of the codes of a group and of its scales.
  constexpr int64_t codes_at(int64_t group) const { return group * group_bytes; }
  constexpr int64_t scales_at(int64_t group) const { return groups * group_bytes + group * row_blocks * rows_of_group; }
  constexpr int64_t bytes() const { return (scales_at(groups) + 63) / 64 * 64; }
};

}  // namespace microscale::avx512_layout::inline MICROSCALE_ISA

#endif
