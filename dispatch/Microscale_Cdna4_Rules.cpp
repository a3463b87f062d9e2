#include <Microscale_Cdna4_Rules.hpp>

#include <algorithm>

namespace microscale::Impl {
namespace {

constexpr std::int32_t wave_lanes = 64;
constexpr std::int32_t mfma_side = 16;
constexpr std::int32_t mfma_k = 128;

std::int64_t ceil_div(std::int64_t x, std::int64_t y) { return x / y + (x % y != 0); }

std::int64_t waves_of(const Cdna4Config& c) { return std::int64_t{c.bm / c.wm} * (c.bn / c.wn); }

/// 0 and below are no tile, and no number here needs to be larger than this one.
bool is_size(std::int32_t x) { return x > 0 && x <= 1024; }

}  // namespace

std::string to_string(const Cdna4Config& c) {
  const auto number = [](std::int32_t x) { return std::to_string(x); };
  std::string text = number(c.bm) + "x" + number(c.bn) + "x" + number(c.bk) + ", waves " + number(c.wm) + "x" +
                     number(c.wn) + ", split_k " + number(c.split_k);
  text += c.groups_per_cu > 0 ? ", persistent " + number(c.groups_per_cu) : ", a workgroup a tile";
  if (c.streaming) text += ", streaming";
  if (c.deep_prefetch) text += ", deep_prefetch";
  if (c.direct_b) text += ", direct_b";
  return text;
}

std::int64_t cdna4_lds_bytes(const Cdna4Config& c, const Cdna4Problem& p) {
  const std::int64_t row_a = std::int64_t{c.bk} * p.bits_a / 8, row_b = std::int64_t{c.bk} * p.bits_b / 8;
  if (c.direct_b) return (c.deep_prefetch ? 3 : 2) * c.bm * row_a;
  return c.bm * row_a + c.bn * row_b + std::int64_t{c.bm + c.bn} * (c.bk / 32);
}

std::int64_t cdna4_workspace_bytes(const Cdna4Config& c, std::int64_t m, std::int64_t n) {
  return c.split_k > 1 ? 4 * c.split_k * m * n : 0;
}

const char* violated_rule(const Cdna4Config& c, const Cdna4Problem& p) {
  if (!is_size(c.bm) || !is_size(c.bn) || !is_size(c.bk) || !is_size(c.wm) || !is_size(c.wn))
    return "tiles are from 1 to 1024";
  if (c.wm % mfma_side != 0 || c.wn % mfma_side != 0) return "warp_m and warp_n are multiples of 16";
  if (c.bm % c.wm != 0 || c.bn % c.wn != 0) return "warp_m divides tile_m, and warp_n tile_n";
  if (c.bk % mfma_k != 0) return "tile_k is a multiple of 128";
  if (p.k % c.bk != 0) return "tile_k divides K";
  if (waves_of(c) * wave_lanes > 1024) return "a workgroup has at most 16 waves";
  if (c.split_k < 1) return "split_k is at least 1";
  if (c.direct_b) {
    if (!p.grouped) return "only the grouped kernel takes b from memory to registers";
    if (c.wm != c.bm) return "warp_m is tile_m";
    if (c.bm != 16 && c.bm % 32 != 0) return "tile_m is 16 or a multiple of 32";
    if (c.wn != 16 && c.wn % 32 != 0) return "warp_n is 16 or a multiple of 32";
    if (c.bk % 256 != 0) return "tile_k is a multiple of 256";
    if (p.k % 512 != 0) return "K is a multiple of 512";
    if (p.n % 32 != 0) return "N is a multiple of 32";
    if (c.groups_per_cu < 0 || c.groups_per_cu > 2) return "groups_per_unit is 1 or 2";
    if (c.split_k != 1) return "the grouped kernel does not split K";
  } else {
    if (c.wm > 4 * mfma_side || c.wn > 4 * mfma_side) return "a wave has at most 4 x 4 MFMAs";
    // All threads load pieces of 16 bytes, at most one row each.
    if (waves_of(c) * wave_lanes > std::int64_t{c.bm} * (std::int64_t{c.bk} * p.bits_a / 8 / 16))
      return "more threads than pieces of a tile of a";
    if (c.groups_per_cu != 0 || c.streaming || c.deep_prefetch) return "only the grouped kernel is persistent";
    if (c.split_k > 1) {
      if (p.grouped) return "the grouped kernel does not split K";
      if (p.k / c.bk % c.split_k != 0) return "split_k divides the tiles along K";
      if (p.k / c.bk / c.split_k < 2) return "a part of K has at least 2 tiles";
      if (p.m > 0 && p.n > 0 && p.m > CDNA4_WORKSPACE_LIMIT / 4 / c.split_k / p.n)
        return "partial sums need more than 128 MiB";
    }
  }
  if (cdna4_lds_bytes(c, p) > CDNA4_LDS_BYTES) return "tiles need more LDS than 160 KiB";
  return nullptr;
}

std::int32_t cdna4_split_count(std::int64_t n, std::int64_t k) {
  constexpr std::int64_t tile_k = 256, most_groups = 2 * CDNA4_UNITS;
  if (k <= 0 || n <= 0 || k % tile_k != 0) return 1;
  const std::int64_t tiles = k / tile_k;
  for (std::int64_t s = std::min(tiles / 2, most_groups / std::min(ceil_div(n, 128), most_groups)); s >= 2; --s)
    if (tiles % s == 0 && ceil_div(n, 128) <= most_groups / s) return static_cast<std::int32_t>(s);
  return 1;
}

Cdna4Config cdna4_dense_config(const Cdna4Problem& p) {
  if (p.bits_a == 8 && p.bits_b == 8)
    for (const Cdna4DenseRow& row : MXFP8_TUNED_TILES)
      if (row.n == p.n && row.k == p.k && p.m <= row.most_m) return {row.bm, row.bn, row.bk, row.wm, row.wn};
  const std::int32_t splits = cdna4_split_count(p.n, p.k);
  // Splitting K costs a second pass, which one kernel of narrow tiles does without if they fill the machine.
  if (p.m <= 16 && ceil_div(p.n, 32) >= CDNA4_UNITS && p.k <= 3072 && p.k % 512 == 0) return {16, 32, 512, 16, 16};
  if (p.m <= 16 && splits > 1) return {16, 128, 256, 16, 64, splits};
  if (p.m <= 64 && splits > 1) return {64, 128, 256, 64, 32, splits};
  if (p.m <= 64 && p.k % 512 == 0) return {64, 32, 512, 64, 32};
  return {128, 128, 128, 64, 64};
}

Cdna4Config cdna4_grouped_config(const Cdna4Problem& p, std::int64_t estimated_total_m,
                                 std::int64_t max_rows_of_an_expert) {
  if (p.k % 512 != 0 || p.n % 32 != 0) {
    if (max_rows_of_an_expert <= 64 && p.k % 512 == 0) return {64, 128, 512, 64, 64};
    return {128, 128, 128, 64, 64};
  }
  const std::int64_t estimate = std::max<std::int64_t>(estimated_total_m, 0);
  for (const Cdna4GroupedRow& row : CDNA4_GROUPED_BANDS)
    if (row.n == p.n && row.k == p.k && row.least_m <= estimate && estimate <= row.most_m)
      return {row.bm, row.bn, row.bk, row.bm, row.wn, 1, row.groups_per_cu, row.streaming, row.deep_prefetch, true};
  return {64, 128, 512, 64, 64, 1, estimate < PERSISTENT_BELOW_M ? 2 : 0, false, false, true};
}

Config to_config(const Cdna4Config& c) {
  Config config;
  config.tile_m = c.bm;
  config.tile_n = c.bn;
  config.tile_k = c.bk;
  config.split_k = c.split_k;
  config.warp_m = c.wm;
  config.warp_n = c.wn;
  config.groups_per_unit = c.groups_per_cu;
  config.persistent = c.groups_per_cu > 0;
  config.streaming = c.streaming;
  config.deep_prefetch = c.deep_prefetch;
  return config;
}

Cdna4Config overridden(const Cdna4Config& own, const Config& config) {
  Cdna4Config c = own;
  const auto take = [](std::int32_t& member, std::int32_t given) {
    if (given != 0) member = given;
  };
  if (config.tile_m != 0 || config.tile_n != 0 || config.tile_k != 0) {
    take(c.bm, config.tile_m);
    take(c.bn, config.tile_n);
    take(c.bk, config.tile_k);
    c.wm = own.direct_b ? c.bm : std::min(c.bm, 64);
    c.wn = std::min(c.bn, 64);
    c.split_k = 1;
    c.groups_per_cu = !config.persistent ? 0 : (config.groups_per_unit != 0 ? config.groups_per_unit : 2);
    c.streaming = config.streaming;
    c.deep_prefetch = config.deep_prefetch;
  } else {
    take(c.groups_per_cu, config.groups_per_unit);
    c.streaming |= config.streaming;
    c.deep_prefetch |= config.deep_prefetch;
  }
  take(c.wm, config.warp_m);
  take(c.wn, config.warp_n);
  take(c.split_k, config.split_k);
  return c;
}

}  // namespace microscale::Impl
