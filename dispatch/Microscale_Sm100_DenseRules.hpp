#ifndef MICROSCALE_SM100_DENSERULES_HPP
#define MICROSCALE_SM100_DENSERULES_HPP

#include <Microscale_Sm100_Config.hpp>

#include <cstdint>
#include <span>

// How a dense block-scaled matmul is tiled on Blackwell. In this order: a tuned row, the kernel for few rows, a search
// for few waves of small tiles. Rows and rules are those of Modular's block_scaled_matmul, measured on B200.
// docs/dispatch.md says how to add a row.
namespace microscale::Impl {

/// The configuration of weights of n x k for m from `least_m` to `most_m`, both included. Every row swaps.
struct Sm100DenseRow {
  std::int64_t n;
  std::int64_t k;
  std::int64_t least_m;
  std::int64_t most_m;
  std::int32_t mma_m;  ///< 128 for one multiprocessor, 256 for a pair
  std::int32_t mma_n;
  std::int32_t cluster_n;
  bool small_bn;
  std::int32_t k_group;
  std::int32_t stages;  ///< 0: as many as fit
  std::int32_t accumulator_stages;
  std::int32_t clc_stages;
  std::int32_t block_swizzle;
};

// The first row that fits counts. Where a source leaves a column open, it is that of the first NVFP4 row (small_bn), or
// what the search would set (otherwise).
inline constexpr Sm100DenseRow NVFP4_TUNED_CONFIGS[] = {
    // n, k, m from, to, mma m, n, cluster n, small_bn, k_group, stages, accumulators, clc, swizzle
    {18432, 7168, 1, 16, 256, 16, 1, true, 2, 0, 1, 0, 8},                                                          //
    {18432, 7168, 17, 32, 256, 32, 1, true, 2, 0, 1, 0, 8},                                                         //
    {18432, 7168, 33, 64, 256, 64, 1, true, 2, 0, 2, 0, 8},                                                         //
    {18432, 7168, 65, 68, 256, 96, 1, true, 2, 0, 2, 0, 8},                                                         //
    {4096, 7168, 32, 128, 256, 64, 2, false, 1, 0, 2, 0, 0},                                                        //
    {7168, 8192, 65, 128, 256, 64, 2, false, 1, 0, 2, 0, 0},                                                        //
    {7168, 18432, 2, 31, 256, 64, 1, false, 1, 0, 2, 0, 0},                                                         //
    {7168, 18432, 64, 128, 256, 64, 2, false, 1, 0, 2, 0, 0}, {36864, 7168, 1, 8, 128, 8, 1, true, 2, 8, 2, 2, 8},  //
    {36864, 7168, 9, 16, 128, 16, 1, true, 2, 8, 2, 2, 8},                                                          //
    {36864, 7168, 17, 24, 128, 24, 1, true, 2, 8, 2, 2, 8},                                                         //
    {36864, 7168, 25, 32, 128, 32, 1, true, 2, 8, 2, 2, 8},                                                         //
    {5376, 21504, 1, 1, 256, 16, 1, true, 2, 0, 1, 0, 8},                                                           //
    {43008, 5376, 1, 1, 128, 8, 1, true, 3, 0, 1, 0, 8},                                                            //
};
inline constexpr Sm100DenseRow MXFP4_TUNED_CONFIGS[] = {{7168, 16384, 1, 1, 256, 64, 1, false, 1, 0, 2, 0, 0}};
inline constexpr Sm100DenseRow MXFP8_TUNED_CONFIGS[] = {{7168, 16384, 1, 1, 256, 64, 1, false, 1, 0, 2, 0, 0}};

std::span<const Sm100DenseRow> sm100_dense_rows(Sm100Kind kind);

/// The first row for this shape, or null.
const Sm100DenseRow* sm100_dense_row(Sm100Kind kind, std::int64_t m, std::int64_t n, std::int64_t k);

/// The most rows of A that are left to the kernel for few rows.
inline constexpr std::int64_t SMALL_BN_MOST_M = 16;

/// A shape in which one multiprocessor is enough for a tile of the search.
inline constexpr std::int64_t SINGLE_CTA_BELOW_M = 32;

/// The rule: never without an answer. Extents may be 0.
Sm100Config sm100_dense_config(Sm100Kind kind, std::int64_t m, std::int64_t n, std::int64_t k);

// The steps of the rule.

/// The kernel for few rows: weights on side M, 8 rows of A on side N.
Sm100Config sm100_small_bn_config(Sm100Kind kind, std::int64_t k);

/// The search for the fewest waves and, among those, the smallest tile.
Sm100Config sm100_heuristic_config(Sm100Kind kind, std::int64_t m, std::int64_t n, std::int64_t k);

/// Rounds in which 148 multiprocessors, `cta_group` a tile, do tiles of `mma_m` x `mma_n` for `rows` x `cols`.
std::int64_t sm100_waves(std::int64_t rows, std::int64_t cols, std::int32_t mma_m, std::int32_t mma_n,
                         std::int32_t cta_group);

/// 2 or 4 for small tiles of a multiprocessor, where they divide the stages that K takes; else 1.
std::int32_t sm100_k_group(std::int32_t mma_m, std::int32_t mma_n, std::int32_t cta_group, std::int64_t k_iterations);

/// 0 below 4 waves; else the one of 1, 2, 4 and 8 with which a wave reads the fewest rows, `rows` being on side M.
std::int32_t sm100_block_swizzle(std::int64_t waves, std::int64_t rows, std::int32_t mma_n);

}  // namespace microscale::Impl

#endif
