#include <Microscale_Sm100_DenseRules.hpp>

#include <algorithm>
#include <limits>

namespace microscale::Impl {
namespace {

constexpr std::int64_t rows_of_a_block = 128;  // of side M, a multiprocessor

std::int64_t ceil_div(std::int64_t x, std::int64_t y) { return x / y + (x % y != 0); }

/// min(ceil(x / 64) * 64, 256), at least 64.
std::int32_t up_to_256(std::int64_t x) {
  return static_cast<std::int32_t>(std::max<std::int64_t>(ceil_div(std::min<std::int64_t>(x, 256), 64), 1) * 64);
}

/// Without overflow: the largest number instead.
std::int64_t product(std::int64_t x, std::int64_t y) {
  return y != 0 && x > std::numeric_limits<std::int64_t>::max() / y ? std::numeric_limits<std::int64_t>::max() : x * y;
}

Sm100Config from_row(const Sm100DenseRow& row) {
  Sm100Config c;
  c.swap_ab = true;
  c.mma_m = row.mma_m;
  c.mma_n = row.mma_n;
  c.cta_group = c.cluster_m = row.mma_m / 128;
  c.cluster_n = row.cluster_n;
  c.small_bn = row.small_bn;
  c.k_group = row.k_group;
  c.stages = row.stages;
  c.accumulator_stages = row.accumulator_stages;
  c.clc_stages = row.clc_stages;
  c.block_swizzle = row.block_swizzle;
  return c;
}

/// The best tile so far.
struct Tile {
  bool swap_ab = false;
  std::int32_t mma_n = 0;  ///< 0: none yet
  std::int64_t waves = 0;
};

/// Tiles of a pair of multiprocessors for `rows` on side M, from the widest on while they do not take more waves.
void search(Tile& best, std::int64_t rows, std::int64_t cols, bool swap_ab) {
  const std::int32_t widest = up_to_256(cols);
  for (std::int32_t mma_n = widest; mma_n >= 64; mma_n -= 64) {
    const std::int64_t waves = sm100_waves(rows, cols, 256, mma_n, 2);
    if (best.mma_n != 0 && waves > best.waves) return;
    if (best.mma_n == 0 || waves < best.waves || mma_n < best.mma_n) best = {swap_ab, mma_n, waves};
  }
}

}  // namespace

std::span<const Sm100DenseRow> sm100_dense_rows(Sm100Kind kind) {
  switch (kind) {
    case Sm100Kind::mxf4nvf4:
      return NVFP4_TUNED_CONFIGS;
    case Sm100Kind::mxf4:
      return MXFP4_TUNED_CONFIGS;
    case Sm100Kind::mxf8f6f4:
      return MXFP8_TUNED_CONFIGS;
  }
  return {};
}

const Sm100DenseRow* sm100_dense_row(Sm100Kind kind, std::int64_t m, std::int64_t n, std::int64_t k) {
  for (const Sm100DenseRow& row : sm100_dense_rows(kind))
    if (row.n == n && row.k == k && row.least_m <= m && m <= row.most_m) return &row;
  return nullptr;
}

Sm100Config sm100_dense_config(Sm100Kind kind, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (const Sm100DenseRow* row = sm100_dense_row(kind, m, n, k)) return sm100_with_stages(kind, from_row(*row));
  return m <= SMALL_BN_MOST_M ? sm100_small_bn_config(kind, k) : sm100_heuristic_config(kind, m, n, k);
}

Sm100Config sm100_small_bn_config(Sm100Kind kind, std::int64_t k) {
  const std::int64_t iterations = sm100_k_iterations(kind, k);
  Sm100Config c;
  c.swap_ab = true;
  c.mma_n = 8;
  c.small_bn = true;
  c.k_group = iterations % 4 == 0 ? 4 : (iterations % 2 == 0 ? 2 : 1);
  c.block_swizzle = 8;
  return sm100_with_stages(kind, c);
}

Sm100Config sm100_heuristic_config(Sm100Kind kind, std::int64_t m, std::int64_t n, std::int64_t k) {
  Tile tile;
  Sm100Config c;
  if (m < SINGLE_CTA_BELOW_M) {
    tile = {true, 64, sm100_waves(n, m, 128, 64, 1)};
  } else {
    c.cta_group = c.cluster_m = 2;
    search(tile, m, n, false);
    search(tile, n, m, true);
  }
  c.swap_ab = tile.swap_ab;
  c.mma_m = 128 * c.cta_group;
  c.mma_n = tile.mma_n;
  c.k_group = sm100_k_group(c.mma_m, c.mma_n, c.cta_group, sm100_k_iterations(kind, k));
  c.block_swizzle = sm100_block_swizzle(tile.waves, c.swap_ab ? n : m, c.mma_n);
  c.clc_stages = tile.waves <= 1 ? 0 : 2;
  c.accumulator_stages = c.mma_n <= 128 ? 2 : 1;
  return sm100_with_stages(kind, c);
}

std::int64_t sm100_waves(std::int64_t rows, std::int64_t cols, std::int32_t mma_m, std::int32_t mma_n,
                         std::int32_t cta_group) {
  return ceil_div(product(ceil_div(rows, mma_m), ceil_div(cols, mma_n)), SM100_MULTIPROCESSORS / cta_group);
}

std::int32_t sm100_k_group(std::int32_t mma_m, std::int32_t mma_n, std::int32_t cta_group, std::int64_t k_iterations) {
  const std::int32_t tile = mma_m / cta_group * mma_n;
  if (tile <= 64 * 16 && k_iterations % 4 == 0) return 4;
  return tile <= 64 * 96 && k_iterations % 2 == 0 ? 2 : 1;
}

std::int32_t sm100_block_swizzle(std::int64_t waves, std::int64_t rows, std::int32_t mma_n) {
  if (waves < 4) return 0;
  const std::int64_t blocks = std::max<std::int64_t>(ceil_div(rows, rows_of_a_block), 1);
  std::int32_t best = 0;
  std::int64_t best_volume = 0;
  for (const std::int32_t t : {1, 2, 4, 8}) {
    const std::int64_t along_m = ceil_div(SM100_MULTIPROCESSORS, t);
    const std::int64_t along_n = t * ceil_div(along_m, blocks);
    const std::int64_t volume = std::min(along_m, blocks) * rows_of_a_block + along_n * mma_n;
    if (best == 0 || volume < best_volume) {
      best = t;
      best_volume = volume;
    }
  }
  return best;
}

}  // namespace microscale::Impl
