#ifndef MICROSCALE_DISPATCH_HPP
#define MICROSCALE_DISPATCH_HPP

#include <Microscale_Interface.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Who runs an operation. docs/dispatch.md says how the choice is made and how to influence it. Nothing here knows
// Kokkos or what is compiled under which flags: names are outside the inline namespace of Microscale_Macros.hpp.
namespace microscale {

namespace Impl {
struct ContextState;
struct PlanState;
}  // namespace Impl

/// The name that forces the portable Kokkos kernels, which are no Backend and always last in every list.
inline constexpr std::string_view reference_name = "reference";

struct BackendInfo {
  std::string_view name;
  std::string_view description;
  bool compiled = false;    ///< part of this build
  bool available = false;   ///< this machine can run it
  std::string_view reason;  ///< why it is not compiled or not available; empty if it is both
};

/// All backends that the project knows, in order of preference, the reference last. Asks the machine once, at the first
/// call. May be called by any thread; the span is valid for the life of the program.
std::span<const BackendInfo> backends();

/// What a caller asks of the choice, beside the problem.
struct ChoiceOptions {
  std::string_view backend{};      ///< this one and no other ("reference" too); beats what the Context forces
  const Config* config = nullptr;  ///< instead of what the backend would pick; 0 in it means automatic
  /// The choice is for Plan::prepare: every backend that has a prepared form of b answers as if b were in it already.
  bool preparing = false;
  /// The call lends no workspace: unless it is forced, a backend that needs some is not chosen.
  bool without_workspace = false;
  /// For choose() and explain(): as if this backend were built and the problem ran on the hardware that it is for.
  std::string_view target{};
};

/// What one backend answered to a problem.
struct Candidate {
  std::string_view name;
  const Backend* backend = nullptr;  ///< null: the reference, or a backend of which there is nothing yet
  bool able = false;
  std::string reason;  ///< why it is not able
  double cost = -1.0;  ///< estimated seconds; negative: not asked, because it cannot do the problem
};

enum class ConfigSource : std::uint8_t {
  none,     ///< the reference, which has no tiles
  backend,  ///< its tables or rules
  tuning,   ///< an entry of what Context::load_tuning() and its like loaded
  caller,   ///< ChoiceOptions::config
  ignored   ///< there was an override, and the reference runs
};

/// What was decided for a problem, and why.
struct Choice {
  const Backend* backend = nullptr;  ///< null: the reference
  std::string_view name = reference_name;
  std::string why;
  std::string forced_by;  ///< who forced the backend; empty if nobody did
  Config config{};
  ConfigSource config_source = ConfigSource::none;
  std::string tuning;  ///< which entry the configuration is from, or which were ignored and why; empty if none fits
  std::int64_t workspace_bytes = 0;
  PreparedForm prepared_form{};       ///< of b, if ChoiceOptions::preparing
  std::vector<Candidate> candidates;  ///< in order of preference, the reference last
  std::string error;                  ///< why the call would throw; empty if it would not
  bool error_is_argument = false;     ///< std::invalid_argument, otherwise std::runtime_error
};

/// A choice with its problem, as text and as data.
struct Explanation {
  Problem problem{};  ///< as it was planned: no pointer in it may be followed
  Choice choice{};

  /// Several lines: the problem, the backend and why it, configuration, workspace, and what every other one answered.
  std::string to_string() const;
  /// The same as one JSON object.
  std::string to_json() const;
};

/// What was decided, ready to be run any number of times. Cheap to copy; all members may be called by several threads
/// at once. A default one stands for the reference.
class Plan {
 public:
  Plan() = default;

  /// Null: the caller runs the reference.
  const Backend* backend() const;
  /// Bytes of workspace that run() needs, aligned to 64.
  std::int64_t workspace_bytes() const;
  const Choice& choice() const;

  /// Runs the problem asynchronously on the native instance (the host kind returns when done). `problem` is that of the
  /// plan up to the data: other addresses of no smaller alignment, another alpha. Throws, before anything is launched,
  /// std::invalid_argument if it is not, if the workspace is too small or not aligned, or if `native` is of another
  /// kind or device; std::logic_error if the plan is the reference's; std::runtime_error naming backend, operation and
  /// the message if the backend reports a failure.
  void run(const Problem& problem, void* workspace, std::int64_t workspace_bytes, const Native& native) const;

  /// For plans made with ChoiceOptions::preparing: bytes of the prepared form of b; 0 if it has none and b is used as
  /// it is.
  std::int64_t prepared_bytes() const;
  /// Writes the prepared form of problem.b to `destination` (prepared_bytes(), aligned to 64), asynchronously as run()
  /// does, and returns b with that form beside the original. Returns problem.b as it is if there is no prepared form.
  /// To free the original, set its `data` and `scales` to null and `original_dropped` to true. Throws as run() does.
  Operand prepare(const Problem& problem, void* destination, std::int64_t bytes, const Native& native) const;

 private:
  friend class Context;
  explicit Plan(std::shared_ptr<const Impl::PlanState> state) : m_state(std::move(state)) {}

  std::shared_ptr<const Impl::PlanState> m_state;
};

/// Chooses, under settings of its own, and remembers its latest plans. All members may be called by several threads at
/// once; settings apply to the plans made after they return.
class Context {
 public:
  /// Gets the problem and what would be chosen by cost; returns the name of another candidate, or an empty one to
  /// agree. It is asked once for each plan that is made, not for each call, and possibly by several threads at once.
  using Policy = std::function<std::string_view(const Problem&, const Choice&)>;

  /// Reads MICROSCALE_FORCE_BACKEND and MICROSCALE_TUNING_FILE, as the two functions ..._from_environment() do.
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// The decision for a problem; from the cache if it was made before. Costs nothing while no backend is compiled and
  /// nothing is set. Throws std::runtime_error if a forced backend (or one named by the policy) does not exist or
  /// cannot run the problem, or if b has only a prepared form that none can use; std::invalid_argument if the chosen
  /// backend does not accept the configuration. The texts name operation, backend and reason.
  Plan plan(const Problem& problem, const ChoiceOptions& options = {});

  /// The same decision made afresh, where an error is a part of the answer instead of thrown. With
  /// ChoiceOptions::target, which plan() refuses, on the kind of hardware that the target is for.
  Choice choose(const Problem& problem, const ChoiceOptions& options = {}) const;
  Explanation explain(const Problem& problem, const ChoiceOptions& options = {}) const;

  /// Those of microscale::backends(), then the added ones, then the reference.
  std::vector<BackendInfo> backends() const;

  /// Adds a backend of the application's, which must outlive the Context. Throws std::invalid_argument if its name is
  /// taken or has other characters than lower-case letters, digits and underscores.
  void add_backend(const Backend& backend);

  /// Forces backends from here on: a name, or `op=name,op=name...`, or both (`name,op=name`); an empty text forces
  /// nothing. Replaces what was forced before, by the environment too. Throws std::invalid_argument, changing nothing,
  /// for malformed text and unknown operations; unknown backends are reported when an operation asks for them.
  void force(std::string_view text);
  /// The same with what MICROSCALE_FORCE_BACKEND says now; otherwise it is read only once, by the constructor.
  void force_from_environment();

  /// Has configurations come from measured ones where an entry fits the problem, the call gives none and the backend
  /// accepts it: speed may change, results beyond the order of sums may not. Replaces what was loaded before; an empty
  /// text loads nothing. docs/dispatch.md has the grammar. Throws std::invalid_argument, changing nothing, that names
  /// line and field of what is wrong. `source` is what messages and explain() call the text.
  void load_tuning(std::string_view json, std::string source = "tuning text");
  /// The same from a file; std::runtime_error if it cannot be read.
  void load_tuning_file(const std::string& path);
  /// The same from the file that MICROSCALE_TUNING_FILE names now, if it names one; otherwise it is read only once, by
  /// the constructor.
  void load_tuning_from_environment();

  /// Lets `policy` overrule the choice by cost, where nothing is forced. An empty one takes it away.
  void set_policy(Policy policy);

  /// Forgets all plans, so that backends and policy are asked again.
  void clear_plans();

 private:
  std::unique_ptr<Impl::ContextState> m_state;
};

/// The Context of all calls that name no other. Made at the first call, which throws if MICROSCALE_FORCE_BACKEND or the
/// file of MICROSCALE_TUNING_FILE is malformed.
Context& default_context();

}  // namespace microscale

#endif
