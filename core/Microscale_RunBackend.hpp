#ifndef MICROSCALE_RUNBACKEND_HPP
#define MICROSCALE_RUNBACKEND_HPP

#include <Kokkos_Profiling_ScopedRegion.hpp>
#include <Microscale_Dispatch.hpp>
#include <Microscale_Names.hpp>
#include <Microscale_Native.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace microscale {

/// Who runs one call; bears on speed, never on results beyond the order of sums.
struct DispatchOptions {
  std::string_view backend{};      ///< forced; an error if it cannot run
  Context* context = nullptr;      ///< null: default_context()
  const Config* config = nullptr;  ///< instead of the backend's own choice
  void* workspace = nullptr;       ///< aligned to 64; at least what the plan asks for
  std::int64_t workspace_bytes = 0;
};

namespace Impl {

/// A Problem of the given operation on an instance, without operands.
template <class Exec>
Problem problem_on(const Exec& exec, Operation operation) {
  Problem problem;
  problem.operation = operation;
  problem.execution = execution_kind<Exec>();
  problem.device = device_of(exec);
  problem.concurrency = exec.concurrency();
  return problem;
}

/// Runs the problem by the backend that the plan chooses; false if that is the reference.
template <class Exec>
bool run_by_backend(const Exec& exec, const Problem& problem, const DispatchOptions& options) {
  Context& context = options.context != nullptr ? *options.context : default_context();
  const Plan plan = context.plan(
      problem,
      {.backend = options.backend, .config = options.config, .without_workspace = options.workspace == nullptr});
  if (plan.backend() == nullptr) return false;
  const std::string label =
      std::string("microscale::") + to_string(problem.operation) + "[" + plan.backend()->name() + "]";
  const Kokkos::Profiling::ScopedRegion region(label);
  const NativeInstance<Exec> instance(exec, label);
  plan.run(problem, options.workspace, options.workspace_bytes, instance.native());
  return true;
}

}  // namespace Impl
}  // namespace microscale

#endif
