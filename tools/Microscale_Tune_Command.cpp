#include <Microscale_Errors.hpp>
#include <Microscale_Json.hpp>
#include <Microscale_Names.hpp>
#include <Microscale_Output.hpp>
#include <Microscale_Roofline.hpp>
#include <Microscale_RunBackend.hpp>
#include <Microscale_SampleData.hpp>
#include <Microscale_ShapeArguments.hpp>
#include <Microscale_Tuning.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace microscale::tools {
namespace {

using Exec = SampleData::Exec;

/// One configuration of one backend.
struct Measured {
  std::string backend;
  Config config{};
  bool own = false;      ///< what the backend's rules choose
  bool accepted = true;  ///< as a caller's configuration too
  bool winner = false;   ///< of its backend
  double seconds = 0;    ///< median
};

struct Tuned {
  Shape shape;
  Problem problem{};  ///< planned: its pointers are none
  std::vector<Measured> measured;
  std::vector<std::string> refusals;  ///< "backend: reason", of those that cannot run it
};

// What to measure.

std::vector<ShapeArguments> shapes_of(const TuneArguments& arguments) {
  if (arguments.list.empty()) return {arguments.shape};
  if (arguments.shape.m || arguments.shape.n || arguments.shape.k)
    throw UsageError("--list has the extents: no -m, -n, -k beside it");
  const std::string path = arguments.list.string();
  std::ifstream file(arguments.list);
  if (!file) throw_errno(path, "cannot open");
  std::vector<ShapeArguments> result;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    std::string first, rest;
    if (!(words >> first)) continue;
    std::istringstream numbers(line);
    std::int64_t m = 0, n = 0, k = 0;
    const std::string where = "line " + std::to_string(number) + ": ";
    if (!(numbers >> m >> n >> k) || numbers >> rest)
      throw FileError(path, where + "\"" + printable(line) + "\"; expected three whole numbers, M N K");
    ShapeArguments shape = arguments.shape;
    shape.m = m;
    shape.n = n;
    shape.k = k;
    try {
      shape_from(shape);
    } catch (const UsageError& error) {
      throw FileError(path, where + error.what());
    }
    result.push_back(std::move(shape));
  }
  if (file.bad()) throw FileError(path, "cannot be read");
  if (result.empty()) throw FileError(path, "has no shapes; expected lines M N K");
  return result;
}

/// The configurations of a backend that it accepts, its own choice first.
std::vector<Measured> candidates_of(const Backend& backend, const Problem& problem) {
  std::vector<Config> configs{backend.config(problem)};
  std::vector<Config> listed(static_cast<std::size_t>(backend.candidates(problem, nullptr, 0)));
  backend.candidates(problem, listed.data(), static_cast<std::int64_t>(listed.size()));
  configs.insert(configs.end(), listed.begin(), listed.end());
  std::vector<Measured> result;
  for (const Config& config : configs) {
    const bool known = std::any_of(result.begin(), result.end(), [&](const Measured& other) {
      return microscale::to_string(other.config) == microscale::to_string(config);
    });
    const bool own = result.empty(), accepted = backend.accepts(problem, config).supported;
    if (!known && (own || accepted)) result.push_back({backend.name(), config, own, accepted, false, 0});
  }
  return result;
}

// How it is measured.

/// Runs one configuration over and over.
class Run {
 public:
  Run(Context& context, SampleData& data, const Measured& measured)
      : m_data(&data),
        m_plan(context.plan(data.problem(),
                            {.backend = measured.backend, .config = measured.own ? nullptr : &measured.config})),
        m_instance(Exec(), "microscale::tune[" + measured.backend + "]") {}

  /// Seconds a call, over `calls` calls.
  double seconds(int calls) const {
    void* const workspace = m_data->workspace(m_plan.workspace_bytes());
    Exec().fence("microscale::tune");
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i)
      m_plan.run(m_data->problem(), workspace, m_plan.workspace_bytes(), m_instance.native());
    Exec().fence("microscale::tune");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
  }

 private:
  SampleData* m_data;
  Plan m_plan;
  Impl::NativeInstance<Exec> m_instance;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Fills in the medians. Candidates take turns, so that what disturbs the machine disturbs all of them.
void measure(Context& context, SampleData& data, std::vector<Measured>& candidates, int repeat) {
  constexpr double least_seconds = 2e-3;  // well above what the clock resolves
  constexpr double most_calls = 1000;
  std::vector<std::unique_ptr<Run>> runs;
  std::vector<int> calls;
  for (const Measured& candidate : candidates) {
    runs.push_back(std::make_unique<Run>(context, data, candidate));
    runs.back()->seconds(1);  // pages, caches, clocks
    calls.push_back(static_cast<int>(std::clamp(std::ceil(least_seconds / runs.back()->seconds(1)), 1.0, most_calls)));
  }
  std::vector<std::vector<double>> seconds(candidates.size());
  for (int r = 0; r < repeat; ++r)
    for (std::size_t i = 0; i < candidates.size(); ++i) seconds[i].push_back(runs[i]->seconds(calls[i]));
  for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].seconds = median(std::move(seconds[i]));

  // Another configuration than its own must be faster by more than noise.
  constexpr double margin = 0.98;
  for (Measured& own : candidates) {
    if (!own.own) continue;
    Measured* best = &own;
    for (Measured& other : candidates)
      if (other.backend == own.backend && other.seconds < margin * own.seconds && other.seconds < best->seconds)
        best = &other;
    best->winner = true;
  }
}

Tuned tune(Context& context, const Shape& shape, const TuneArguments& arguments) {
  Tuned result;
  result.shape = shape;
  SampleData data(shape);
  const Explanation explanation = context.explain(data.problem());
  result.problem = explanation.problem;
  bool known = arguments.backend.empty();
  for (const Candidate& candidate : explanation.choice.candidates) {
    if (candidate.name == reference_name || (!arguments.backend.empty() && candidate.name != arguments.backend))
      continue;
    known = true;
    if (!candidate.able) {
      result.refusals.push_back(std::string(candidate.name) + ": " + candidate.reason);
      continue;
    }
    const auto more = candidates_of(*candidate.backend, result.problem);
    result.measured.insert(result.measured.end(), more.begin(), more.end());
  }
  if (!known) throw UsageError("--backend " + printable(arguments.backend) + ": there is no such backend to tune");
  measure(context, data, result.measured, arguments.repeat);
  return result;
}

// What comes of it.

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", seconds);
  return text;
}

const Measured& own_choice(const Tuned& tuned, const std::string& backend) {
  return *std::find_if(tuned.measured.begin(), tuned.measured.end(),
                       [&](const Measured& m) { return m.own && m.backend == backend; });
}

TuningEntry entry_of(const Tuned& tuned, const Measured& winner) {
  const Problem& p = tuned.problem;
  TuningEntry entry;
  entry.operation = p.operation;
  entry.a = p.a.format;
  entry.b = p.b.format;
  entry.c = p.c.format;
  entry.n = p.n;
  entry.k = p.k;
  entry.backend = winner.backend;
  if (const Hints& hints = p.hints; hints.estimated_total_m > 0) {
    const std::int64_t floor = hints.estimated_total_m / hints.active_experts;
    entry.average_m = TuningRange{floor, floor + (hints.estimated_total_m % hints.active_experts != 0)};
  } else
    entry.m = {p.m, p.m};
  if (p.execution == ExecutionKind::host) {
    entry.threads = p.concurrency;
    entry.device = processor_name();
  }
  entry.config = winner.config;
  entry.note =
      seconds_text(winner.seconds) + " s, own choice " + seconds_text(own_choice(tuned, winner.backend).seconds) + " s";
  return entry;
}

/// The winners. One is for the m it was measured at, and for those down to the next smaller m that was.
std::vector<TuningEntry> entries_of(const std::vector<Tuned>& all) {
  std::vector<TuningEntry> entries;
  for (const Tuned& tuned : all)
    for (const Measured& measured : tuned.measured)
      if (measured.winner && measured.accepted) {
        TuningEntry entry = entry_of(tuned, measured);
        const bool repeated =
            std::any_of(entries.begin(), entries.end(), [&](const TuningEntry& e) { return same_key(e, entry); });
        if (!repeated) entries.push_back(std::move(entry));
      }
  std::vector<TuningEntry> result = entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].average_m) continue;
    std::int64_t below = -1;
    for (TuningEntry other : entries) {
      const std::int64_t m = other.m.most;
      other.m = entries[i].m;
      if (m < entries[i].m.most && same_key(other, entries[i])) below = std::max(below, m);
    }
    if (below >= 0) result[i].m.least = below + 1;
  }
  return result;
}

/// Adds entries to those of a file that may exist; they come first, and replace those with the same key.
void write_tuning(const std::filesystem::path& path, const std::vector<TuningEntry>& entries) {
  Tuning tuning{"", entries};
  if (std::filesystem::exists(path)) {
    for (TuningEntry& old : read_tuning(path.string()).entries)
      if (std::none_of(entries.begin(), entries.end(), [&](const TuningEntry& e) { return same_key(e, old); }))
        tuning.entries.push_back(std::move(old));
  }
  AtomicOutput output(path, AtomicOutput::Kind::file, true);
  output.fill([&](const std::filesystem::path& temporary) { write_text(temporary, to_json(tuning)); });
  output.commit();
}

Json json_of(const Tuned& tuned) {
  const double flops = work_of(tuned.problem).flops;
  Json json = {{"problem", to_string(tuned.shape)},
               {"concurrency", tuned.problem.concurrency},
               {"candidates", Json::array()},
               {"refusals", tuned.refusals}};
  for (const Measured& m : tuned.measured)
    json["candidates"].push_back({{"backend", m.backend},
                                  {"config", microscale::to_string(m.config)},
                                  {"seconds", m.seconds},
                                  {"flops_per_second", flops / m.seconds},
                                  {"own", m.own},
                                  {"winner", m.winner}});
  return json;
}

void print(const Tuned& tuned) {
  std::printf("%s\n", to_string(tuned.shape).c_str());
  if (tuned.measured.empty()) {
    std::printf("  only the reference can run it here, and it has nothing to tune\n");
    for (const std::string& refusal : tuned.refusals) std::printf("  %s\n", refusal.c_str());
    return;
  }
  const double flops = work_of(tuned.problem).flops;
  std::size_t width = std::string_view("configuration").size();
  for (const Measured& m : tuned.measured) width = std::max(width, microscale::to_string(m.config).size());
  const auto columns = static_cast<int>(width);
  std::printf("  %-12s  %-*s  %12s  %10s  %13s\n", "backend", columns, "configuration", "median s", "GFLOP/s",
              "of own choice");
  for (const Measured& m : tuned.measured) {
    const char* const rank = m.winner && m.own ? "  own choice, best"
                             : m.own           ? "  own choice"
                             : m.winner        ? "  best"
                                               : "";
    std::printf("  %-12s  %-*s  %12.4g  %10.4g  %13.3f%s\n", m.backend.c_str(), columns,
                microscale::to_string(m.config).c_str(), m.seconds, flops / m.seconds / 1e9,
                m.seconds / own_choice(tuned, m.backend).seconds, rank);
  }
}

}  // namespace

void tune_command(const TuneArguments& arguments) {
  std::vector<Shape> shapes;
  for (const ShapeArguments& shape : shapes_of(arguments)) shapes.push_back(shape_from(shape));
  // A file that cannot be added to is better known before than after.
  if (!arguments.output.empty() && std::filesystem::exists(arguments.output)) read_tuning(arguments.output.string());

  Context context;
  context.load_tuning({});  // a backend's own choice is its own
  std::vector<Tuned> all;
  for (const Shape& shape : shapes) {
    all.push_back(tune(context, shape, arguments));
    if (!arguments.json) print(all.back());
  }
  const std::vector<TuningEntry> entries = entries_of(all);
  const bool write = !arguments.output.empty() && !entries.empty();
  if (write) write_tuning(arguments.output, entries);
  if (arguments.json) {
    Json json = {{"results", Json::array()}, {"written", nullptr}};
    for (const Tuned& tuned : all) json["results"].push_back(json_of(tuned));
    if (write) json["written"] = arguments.output.string();
    std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (write)
    std::printf("wrote %s\n", printable(arguments.output.string()).c_str());
  else if (!arguments.output.empty())
    std::printf("nothing was written\n");
}

}  // namespace microscale::tools
