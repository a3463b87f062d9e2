#include <Microscale_Avx512_Rules.hpp>
#include <Microscale_BlockFormat.hpp>
#include <Microscale_ProblemTraits.hpp>
#include <Microscale_Target.hpp>

namespace microscale::Impl {
namespace {

class Avx512Target final : public Target {
 public:
  explicit Avx512Target(const Kernels* kernels) : Target(kernels) {}
  const char* name() const override { return "avx512"; }
  const char* description() const override { return "x86 processors with AVX-512 (VNNI, BF16, VBMI)"; }
  ExecutionKind execution() const override { return ExecutionKind::host; }
  Support supports(const Problem& problem) const override {
    return is_product(problem) ? avx512_product_supports(problem) : avx512_conversion_supports(problem);
  }
  double cost(const Problem& problem) const override {
    return is_product(problem) ? avx512_product_cost(problem) : avx512_conversion_cost(problem);
  }
  Config config(const Problem& problem) const override {
    return is_product(problem) ? avx512_product_config(problem) : Config{};
  }
  Support accepts(const Problem& problem, const Config& config) const override {
    if (is_product(problem)) return avx512_product_accepts(problem, config);
    return {config == Config{}, "there is nothing to configure"};
  }
  std::int64_t workspace_bytes(const Problem& problem, const Config& config) const override {
    return is_product(problem) ? avx512_product_workspace_bytes(problem, config) : 0;
  }
  PreparedForm prepared_form(const Problem& problem) const override {
    return is_product(problem) ? avx512_product_prepared_form(problem) : PreparedForm{};
  }
};

}  // namespace

bool avx512_has_kernels_for(FormatId f) {
  return f == format_id<NVFP4> || f == format_id<MXFP4> || is_mxfp6(f) || is_mxfp8(f) ||
         f == format_id<MXFP6_E2M3_Bytes> || f == format_id<MXFP6_E3M2_Bytes>;
}

const Backend& avx512_target(const Kernels* kernels) {
  static const Avx512Target target(kernels);
  return target;
}

}  // namespace microscale::Impl
