#include <Microscale_Target.hpp>

namespace microscale::Impl {
namespace {

class Sm100Target final : public Target {
 public:
  explicit Sm100Target(const Kernels* kernels) : Target(kernels) {}
  const char* name() const override { return "sm100"; }
  const char* description() const override { return "NVIDIA Blackwell"; }
  ExecutionKind execution() const override { return ExecutionKind::cuda; }
  Support supports(const Problem&) const override { return {false, "no kernel does this operation yet"}; }
  double cost(const Problem&) const override { return 1.0; }
  Config config(const Problem&) const override { return {}; }
  Support accepts(const Problem&, const Config&) const override { return {false, "there is nothing to configure"}; }
  std::int64_t workspace_bytes(const Problem&, const Config&) const override { return 0; }
  PreparedForm prepared_form(const Problem&) const override { return {}; }
};

}  // namespace

const Backend& sm100_target(const Kernels* kernels) {
  static const Sm100Target target(kernels);
  return target;
}

}  // namespace microscale::Impl
