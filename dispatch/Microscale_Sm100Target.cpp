#include <Microscale_BlockFormat.hpp>
#include <Microscale_GpuPlanning.hpp>
#include <Microscale_Sm100_DenseRules.hpp>
#include <Microscale_Sm100_GroupedRules.hpp>
#include <Microscale_Target.hpp>

namespace microscale::Impl {
namespace {

bool is_fp4_or_fp8(FormatId f) { return f == format_id<NVFP4> || f == format_id<MXFP4> || is_mxfp8(f); }

const char* unsupported_pair(FormatId a, FormatId b) {
  if (a.block_size == 0 || b.block_size == 0)
    return "tensor cores scale blocks of both operands; quantize the plain one";
  if ((a.scale == ScaleType::ue4m3) != (b.scale == ScaleType::ue4m3))
    return "no instruction multiplies blocks of UE4M3 scales by blocks of E8M0 scales";
  return "no instruction multiplies these two formats";
}

/// What an operand is loaded by (TMA) and its scales need; null if it is as it must be.
const char* unreadable(const Operand& o, Sm100Kind kind) {
  if (o.scale_layout != ScaleLayout::tcgen) return "scales are read in layout tcgen only (interleave_scales makes it)";
  if (!is_aligned_16(o)) return "rows of operands are aligned to 16 bytes";
  if (kind == Sm100Kind::mxf8f6f4 && bits_per_code(o.format) < 8 && o.cols % 128 != 0)
    return "TMA widens FP4 and FP6 to bytes where K is a multiple of 128";
  return nullptr;
}

Sm100Problem constraints_of(const Problem& p) {
  return {*sm100_kind(p.a.format, p.b.format), p.k, p.operation == Operation::grouped_matmul};
}

Sm100Config rules(const Problem& p) {
  const Sm100Problem on = constraints_of(p);
  if (!on.grouped) return sm100_dense_config(on.kind, p.m, p.n, p.k);
  const GroupEstimate estimate = estimate_of(p);
  return sm100_grouped_config(on.kind, sm100_grouped_choice(on.kind, p.n, p.k, estimate.total_m, estimate.experts));
}

class Sm100Target final : public Target {
 public:
  explicit Sm100Target(const Kernels* kernels) : Target(kernels) {}
  const char* name() const override { return "sm100"; }
  const char* description() const override {
    return "NVIDIA Blackwell: block-scaled tensor cores (tcgen05); decisions only, no kernels are written yet";
  }
  ExecutionKind execution() const override { return ExecutionKind::cuda; }

  Support supports(const Problem& p) const override {
    if (!is_product(p)) return supports_conversion(p, is_fp4_or_fp8, ScaleLayout::tcgen);
    const auto kind = sm100_kind(p.a.format, p.b.format);
    if (!kind) return {false, unsupported_pair(p.a.format, p.b.format)};
    for (const Operand* o : {&p.a, &p.b})
      if (const char* reason = unreadable(*o, *kind)) return {false, reason};
    const char* reason = unsupported_output(p, is_fp4_or_fp8, ScaleLayout::tcgen);
    return {reason == nullptr, reason ? reason : ""};
  }
  double cost(const Problem& p) const override { return planned_cost(p, config(p), device_of(name())); }
  Config config(const Problem& p) const override {
    return is_product(p) ? to_config(rules(p), constraints_of(p).kind) : Config{};
  }
  Support accepts(const Problem& p, const Config& config) const override {
    if (!is_product(p)) return {config == Config{}, "there is nothing to configure"};
    const Sm100Problem on = constraints_of(p);
    if (config.split_k != 0 && config.split_k != 1) return {false, "K is not split"};
    if (config.tile_k != 0 && config.tile_k != sm100_tile_k(on.kind))
      return {false, on.kind == Sm100Kind::mxf8f6f4 ? "tile_k is 128" : "tile_k is 256"};
    if (config.warp_m || config.warp_n || config.groups_per_unit || config.persistent || config.streaming ||
        config.deep_prefetch)
      return {false, "warps, residence and caching are not to be chosen"};
    const char* reason = violated_rule(overridden(rules(p), config, on), on);
    return {reason == nullptr, reason ? reason : ""};
  }
  std::int64_t candidates(const Problem& p, Config* out, std::int64_t capacity) const override {
    std::int64_t count = Target::candidates(p, out, capacity);
    // What MX formats had before they had regimes.
    if (p.operation != Operation::grouped_matmul || constraints_of(p).kind == Sm100Kind::mxf4nvf4) return count;
    if (count < capacity)
      out[count] = to_config(sm100_grouped_config(constraints_of(p).kind, MX_FIXED), constraints_of(p).kind);
    return count + 1;
  }
  std::int64_t workspace_bytes(const Problem&, const Config&) const override { return 0; }
  PreparedForm prepared_form(const Problem&) const override { return {}; }
};

}  // namespace

const Backend& sm100_target(const Kernels* kernels) {
  static const Sm100Target target(kernels);
  return target;
}

}  // namespace microscale::Impl
