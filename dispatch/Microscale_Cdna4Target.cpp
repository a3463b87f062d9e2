#include <Microscale_Target.hpp>

namespace microscale::Impl {
namespace {

class Cdna4Target final : public Target {
 public:
  explicit Cdna4Target(const Kernels* kernels) : Target(kernels) {}
  const char* name() const override { return "cdna4"; }
  const char* description() const override { return "AMD MI350 and MI355"; }
  ExecutionKind execution() const override { return ExecutionKind::hip; }
  Support supports(const Problem&) const override { return {false, "no kernel does this operation yet"}; }
  double cost(const Problem&) const override { return 1.0; }
  Config config(const Problem&) const override { return {}; }
  Support accepts(const Problem&, const Config&) const override { return {false, "there is nothing to configure"}; }
  std::int64_t workspace_bytes(const Problem&, const Config&) const override { return 0; }
  PreparedForm prepared_form(const Problem&) const override { return {}; }
};

}  // namespace

const Backend& cdna4_target(const Kernels* kernels) {
  static const Cdna4Target target(kernels);
  return target;
}

}  // namespace microscale::Impl
