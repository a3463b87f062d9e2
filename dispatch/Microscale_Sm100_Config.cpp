#include <Microscale_BlockFormat.hpp>
#include <Microscale_Sm100_Config.hpp>

#include <algorithm>
#include <initializer_list>

namespace microscale::Impl {
namespace {

constexpr std::int32_t rows_of_a_block = 128;  // of side M: lanes of tensor memory

bool is_one_of(std::int32_t value, std::initializer_list<std::int32_t> list) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// In containers of a byte, from dense memory.
bool is_f8f6f4(FormatId f) {
  return f == format_id<MXFP8_E4M3> || f == format_id<MXFP8_E5M2> || f == format_id<MXFP6_E2M3> ||
         f == format_id<MXFP6_E3M2> || f == format_id<MXFP4>;
}

/// Scales of a row that a stage has, in words of four: one column of tensor memory for 32 rows.
std::int32_t scale_words(Sm100Kind kind) {
  switch (kind) {
    case Sm100Kind::mxf4nvf4:
      return 4;
    case Sm100Kind::mxf4:
      return 2;
    case Sm100Kind::mxf8f6f4:
      return 1;
  }
  return 4;
}

/// Rows of scales come by 128.
std::int32_t scale_rows(std::int32_t rows) { return (rows + 127) / 128 * 128; }

bool is_legal_n(const Sm100Config& c, bool grouped) {
  if (grouped)
    return c.cta_group == 2 ? is_one_of(c.mma_n, {64, 128, 256}) : is_one_of(c.mma_n, {8, 16, 32, 64, 128, 256});
  if (!c.small_bn) return is_one_of(c.mma_n, {64, 128, 192, 256});
  return is_one_of(c.mma_n, {16, 32, 48, 64, 96, 128, 192, 256}) || (c.cta_group == 1 && is_one_of(c.mma_n, {8, 24}));
}

}  // namespace

const char* to_string(Sm100Kind kind) {
  switch (kind) {
    case Sm100Kind::mxf4nvf4:
      return "mxf4nvf4";
    case Sm100Kind::mxf4:
      return "mxf4";
    case Sm100Kind::mxf8f6f4:
      return "mxf8f6f4";
  }
  return "unknown";
}

std::optional<Sm100Kind> sm100_kind(FormatId a, FormatId b) {
  if (a == format_id<NVFP4> && b == format_id<NVFP4>) return Sm100Kind::mxf4nvf4;
  if (a == format_id<MXFP4> && b == format_id<MXFP4>) return Sm100Kind::mxf4;
  if (is_f8f6f4(a) && is_f8f6f4(b)) return Sm100Kind::mxf8f6f4;
  return {};
}

std::string to_string(const Sm100Config& c) {
  const auto by = [](std::int32_t x, std::int32_t y) { return std::to_string(x) + "x" + std::to_string(y); };
  std::string text = "mma " + by(c.mma_m, c.mma_n) + (c.swap_ab ? " swapped" : "");
  text += ", cta_group " + std::to_string(c.cta_group) + ", cluster " + by(c.cluster_m, c.cluster_n);
  if (c.small_bn) text += ", small_bn";
  text += ", k_group " + std::to_string(c.k_group);
  text += ", stages " + (c.stages > 0 ? std::to_string(c.stages) : "auto");
  text += ", accumulators " + std::to_string(c.accumulator_stages) + ", clc " + std::to_string(c.clc_stages);
  return text + ", swizzle " + std::to_string(c.block_swizzle);
}

std::int32_t sm100_tile_k(Sm100Kind kind) {
  return kind == Sm100Kind::mxf8f6f4 ? SM100_ROW_BYTES : 2 * SM100_ROW_BYTES;
}

std::int64_t sm100_k_iterations(Sm100Kind kind, std::int64_t k) {
  const std::int64_t step = sm100_tile_k(kind);
  return k / step + (k % step != 0);
}

std::int64_t sm100_stage_bytes(Sm100Kind kind, const Sm100Config& c) {
  constexpr std::int64_t barriers = 32;
  const std::int64_t scales_of_a_row = 4 * scale_words(kind);
  const std::int64_t rows = rows_of_a_block + c.mma_n / c.cta_group;                        // side N is shared
  const std::int64_t rows_of_scales = rows_of_a_block + std::int64_t{scale_rows(c.mma_n)};  // but not its scales
  return rows * SM100_ROW_BYTES + rows_of_scales * scales_of_a_row + barriers;
}

std::int64_t sm100_fixed_bytes(const Sm100Config& c) {
  constexpr std::int64_t barriers_and_alignment = 1024;
  const std::int64_t columns = std::min(c.mma_n, 16);  // of C that leave together
  return 2 * rows_of_a_block * columns * 4 + barriers_and_alignment;
}

std::int64_t sm100_tensor_columns(Sm100Kind kind, const Sm100Config& c) {
  const std::int64_t scales = scale_words(kind) * (rows_of_a_block + scale_rows(c.mma_n)) / 32;
  return std::int64_t{c.accumulator_stages} * c.mma_n + c.stages * scales;
}

std::int32_t sm100_automatic_stages(Sm100Kind kind, const Sm100Config& config) {
  Sm100Config c = config;
  const std::int64_t shared = (SM100_SHARED_BYTES - sm100_fixed_bytes(c)) / sm100_stage_bytes(kind, c);
  c.stages = 0;
  const std::int64_t accumulators = sm100_tensor_columns(kind, c);
  c.stages = 1;
  const std::int64_t scales = sm100_tensor_columns(kind, c) - accumulators;
  const std::int64_t fitting = std::min(shared, (SM100_TENSOR_COLUMNS - accumulators) / scales);
  const std::int64_t group = std::max(c.k_group, 1);
  return static_cast<std::int32_t>(std::max<std::int64_t>(fitting, 0) / group * group);
}

Sm100Config sm100_with_stages(Sm100Kind kind, Sm100Config config) {
  if (config.stages <= 0) config.stages = sm100_automatic_stages(kind, config);
  return config;
}

const char* violated_rule(const Sm100Config& c, const Sm100Problem& p) {
  if (c.cta_group != 1 && c.cta_group != 2) return "cta_group is 1 or 2";
  if (c.mma_m != 128 * c.cta_group) return "tile_m is 128 for each of cta_group";
  if (!is_legal_n(c, p.grouped)) return "no instruction of this kernel has this tile_n";
  if (p.grouped && c.cta_group == 2 && !c.swap_ab) return "grouped, cta_group 2 needs swap_ab";
  if (p.grouped && c.small_bn != (c.mma_n < 64)) return "grouped, small_n goes with tile_n below 64";
  if (!is_one_of(c.cluster_m, {1, 2, 4, 8}) || !is_one_of(c.cluster_n, {1, 2, 4, 8}) || c.cluster_m * c.cluster_n > 8)
    return "a cluster has 1, 2, 4 or 8 thread blocks";
  if (c.cluster_m % c.cta_group != 0) return "cluster is a multiple of cta_group";
  if (c.k_group < 1 || c.k_group > 4) return "k_group is 1 to 4";
  if (sm100_k_iterations(p.kind, p.k) % c.k_group != 0) return "k_group divides the stages that K takes";
  if (c.stages < 1) return "there is no room for a stage";
  if (c.stages % c.k_group != 0) return "k_group divides stages";
  if (c.accumulator_stages < 1 || c.accumulator_stages > 2) return "accumulator_stages is 1 or 2";
  if (c.clc_stages < 0 || c.clc_stages > 4) return "scheduler_stages is up to 4";
  if (!is_one_of(c.block_swizzle, {0, 1, 2, 4, 8})) return "block_swizzle is 1, 2, 4 or 8";
  if (c.stages > SM100_SHARED_BYTES / sm100_stage_bytes(p.kind, c) ||
      c.stages * sm100_stage_bytes(p.kind, c) + sm100_fixed_bytes(c) > SM100_SHARED_BYTES)
    return "stages need more shared memory than 232448 bytes";
  if (sm100_tensor_columns(p.kind, c) > SM100_TENSOR_COLUMNS)
    return "accumulators and scales need more than 512 columns of tensor memory";
  return nullptr;
}

Config to_config(const Sm100Config& c, Sm100Kind kind) {
  Config config;
  config.swap_ab = c.swap_ab;
  config.tile_m = c.mma_m;
  config.tile_n = c.mma_n;
  config.tile_k = sm100_tile_k(kind);
  config.stages = c.stages;
  config.cluster = c.cluster_m;
  config.cluster_n = c.cluster_n;
  config.split_k = 1;
  config.cta_group = c.cta_group;
  config.k_group = c.k_group;
  config.block_swizzle = std::max(c.block_swizzle, 1);
  config.scheduler_stages = std::max(c.clc_stages, 1);
  config.accumulator_stages = c.accumulator_stages;
  config.small_n = c.small_bn;
  return config;
}

Sm100Config overridden(const Sm100Config& own, const Config& config, const Sm100Problem& problem) {
  Sm100Config c = own;
  const auto take = [](std::int32_t& member, std::int32_t given) {
    if (given != 0) member = given;
  };
  if (config.swap_ab || config.tile_n != 0 || config.cta_group != 0 || config.tile_m != 0) {
    c.swap_ab = config.swap_ab;
    take(c.mma_n, config.tile_n);
    if (config.cta_group != 0 || config.tile_m != 0)
      c.cta_group = config.cta_group != 0 ? config.cta_group : config.tile_m / 128;
    else if (problem.grouped && (!c.swap_ab || c.mma_n < 64))
      c.cta_group = 1;
    else if (!problem.grouped && c.mma_n < 16)
      c.cta_group = 1;
    c.mma_m = config.tile_m != 0 ? config.tile_m : (c.cta_group == 2 ? 256 : 128);
    c.small_bn = c.mma_n < 64 || c.mma_n == 96;
    // What suits another tile need not suit this one.
    c.cluster_m = c.cta_group;
    c.cluster_n = 1;
    c.k_group = 1;
    c.accumulator_stages = c.mma_n > 128 ? 1 : 2;
  }
  if (!problem.grouped) c.small_bn |= config.small_n;
  take(c.cluster_m, config.cluster);
  take(c.cluster_n, config.cluster_n);
  take(c.k_group, config.k_group);
  take(c.accumulator_stages, config.accumulator_stages);
  take(c.block_swizzle, config.block_swizzle);
  if (config.scheduler_stages != 0) c.clc_stages = config.scheduler_stages == 1 ? 0 : config.scheduler_stages;
  c.stages = config.stages;
  const bool countable = c.cta_group == 1 || c.cta_group == 2;
  return countable && c.mma_n > 0 && c.mma_n <= 256 ? sm100_with_stages(problem.kind, c) : c;
}

}  // namespace microscale::Impl
