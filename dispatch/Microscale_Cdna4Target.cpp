#include <Microscale_BlockFormat.hpp>
#include <Microscale_Cdna4_Rules.hpp>
#include <Microscale_GpuPlanning.hpp>
#include <Microscale_Target.hpp>

#include <algorithm>

namespace microscale::Impl {
namespace {

bool is_mx(FormatId f) { return f == format_id<MXFP4> || is_mxfp6(f) || is_mxfp8(f); }

const char* unsupported_operand(const Operand& o) {
  if (o.format.block_size == 0) return "scaled MFMA multiplies blocks of both operands; quantize the plain one";
  if (o.format.scale == ScaleType::ue4m3)
    return "scaled MFMA has E8M0 scales of 32 elements; NVFP4 has UE4M3 ones of 16";
  if (!is_mx(o.format)) return "scaled MFMA does not have this format";
  if (o.cols % 128 != 0) return "K is a multiple of 128";
  if (o.scale_layout != ScaleLayout::cdna4 && o.scale_layout != ScaleLayout::linear)
    return "scales are read in layouts cdna4 and linear only";
  if (!is_aligned_16(o)) return "rows of operands are aligned to 16 bytes";
  return nullptr;
}

Cdna4Problem constraints_of(const Problem& p) {
  return {
      bits_per_code(p.a.format), bits_per_code(p.b.format), p.m, p.n, p.k, p.operation == Operation::grouped_matmul};
}

Cdna4Config rules(const Problem& p) {
  const Cdna4Problem on = constraints_of(p);
  if (!on.grouped) {
    Cdna4Config c = cdna4_dense_config(on);
    // Workgroups of a batch fill the machine by themselves.
    if (p.operation == Operation::batched_matmul && c.split_k > 1 && p.c.batch > 1) c.split_k = 1;
    return c;
  }
  const GroupEstimate estimate = estimate_of(p);
  const std::int64_t experts = std::max<std::int64_t>(estimate.experts, 1);
  return cdna4_grouped_config(on, estimate.total_m, estimate.total_m / experts + (estimate.total_m % experts != 0));
}

class Cdna4Target final : public Target {
 public:
  explicit Cdna4Target(const Kernels* kernels) : Target(kernels) {}
  const char* name() const override { return "cdna4"; }
  const char* description() const override {
    return "AMD MI350 and MI355: scaled matrix cores (MFMA); decisions only, no kernels are written yet";
  }
  ExecutionKind execution() const override { return ExecutionKind::hip; }

  Support supports(const Problem& p) const override {
    if (!is_product(p)) return supports_conversion(p, is_mx, ScaleLayout::cdna4);
    for (const Operand* o : {&p.a, &p.b})
      if (const char* reason = unsupported_operand(*o)) return {false, reason};
    const char* reason = unsupported_output(p, is_mx, ScaleLayout::cdna4);
    return {reason == nullptr, reason ? reason : ""};
  }
  double cost(const Problem& p) const override { return planned_cost(p, config(p), device_of(name())); }
  Config config(const Problem& p) const override { return is_product(p) ? to_config(rules(p)) : Config{}; }
  Support accepts(const Problem& p, const Config& config) const override {
    if (!is_product(p)) return {config == Config{}, "there is nothing to configure"};
    if (config.swap_ab) return {false, "operands are not swapped"};
    if (config.stages || config.cluster || config.cluster_n || config.cta_group || config.k_group ||
        config.block_swizzle || config.scheduler_stages || config.accumulator_stages || config.small_n)
      return {false, "stages, clusters and schedulers are not to be chosen"};
    if (p.operation == Operation::batched_matmul && config.split_k > 1) return {false, "a batch does not split K"};
    const Cdna4Problem on = constraints_of(p);
    const char* reason = violated_rule(overridden(rules(p), config), on);
    return {reason == nullptr, reason ? reason : ""};
  }
  std::int64_t workspace_bytes(const Problem& p, const Config& config) const override {
    return is_product(p) ? cdna4_workspace_bytes(overridden(rules(p), config), p.m, p.n) : 0;
  }
  PreparedForm prepared_form(const Problem&) const override { return {}; }
};

}  // namespace

const Backend& cdna4_target(const Kernels* kernels) {
  static const Cdna4Target target(kernels);
  return target;
}

}  // namespace microscale::Impl
