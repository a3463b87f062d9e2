#ifndef MICROSCALE_CHOOSING_HPP
#define MICROSCALE_CHOOSING_HPP

#include <Microscale_Dispatch.hpp>
#include <Microscale_Forcing.hpp>
#include <Microscale_Tuning.hpp>

#include <string>
#include <vector>

namespace microscale::Impl {

/// A backend as a Context knows it, with what the machine said about it.
struct KnownBackend {
  std::string_view name;
  const Backend* backend = nullptr;  ///< null: there is nothing of it; may be there to plan though not compiled
  std::string unusable;              ///< why it is not compiled or not available; empty if it can be used
  bool compiled = false;
};

/// Everything that bears on a choice, beside the problem and the call's options.
struct Settings {
  std::vector<KnownBackend> backends;  ///< in order of preference, without the reference
  Forcing forcing;
  Tuning tuning;
  Context::Policy policy;
};

/// Asks the machine about a backend.
KnownBackend known_backend(const Backend& backend);

/// The estimated seconds of the reference kernels: what a backend must beat to be chosen.
double reference_cost(const Problem& problem);

/// The problem as it would be on the hardware that options.target is for; as it is if there is no such target.
Problem on_target(const Settings& settings, const Problem& problem, const ChoiceOptions& options);

/// The decision. `problem` is planned, and on the target; never throws because of what was decided (see Choice::error).
Choice choose(const Settings& settings, const Problem& problem, const ChoiceOptions& options);

}  // namespace microscale::Impl

#endif
