#include <Kokkos_Core.hpp>
#include <Microscale_Bench.hpp>
#include <Microscale_JsonWriter.hpp>
#include <Microscale_Peers.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <vector>

// microscale_compare [--quick] [--list] [--filter RE] [--peers RE] [--json FILE]: measures the cases whose names match,
// ours and the peers (those whose names match) in turn, and writes medians. One number of threads a run; bench/run.py runs it for several and shows the results.
namespace microscale::bench {
namespace {

struct Options {
  bool quick = false, list = false;
  std::regex filter{""}, peers{""};
  std::string json;
};

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--quick")
      options.quick = true;
    else if (argument == "--list")
      options.list = true;
    else if (argument == "--filter" && i + 1 < argc)
      options.filter = argv[++i];
    else if (argument == "--peers" && i + 1 < argc)
      options.peers = argv[++i];
    else if (argument == "--json" && i + 1 < argc)
      options.json = argv[++i];
    else
      return std::nullopt;
  }
  return options;
}

/// How long a measurement takes.
struct Effort {
  double sample;       ///< seconds: calls that are shorter are timed several at once
  int samples;         ///< of each contestant
  double budget;       ///< seconds for all samples of one: slow ones get fewer
  double ceiling;      ///< seconds for each ceiling at the beginning, and again for memory at the end
  double instruction;  ///< seconds for the ceiling of a case just before it
};
constexpr Effort thorough{0.02, 9, 1.5, 1.0, 0.05};
constexpr Effort hasty{0.002, 3, 0.1, 0.05, 0.01};

/// One of those who do the same: ours or a peer.
struct Contestant {
  std::string name;  ///< empty: ours
  std::function<void()> call;
  int calls = 1;    ///< in a sample
  int samples = 1;  ///< to be taken
  std::vector<double> seconds{};

  double sample(int threads) const {
    const Stopwatch watch(threads);
    for (int i = 0; i < calls; ++i) call();
    return watch.seconds() / calls;
  }
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
};

/// ours, peer, peer, ours, peer, peer, ... so that what else the machine does meets all alike.
std::vector<Contestant> measure(const Trial& trial, const std::regex& peers, const Effort& effort, int threads) {
  std::vector<Contestant> contestants{{"", trial.ours}};
  for (const Peer& peer : trial.peers)
    if (std::regex_search(peer.name, peers))
      if (auto call = peer.set()) contestants.push_back({peer.name, std::move(call)});
  for (Contestant& c : contestants) {
    double once = c.sample(threads);  // page faults, plans and thread pools are in it, so it does not count
    if (once < effort.budget / 4) once = std::max(c.sample(threads), 1e-9);
    c.calls = static_cast<int>(std::clamp(effort.sample / once, 1.0, 1e6));
    c.samples =
        static_cast<int>(std::clamp(effort.budget / (once * c.calls), 1.0, static_cast<double>(effort.samples)));
  }
  for (int round = 0; round < effort.samples; ++round)
    for (Contestant& c : contestants)
      if (round < c.samples) c.seconds.push_back(c.sample(threads));
  return contestants;
}

struct Result {
  Case measured;
  std::vector<Contestant> contestants;
};

std::string key(Ceiling ceiling, int threads) {
  return std::string(name(ceiling)) + "/threads:" + std::to_string(threads);
}

std::string to_json(const Peaks& peaks, const std::vector<Result>& results) {
  Impl::JsonWriter json;
  json.open('{').key("machine").open('{');
  json.key("backend").string(measured_backend()).key("execution_space").string(Exec::name());
  json.key("kokkos").number(std::int64_t{KOKKOS_VERSION}).key("compiler").string(MICROSCALE_BENCH_COMPILER);
  json.key("peers").open('[').string(onednn_version()).string(openblas_version()).close(']').close('}');
  json.key("ceilings").open('{');
  for (const Ceiling ceiling : all_ceilings)
    if (peaks.rate(ceiling) > 0) json.key(key(ceiling, peaks.threads())).number(peaks.rate(ceiling) * 1e-9);
  json.close('}').key("results").open('[');
  for (const Result& r : results) {
    const Contestant& ours = r.contestants[0];
    const double seconds = ours.median(), rate = r.measured.amount() / seconds;
    json.open('{').key("name").string(r.measured.name).key("seconds").number(seconds);
    json.key("seconds_min").number(*std::min_element(ours.seconds.begin(), ours.seconds.end()));
    json.key("samples").number(static_cast<std::int64_t>(ours.seconds.size()));
    json.key("operations").number(r.measured.operations).key("bytes").number(r.measured.bytes);
    json.key("rate").number(rate * 1e-9).key("unit").string(is_bandwidth(r.measured.ceiling) ? "GB/s" : "GFLOP/s");
    json.key("ceiling").string(key(r.measured.ceiling, peaks.threads()));
    json.key("ceiling_share").number(rate / peaks.rate(r.measured.ceiling)).key("peers").open('{');
    for (std::size_t i = 1; i < r.contestants.size(); ++i) {
      const double peer = r.contestants[i].median();
      json.key(r.contestants[i].name)
          .open('{')
          .key("seconds")
          .number(peer)
          .key("ratio")
          .number(peer / seconds)
          .close('}');
    }
    json.close('}').close('}');
  }
  return json.close(']').close('}').text() + '\n';
}

int run(const Options& options) {
  const Effort& effort = options.quick ? hasty : thorough;
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [&](const Case& c) { return !std::regex_search(c.name, options.filter); });
  if (options.list) {
    for (const Case& c : cases) std::printf("%s\n", c.name.c_str());
    return 0;
  }

  Peaks peaks(Exec().concurrency());
  if (!cases.empty())
    for (const Ceiling ceiling : all_ceilings) peaks.measure(ceiling, effort.ceiling);
  std::vector<Result> results;
  for (const Case& c : cases) {
    std::fprintf(stderr, "%s\n", c.name.c_str());
    if (!is_bandwidth(c.ceiling)) peaks.measure(c.ceiling, effort.instruction);
    try {
      results.push_back({c, measure(c.set(), options.peers, effort, peaks.threads())});
    } catch (const std::exception& e) {
      std::fprintf(stderr, "  left out: %s\n", e.what());
    }
  }
  if (!cases.empty())
    for (const Ceiling ceiling : {Ceiling::read, Ceiling::copy}) peaks.measure(ceiling, effort.ceiling);

  const std::string text = to_json(peaks, results);
  if (options.json.empty()) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  std::ofstream file(options.json);
  file << text << std::flush;
  if (!file) std::fprintf(stderr, "microscale_compare: %s cannot be written\n", options.json.c_str());
  return file ? 0 : 1;
}

}  // namespace
}  // namespace microscale::bench

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  try {
    if (const auto options = microscale::bench::parse(argc, argv)) return microscale::bench::run(*options);
  } catch (const std::regex_error& e) {
    std::fprintf(stderr, "microscale_compare: --filter or --peers: %s\n", e.what());
    return 2;
  }
  std::fprintf(stderr, "usage: microscale_compare [--quick] [--list] [--filter RE] [--peers RE] [--json FILE]\n");
  return 2;
}
