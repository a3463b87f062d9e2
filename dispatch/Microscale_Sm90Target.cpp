#include <Microscale_BlockFormat.hpp>
#include <Microscale_GpuPlanning.hpp>
#include <Microscale_Target.hpp>

#include <algorithm>

namespace microscale::Impl {
namespace {

// Hopper has no block-scaled instruction: a code times its scales fits bf16, so that tiles are widened in shared memory
// and multiplied by wgmma. A tile has 128 rows on side M (two warp groups of 64) and tile_n columns.
constexpr std::int32_t tile_m = 128, tile_k = 64;
constexpr std::int64_t shared_bytes = 232448;  // 227 KiB, the most a thread block can have

bool is_block_format(FormatId f) {
  return f == format_id<NVFP4> || f == format_id<MXFP4> || is_mxfp6(f) || is_mxfp8(f);
}

/// Stages that fit: codes (or bf16) of both operands as they are loaded, beside one widened tile of each.
std::int32_t stages_for(const Problem& p, std::int32_t tile_n, bool swap) {
  const std::int64_t rows_a = swap ? tile_n : tile_m, rows_b = swap ? tile_m : tile_n;
  const auto loaded = [](std::int64_t rows, FormatId f) {
    const std::int64_t scales = f.block_size > 0 ? (tile_k + f.block_size - 1) / f.block_size : 0;
    return rows * (tile_k * bits_per_code(f) / 8 + scales);
  };
  const std::int64_t stage = loaded(rows_a, p.a.format) + loaded(rows_b, p.b.format) + 32;  // and barriers
  const std::int64_t widened = 2 * (tile_m + std::int64_t{tile_n}) * tile_k * 2;            // two of them
  const std::int64_t output = std::int64_t{tile_m} * 16 * 4 + 1024;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>((shared_bytes - widened - output) / stage, 0, 8));
}

std::int64_t rows_of_a_product(const Problem& p) {
  if (p.operation != Operation::grouped_matmul) return p.m;
  const GroupEstimate estimate = estimate_of(p);
  return estimate.total_m / std::max<std::int64_t>(estimate.experts, 1) + 1;
}

const char* unsupported_operand(const Operand& o) {
  if (o.format == float32_id || o.format == float16_id)
    return "float and half do not fit bf16, in which Hopper multiplies";
  if (o.format != bfloat16_id && !is_block_format(o.format)) return "no kernel for this format of an operand";
  if (o.format.block_size == 0 && o.col_stride != 1) return "rows of a plain operand are not contiguous";
  if (o.format.block_size > 0 && o.scale_layout != ScaleLayout::linear && o.scale_layout != ScaleLayout::tcgen)
    return "scales are read in layouts linear and tcgen only";
  if (!is_aligned_16(o)) return "rows of operands are aligned to 16 bytes";
  return nullptr;
}

class Sm90Target final : public Target {
 public:
  explicit Sm90Target(const Kernels* kernels) : Target(kernels) {}
  const char* name() const override { return "sm90"; }
  const char* description() const override {
    return "NVIDIA Hopper: block formats widened to bf16 (wgmma); decisions only, no kernels are written yet";
  }
  ExecutionKind execution() const override { return ExecutionKind::cuda; }

  Support supports(const Problem& p) const override {
    if (!is_product(p)) return supports_conversion(p, is_block_format, ScaleLayout::tcgen);
    for (const Operand* o : {&p.a, &p.b})
      if (const char* reason = unsupported_operand(*o)) return {false, reason};
    const char* reason = unsupported_output(p, is_block_format, ScaleLayout::tcgen);
    return {reason == nullptr, reason ? reason : ""};
  }
  double cost(const Problem& p) const override { return planned_cost(p, config(p), device_of(name())); }
  Config config(const Problem& p) const override {
    if (!is_product(p)) return {};
    Config c;
    const std::int64_t rows = rows_of_a_product(p);
    // Few rows go on side N, where an instruction can be as narrow as 8.
    c.swap_ab = rows <= 64;
    c.tile_m = tile_m;
    c.tile_n = c.swap_ab ? (rows <= 8 ? 8 : (rows <= 16 ? 16 : (rows <= 32 ? 32 : 64))) : 128;
    c.tile_k = tile_k;
    c.split_k = c.cluster = c.cluster_n = 1;
    c.stages = stages_for(p, c.tile_n, c.swap_ab);
    return c;
  }
  Support accepts(const Problem& p, const Config& config) const override {
    if (!is_product(p)) return {config == Config{}, "there is nothing to configure"};
    Config others = config;
    others.tile_m = others.tile_n = others.tile_k = others.stages = 0;
    others.swap_ab = false;
    for (std::int32_t* one : {&others.split_k, &others.cluster, &others.cluster_n})
      if (*one == 1) *one = 0;
    if (others != Config{}) return {false, "there are only tile_n, stages and swap_ab to choose"};
    if (config.tile_m != 0 && config.tile_m != tile_m) return {false, "tile_m is 128"};
    if (config.tile_k != 0 && config.tile_k != tile_k) return {false, "tile_k is 64"};
    if (config.tile_n < 0 || config.tile_n > 256 || config.tile_n % 8 != 0)
      return {false, "tile_n is a multiple of 8 up to 256"};
    const std::int32_t tile_n = config.tile_n != 0 ? config.tile_n : this->config(p).tile_n;
    const std::int32_t most = stages_for(p, tile_n, config.swap_ab);
    if (most < 1) return {false, "there is no room for a stage"};
    return {config.stages <= most, "stages need more shared memory than 232448 bytes"};
  }
  std::int64_t workspace_bytes(const Problem&, const Config&) const override { return 0; }
  PreparedForm prepared_form(const Problem&) const override { return {}; }
};

}  // namespace

const Backend& sm90_target(const Kernels* kernels) {
  static const Sm90Target target(kernels);
  return target;
}

}  // namespace microscale::Impl
