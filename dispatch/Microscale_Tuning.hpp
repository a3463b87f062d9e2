#ifndef MICROSCALE_TUNING_HPP
#define MICROSCALE_TUNING_HPP

#include <Microscale_Interface.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Measured configurations, as tuning files have them. docs/dispatch.md, "Tuning files", is the grammar.
namespace microscale {

/// Whole numbers from `least` to `most`, both included.
struct TuningRange {
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();

  bool operator==(const TuningRange&) const = default;
};

/// For which problems on which backend a configuration is to be tried before the backend's own.
struct TuningEntry {
  Operation operation = Operation::matmul;  ///< matmul, batched_matmul or grouped_matmul
  FormatId a{};
  FormatId b{};
  std::optional<FormatId> c;  ///< any if there is none
  std::int64_t n = 0;
  std::int64_t k = 0;
  TuningRange m{};
  /// Grouped: rows a group, as Hints::estimated_total_m / active_experts has them; fits no call without these hints.
  std::optional<TuningRange> average_m;
  std::string backend;
  std::int64_t threads = 0;  ///< of the caller's host instance; 0: any number
  std::string device;        ///< the processor's name as processor_name() says it; empty: any
  Config config{};           ///< 0 in it means automatic
  std::string note;          ///< for people
  int line = 0;              ///< of the file it came from
};

struct Tuning {
  std::string source;  ///< "tuning file x.json": what messages call it
  std::vector<TuningEntry> entries;
};

/// Reads the JSON of a tuning file. Throws std::invalid_argument naming source, line and field for what is not JSON, has
/// another version, an unknown, missing or repeated field, or a value of the wrong type or range. Whether the entries
/// suit a backend of this build is not asked: that is seen when one is about to be used.
Tuning parse_tuning(std::string_view json, std::string source);

/// The same from a file. Throws std::runtime_error if it cannot be read.
Tuning read_tuning(const std::string& path);

/// The JSON that parse_tuning reads, one entry a line.
std::string to_json(const Tuning& tuning);

/// Whether the two are for the same problems on the same backend, so that one replaces the other.
bool same_key(const TuningEntry& x, const TuningEntry& y);

/// The name of the processor that this program runs on; empty if the system does not say.
const std::string& processor_name();

namespace Impl {

/// Whether the entry is for this problem (planned or not) on the backend of that name.
bool matches(const TuningEntry& entry, const Problem& problem, std::string_view backend);

}  // namespace Impl
}  // namespace microscale

#endif
