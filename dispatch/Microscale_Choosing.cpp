#include <Microscale_Choosing.hpp>

#include <algorithm>
#include <cstdio>

namespace microscale::Impl {
namespace {

std::string seconds(double cost) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", cost);
  return text;
}

/// The problem as `backend` is asked about it, for a choice that prepares b: as if that were done.
Problem as_prepared(const Problem& problem, const Backend& backend) {
  Problem result = problem;
  result.b.prepared_form = backend.prepared_form(problem);
  if (result.b.prepared_form.bytes > 0) result.b.prepared_by = &backend;
  return result;
}

/// Why the form in which b is kept keeps `backend` (null: the reference) from using it; empty if it does not.
std::string unreadable_operand(const Problem& problem, const Backend* backend) {
  if (!problem.b.original_dropped || problem.b.prepared_by == backend) return {};
  return std::string("b is kept only in the prepared form of ") + problem.b.prepared_by->name();
}

/// A configuration for a problem on a backend, and where it is from.
struct Picked {
  Config config{};
  ConfigSource source = ConfigSource::backend;
  std::string tuning;  ///< as Choice has it
};

/// The caller's configuration, or that of the first tuning entry that can be used, or the backend's own.
Picked pick_config(const Tuning& tuning, const Backend& backend, const Problem& problem, const ChoiceOptions& options) {
  if (options.config) return {*options.config, ConfigSource::caller, {}};
  Picked own{backend.config(problem), ConfigSource::backend, {}};
  for (const TuningEntry& entry : tuning.entries) {
    if (!matches(entry, problem, backend.name())) continue;
    const std::string place = tuning.source + ", line " + std::to_string(entry.line);
    Support usable = backend.accepts(problem, entry.config);
    // A measured configuration must not take a backend, or a call, away from who lends no workspace.
    if (usable.supported && options.without_workspace && backend.workspace_bytes(problem, entry.config) > 0 &&
        backend.workspace_bytes(problem, own.config) == 0)
      usable = {false, "it needs workspace, and the call lends none"};
    if (usable.supported) return {entry.config, ConfigSource::tuning, place};
    own.tuning += (own.tuning.empty() ? "" : "; ") + place + " is ignored: " + usable.reason;
  }
  return own;
}

/// What `backend` would need with the configuration that it would get; 0 if it does not accept that.
std::int64_t needed_workspace(const Tuning& tuning, const Backend& backend, const Problem& problem,
                              const ChoiceOptions& options) {
  const Picked picked = pick_config(tuning, backend, problem, options);
  if (picked.source == ConfigSource::caller && !backend.accepts(problem, picked.config).supported) return 0;
  return backend.workspace_bytes(problem, picked.config);
}

Candidate ask(const Settings& settings, const KnownBackend& known, const Problem& problem,
              const ChoiceOptions& options) {
  Candidate candidate{known.name, known.backend, false, known.unusable};
  if (!known.backend) return candidate;
  const bool is_target = known.name == options.target;
  const Backend& backend = *known.backend;
  if (backend.execution() != problem.execution) {
    candidate.reason =
        std::string("runs on ") + to_string(backend.execution()) + ", and this call on " + to_string(problem.execution);
    return candidate;
  }
  if (!known.compiled && !is_target) return candidate;
  if (std::string why = unreadable_operand(problem, &backend); !why.empty()) {
    candidate.reason = std::move(why);
    return candidate;
  }
  if (problem.user_functor && problem.c.format.block_size > 0) {  // no pass over C can follow
    candidate.reason = "only the reference calls a functor before it quantizes";
    return candidate;
  }
  if (const Support support = backend.supports(problem); !support.supported) {
    candidate.reason = support.reason;
    return candidate;
  }
  const Problem asked = options.preparing ? as_prepared(problem, backend) : problem;
  if (options.without_workspace)
    if (const std::int64_t bytes = needed_workspace(settings.tuning, backend, asked, options); bytes > 0) {
      candidate.reason = "needs " + std::to_string(bytes) + " bytes of workspace, and the call lends none";
      return candidate;
    }
  candidate.cost = backend.cost(asked);
  candidate.able = known.unusable.empty() || is_target;
  if (candidate.able) candidate.reason.clear();
  return candidate;
}

Candidate ask_reference(const Problem& problem) {
  Candidate candidate{reference_name, nullptr, true, unreadable_operand(problem, nullptr)};
  candidate.able = candidate.reason.empty();
  if (candidate.able) candidate.cost = reference_cost(problem);
  return candidate;
}

/// The cheapest that is able; the first of equals, but a backend must beat the reference. Null if there is none.
const Candidate* cheapest(const std::vector<Candidate>& candidates) {
  const Candidate& reference = candidates.back();
  const Candidate* best = reference.able ? &reference : nullptr;
  for (const Candidate& c : candidates)
    if (&c != &reference && c.able && (!best || c.cost < best->cost)) best = &c;
  return best;
}

const Candidate* find(const std::vector<Candidate>& candidates, std::string_view name) {
  const auto it =
      std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.name == name; });
  return it == candidates.end() ? nullptr : &*it;
}

std::string names(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& c : candidates) text += (text.empty() ? "" : ", ") + std::string(c.name);
  return text;
}

std::string why_cheapest(const std::vector<Candidate>& candidates, const Candidate& best) {
  if (best.name != reference_name) return "the cheapest that can do it, by its estimate of " + seconds(best.cost);
  const auto any = [&](auto is) { return std::any_of(candidates.begin(), candidates.end() - 1, is); };
  if (any([](const Candidate& c) { return c.able; })) return "no backend beats its estimate of " + seconds(best.cost);
  // The cost of those that could do the problem was asked, whether they are available or not.
  return any([](const Candidate& c) { return c.cost >= 0; }) ? "no backend that could do it can run here"
                                                             : "no backend can do it";
}

/// Takes the named candidate, or says why it cannot be. `who` has it so.
void take_named(Choice& choice, const Candidate*& best, std::string_view name, const std::string& who) {
  const Candidate* named = find(choice.candidates, name);
  if (named && named->able) {
    best = named;
    return;
  }
  best = nullptr;
  choice.error = "backend " + std::string(name) + " was " + who;
  choice.error += named ? " and cannot run it: " + named->reason
                        : ", but there is no such backend (there are " + names(choice.candidates) + ")";
}

void configure(Choice& choice, const Tuning& tuning, const Problem& problem, const ChoiceOptions& options) {
  if (!choice.backend) {
    choice.config_source = options.config ? ConfigSource::ignored : ConfigSource::none;
    return;
  }
  const Backend& backend = *choice.backend;
  const Problem asked = options.preparing ? as_prepared(problem, backend) : problem;
  if (options.preparing) choice.prepared_form = asked.b.prepared_form;
  Picked picked = pick_config(tuning, backend, asked, options);
  if (picked.source == ConfigSource::caller)
    if (const Support support = backend.accepts(asked, picked.config); !support.supported) {
      choice.error = "configuration (" + to_string(picked.config) + ") is not accepted by backend " +
                     std::string(choice.name) + ": " + support.reason;
      choice.error_is_argument = true;
      return;
    }
  choice.config = picked.config;
  choice.config_source = picked.source;
  choice.tuning = std::move(picked.tuning);
  choice.workspace_bytes = backend.workspace_bytes(asked, choice.config);
}

}  // namespace

KnownBackend known_backend(const Backend& backend) {
  const Support support = backend.available();
  return {backend.name(), &backend, support.supported ? "" : std::string("not available: ") + support.reason, true};
}

// Rough on purpose: it only has to keep a backend from being chosen where starting it costs more than the whole
// problem. Rates are what the reference reaches on one core of a server, and on one GPU (which it does not use well).
double reference_cost(const Problem& p) {
  constexpr double start = 5e-6;
  const bool host = p.execution == ExecutionKind::host;
  const double cores = host ? std::max(p.concurrency, 1) : 1;
  const double flops = host ? 8e9 * cores : 1e12;
  const double bytes = host ? 1e9 * cores : 1e11;
  switch (p.operation) {
    case Operation::matmul:
    case Operation::batched_matmul:
    case Operation::grouped_matmul: {
      const double batch = p.operation == Operation::batched_matmul ? static_cast<double>(p.c.batch) : 1.0;
      return start +
             2.0 * batch * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) / flops;
    }
    default:
      return start + 4.0 * static_cast<double>(p.a.batch) * static_cast<double>(p.a.rows) *
                         static_cast<double>(p.a.cols) / bytes;
  }
}

Problem on_target(const Settings& settings, const Problem& problem, const ChoiceOptions& options) {
  Problem result = problem;
  for (const KnownBackend& known : settings.backends)
    if (known.name == options.target && known.backend && known.backend->execution() != problem.execution) {
      result.execution = known.backend->execution();
      result.device = 0;
      result.concurrency = 1;
    }
  return result;
}

Choice choose(const Settings& settings, const Problem& problem, const ChoiceOptions& options) {
  const bool forced_here = !options.backend.empty();
  const std::string_view forced = forced_here ? options.backend : settings.forcing[problem.operation];
  ChoiceOptions asking = options;
  asking.without_workspace = options.without_workspace && forced.empty();

  Choice choice;
  if (!options.target.empty()) {
    const auto known = std::find_if(settings.backends.begin(), settings.backends.end(),
                                    [&](const KnownBackend& b) { return b.name == options.target; });
    if (known == settings.backends.end())
      choice.error = "there is no target " + std::string(options.target);
    else if (!known->backend)
      choice.error = "there is nothing to plan for target " + std::string(options.target) + " with: " + known->unusable;
  }
  choice.candidates.reserve(settings.backends.size() + 1);
  for (const KnownBackend& known : settings.backends)
    choice.candidates.push_back(ask(settings, known, problem, asking));
  choice.candidates.push_back(ask_reference(problem));

  const Candidate* best = cheapest(choice.candidates);
  const auto set = [&choice](const Candidate& c) {
    choice.backend = c.backend;
    choice.name = c.name;
  };
  if (best) {
    set(*best);
    choice.why = why_cheapest(choice.candidates, *best);
  }

  if (!forced.empty()) {
    choice.forced_by = forced_here ? "the call's options" : settings.forcing.source;
    take_named(choice, best, forced, "forced by " + choice.forced_by);
    choice.why = "forced by " + choice.forced_by;
  } else if (settings.policy) {
    const std::string_view named = settings.policy(problem, choice);
    if (!named.empty() && !(best && named == best->name)) {
      take_named(choice, best, named, "named by the policy");
      choice.why = "named by the policy";
    }
  }

  if (!best || !choice.error.empty()) {
    if (choice.error.empty()) choice.error = "no backend can run it, and " + choice.candidates.back().reason;
    choice.backend = nullptr;
    choice.name = {};
    choice.why.clear();
  } else {
    set(*best);
    configure(choice, settings.tuning, problem, options);
  }
  if (!choice.error.empty())
    choice.error = std::string("microscale::") + to_string(problem.operation) + ": " + choice.error;
  return choice;
}

}  // namespace microscale::Impl
