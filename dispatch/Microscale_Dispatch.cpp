#include <Microscale_BackendList.hpp>
#include <Microscale_Choosing.hpp>
#include <Microscale_Dispatch.hpp>
#include <Microscale_PlannedProblem.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

namespace microscale {

namespace Impl {

struct PlanState {
  Words problem;
  Choice choice;
};

namespace {

constexpr std::size_t workspace_alignment = 64;
constexpr std::size_t cache_capacity = 128;

/// What tells two plans of one Context apart.
struct Key {
  Words words;
  std::string backend;

  bool operator==(const Key&) const = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const { return hash(key.words) ^ std::hash<std::string>{}(key.backend); }
};

Key make_key(const Problem& problem, const ChoiceOptions& options) {
  Key key{{}, std::string(options.backend)};
  append_words(key.words, problem);
  key.words.push_back((options.preparing ? 1u : 0u) | (options.without_workspace ? 2u : 0u));
  key.words.push_back(options.config != nullptr);
  if (options.config) append_words(key.words, *options.config);
  return key;
}

/// Known to the project, as this build and this machine have them.
const std::vector<KnownBackend>& known_backends() {
  static const std::vector<KnownBackend> list = [] {
    std::vector<KnownBackend> result;
    for (const ListedBackend& listed : listed_backends()) {
      const bool compiled = *listed.off == '\0';
      KnownBackend known = listed.backend && compiled ? known_backend(*listed.backend) : KnownBackend{};
      known.name = listed.name;
      known.backend = listed.backend;  // one that is off can still say how it would run a problem
      if (!compiled) known.unusable = std::string("not part of this build: ") + listed.off;
      result.push_back(std::move(known));
    }
    return result;
  }();
  return list;
}

std::vector<BackendInfo> describe(const std::vector<KnownBackend>& backends) {
  std::vector<BackendInfo> list;
  for (const KnownBackend& b : backends)
    list.push_back({b.name, b.backend ? b.backend->description() : "", b.compiled, b.unusable.empty(), b.unusable});
  list.push_back({reference_name, "portable Kokkos kernels, the specification of all others", true, true, ""});
  return list;
}

std::string label(const Problem& problem) { return std::string("microscale::") + to_string(problem.operation); }

[[noreturn]] void fail(const Problem& problem, const std::string& what) {
  throw std::invalid_argument(label(problem) + ": " + what);
}

void check_buffer(const Problem& problem, const char* what, const void* data, std::int64_t given, std::int64_t needed) {
  if (needed == 0) return;
  if (!data || given < needed)
    fail(problem, std::string(what) + " has " + std::to_string(data ? given : 0) + " bytes; expected at least " +
                      std::to_string(needed));
  if (reinterpret_cast<std::uintptr_t>(data) % workspace_alignment != 0)
    fail(problem, std::string(what) + " is not aligned; expected an address that is a multiple of " +
                      std::to_string(workspace_alignment));
}

void check_call(const PlanState& plan, const Problem& problem, const Native& native) {
  if (!covers(plan.problem, planned(problem)))
    fail(problem, "the problem is not the one that was planned; expected the same in all but data");
  if (native.kind != problem.execution || native.device != problem.device)
    fail(problem, std::string("the native instance is on ") + to_string(native.kind) + " " +
                      std::to_string(native.device) + "; expected " + to_string(problem.execution) + " " +
                      std::to_string(problem.device));
  if (native.kind == ExecutionKind::host && !native.parallel_for)
    fail(problem, "the native instance has no parallel_for; expected one for the host");
}

void check_status(const Problem& problem, const Backend& backend, const char* doing, Status status) {
  if (!status.ok)
    throw std::runtime_error(label(problem) + ": backend " + backend.name() + " failed" + doing + ": " +
                             status.message);
}

}  // namespace

struct ContextState {
  mutable std::mutex mutex;  // guards all but idle
  std::shared_ptr<const Settings> settings = std::make_shared<const Settings>();
  std::uint64_t version = 0;  // of the settings and the cache; a plan made under an older one is not kept
  struct Entry {
    std::shared_ptr<const PlanState> plan;
    std::uint64_t used = 0;
  };
  std::unordered_map<Key, Entry, KeyHash> plans;
  std::uint64_t clock = 0;
  /// Nothing but the reference can be chosen, so that a call need not look anything up.
  std::atomic<bool> idle = true;

  std::shared_ptr<const Settings> current() const {
    const std::lock_guard lock(mutex);
    return settings;
  }

  template <class Change>
  void change(Change apply) {
    const std::lock_guard lock(mutex);
    auto next = std::make_shared<Settings>(*settings);
    apply(*next);
    const bool can_run_any = std::any_of(next->backends.begin(), next->backends.end(),
                                         [](const KnownBackend& b) { return b.unusable.empty(); });
    idle = !can_run_any && next->forcing.empty() && !next->policy;
    settings = std::move(next);
    forget();
  }

  void forget() {
    plans.clear();
    ++version;
  }

  void keep(Key key, std::shared_ptr<const PlanState> plan) {
    if (plans.size() >= cache_capacity)
      plans.erase(std::min_element(plans.begin(), plans.end(),
                                   [](const auto& x, const auto& y) { return x.second.used < y.second.used; }));
    plans.insert_or_assign(std::move(key), Entry{std::move(plan), ++clock});
  }
};

}  // namespace Impl

std::span<const BackendInfo> backends() {
  static const std::vector<BackendInfo> list = Impl::describe(Impl::known_backends());
  return list;
}

const Backend* Plan::backend() const { return m_state ? m_state->choice.backend : nullptr; }

std::int64_t Plan::workspace_bytes() const { return m_state ? m_state->choice.workspace_bytes : 0; }

const Choice& Plan::choice() const {
  static const Choice reference = [] {
    Choice choice;
    choice.why = "no backend can run here";
    for (const Impl::KnownBackend& known : Impl::known_backends())
      choice.candidates.push_back({known.name, known.backend, false, known.unusable});
    choice.candidates.push_back({reference_name, nullptr, true, ""});
    return choice;
  }();
  return m_state ? m_state->choice : reference;
}

void Plan::run(const Problem& problem, void* workspace, std::int64_t workspace_bytes, const Native& native) const {
  if (!backend()) throw std::logic_error(Impl::label(problem) + ": a plan of the reference is not run by dispatch");
  Impl::check_call(*m_state, problem, native);
  const Choice& choice = m_state->choice;
  Impl::check_buffer(problem, "workspace", workspace, workspace_bytes, choice.workspace_bytes);
  Impl::check_status(problem, *choice.backend, "", choice.backend->launch(problem, choice.config, workspace, native));
}

std::int64_t Plan::prepared_bytes() const { return m_state ? m_state->choice.prepared_form.bytes : 0; }

Operand Plan::prepare(const Problem& problem, void* destination, std::int64_t bytes, const Native& native) const {
  if (prepared_bytes() == 0) return problem.b;
  Impl::check_call(*m_state, problem, native);
  const Choice& choice = m_state->choice;
  Impl::check_buffer(problem, "memory for the prepared operand", destination, bytes, prepared_bytes());
  Impl::check_status(problem, *choice.backend, " to prepare b",
                     choice.backend->prepare(problem, choice.prepared_form, destination, native));
  Operand result = problem.b;
  result.prepared_by = choice.backend;
  result.prepared_form = choice.prepared_form;
  result.prepared = destination;
  return result;
}

Context::Context() : m_state(std::make_unique<Impl::ContextState>()) {
  m_state->change([](Impl::Settings& settings) { settings.backends = Impl::known_backends(); });
  force_from_environment();
  load_tuning_from_environment();
}

Context::~Context() = default;

Plan Context::plan(const Problem& problem, const ChoiceOptions& options) {
  if (!options.target.empty())
    Impl::fail(problem, "a plan cannot be made for target " + std::string(options.target) +
                            ", which is not this machine; expected explain() or choose()");
  Impl::ContextState& state = *m_state;
  if (state.idle && options.backend.empty() && !problem.b.prepared_by) return Plan();

  const Problem planned = Impl::planned(problem);
  Impl::Key key = Impl::make_key(planned, options);
  std::shared_ptr<const Impl::Settings> settings;
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(state.mutex);
    if (const auto it = state.plans.find(key); it != state.plans.end()) {
      it->second.used = ++state.clock;
      return Plan(it->second.plan);
    }
    settings = state.settings;
    version = state.version;
  }

  auto plan = std::make_shared<Impl::PlanState>();
  plan->choice = Impl::choose(*settings, planned, options);
  const Choice& choice = plan->choice;
  if (!choice.error.empty()) {
    if (choice.error_is_argument) throw std::invalid_argument(choice.error);
    throw std::runtime_error(choice.error);
  }
  Impl::append_words(plan->problem, planned);

  const std::lock_guard lock(state.mutex);
  if (state.version == version) state.keep(std::move(key), plan);
  return Plan(std::move(plan));
}

Choice Context::choose(const Problem& problem, const ChoiceOptions& options) const {
  return explain(problem, options).choice;
}

Explanation Context::explain(const Problem& problem, const ChoiceOptions& options) const {
  const auto settings = m_state->current();
  const Problem planned = Impl::on_target(*settings, Impl::planned(problem), options);
  return {planned, Impl::choose(*settings, planned, options)};
}

std::vector<BackendInfo> Context::backends() const {
  // The views are into names that live as long as the backends, but reasons belong to the settings: those of the listed
  // ones live as long as the program, and an added backend's reason is taken from itself.
  std::vector<BackendInfo> list(microscale::backends().begin(), microscale::backends().end() - 1);
  const auto settings = m_state->current();
  for (std::size_t i = list.size(); i < settings->backends.size(); ++i) {
    const Backend& added = *settings->backends[i].backend;
    const Support support = added.available();
    list.push_back({added.name(), added.description(), true, support.supported, support.reason});
  }
  list.push_back(microscale::backends().back());
  return list;
}

void Context::add_backend(const Backend& backend) {
  const std::string name = backend.name();
  if (!Impl::is_backend_name(name))
    throw std::invalid_argument("microscale::Context::add_backend: name \"" + name +
                                "\"; expected lower-case letters, digits and underscores");
  Impl::KnownBackend known = Impl::known_backend(backend);
  m_state->change([&](Impl::Settings& settings) {
    const bool taken = name == reference_name || std::any_of(settings.backends.begin(), settings.backends.end(),
                                                             [&](const auto& b) { return b.name == name; });
    if (taken)
      throw std::invalid_argument("microscale::Context::add_backend: name \"" + name +
                                  "\" is taken; expected one of its own");
    settings.backends.push_back(std::move(known));
  });
}

void Context::force(std::string_view text) {
  Impl::Forcing forcing = Impl::parse_forcing(text, "Context::force");
  m_state->change([&](Impl::Settings& settings) { settings.forcing = std::move(forcing); });
}

void Context::force_from_environment() {
  const char* text = std::getenv("MICROSCALE_FORCE_BACKEND");
  Impl::Forcing forcing = Impl::parse_forcing(text ? text : "", "MICROSCALE_FORCE_BACKEND");
  m_state->change([&](Impl::Settings& settings) { settings.forcing = std::move(forcing); });
}

void Context::load_tuning(std::string_view json, std::string source) {
  Tuning tuning;
  if (!json.empty()) tuning = parse_tuning(json, std::move(source));
  m_state->change([&](Impl::Settings& settings) { settings.tuning = std::move(tuning); });
}

void Context::load_tuning_file(const std::string& path) {
  Tuning tuning = read_tuning(path);
  m_state->change([&](Impl::Settings& settings) { settings.tuning = std::move(tuning); });
}

void Context::load_tuning_from_environment() {
  const char* path = std::getenv("MICROSCALE_TUNING_FILE");
  if (path && *path)
    load_tuning_file(path);
  else
    load_tuning({});
}

void Context::set_policy(Policy policy) {
  m_state->change([&](Impl::Settings& settings) { settings.policy = std::move(policy); });
}

void Context::clear_plans() {
  const std::lock_guard lock(m_state->mutex);
  m_state->forget();
}

Context& default_context() {
  static Context context;
  return context;
}

}  // namespace microscale
