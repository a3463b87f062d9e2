#include <Microscale_JsonReader.hpp>
#include <Microscale_JsonWriter.hpp>
#include <Microscale_Names.hpp>
#include <Microscale_Tuning.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace microscale {
namespace {

using Impl::JsonValue;
using Impl::JsonWriter;

constexpr std::int64_t version = 1;
constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

/// Says what is wrong with a value: `field` is the way to it, "entries[3].config.tile_m".
[[noreturn]] void fail(const JsonValue& at, const std::string& field, const std::string& what,
                       const std::string& expected) {
  throw Impl::JsonError(at.line, field + " " + what + "; expected " + expected);
}

void expect_kind(const JsonValue& value, JsonValue::Kind kind, const std::string& field, const char* expected) {
  if (value.kind != kind) fail(value, field, "is " + describe(value), expected);
}

std::int64_t whole_number(const JsonValue& value, const std::string& field, std::int64_t least, std::int64_t most) {
  std::int64_t result = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, result);
  const bool good = value.kind == JsonValue::Kind::number && error == std::errc{} && stop == end;
  if (!good || result < least || result > most)
    fail(value, field, "is " + describe(value),
         most == no_limit ? "a whole number from " + std::to_string(least) + " up"
                          : "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return result;
}

std::string string_of(const JsonValue& value, const std::string& field, const char* expected) {
  expect_kind(value, JsonValue::Kind::string, field, expected);
  return value.text;
}

/// [least, most], or one number for both.
TuningRange range_of(const JsonValue& value, const std::string& field) {
  if (value.kind != JsonValue::Kind::array) {
    const std::int64_t both = whole_number(value, field, 0, no_limit);
    return {both, both};
  }
  if (value.items.size() != 2)
    fail(value, field, "has " + std::to_string(value.items.size()) + " numbers", "two, the least and the most");
  const TuningRange range{whole_number(value.items[0], field + "[0]", 0, no_limit),
                          whole_number(value.items[1], field + "[1]", 0, no_limit)};
  if (range.least > range.most) fail(value, field, "begins after it ends", "the least number first");
  return range;
}

FormatId format_of(const JsonValue& value, const std::string& field) {
  constexpr const char* expected = "a format's name, like \"mxfp4\" or \"bf16\"";
  const std::optional<FormatId> format = format_named(string_of(value, field, expected));
  if (!format) fail(value, field, "is " + describe(value), expected);
  return *format;
}

Config config_of(const JsonValue& value, const std::string& field) {
  expect_kind(value, JsonValue::Kind::object, field, "an object");
  Config config;
  for (const auto& [name, member] : value.members) {
    const std::string path = field + "." + name;
    bool known = false;
    std::string names;
    Impl::for_each_field(config, [&, &name = name, &member = member](const char* candidate, auto& target) {
      names.append(names.empty() ? "" : ", ").append(candidate);
      if (name != candidate) return;
      known = true;
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(target)>, bool>) {
        expect_kind(member, JsonValue::Kind::boolean, path, "true or false");
        target = member.boolean;
      } else {
        using T = std::remove_reference_t<decltype(target)>;
        target = static_cast<T>(whole_number(member, path, 0, std::numeric_limits<T>::max()));
      }
    });
    if (!known) fail(member, path, "is not known", names);
  }
  return config;
}

TuningEntry entry_of(const JsonValue& value, const std::string& field) {
  expect_kind(value, JsonValue::Kind::object, field, "an object");
  TuningEntry entry;
  entry.line = value.line;
  std::vector<std::string_view> missing{"operation", "a", "b", "n", "k", "backend", "config"};
  for (const auto& [name, member] : value.members) {
    const std::string path = field + "." + name;
    missing.erase(std::remove(missing.begin(), missing.end(), name), missing.end());
    if (name == "operation") {
      constexpr const char* expected = "\"matmul\", \"batched_matmul\" or \"grouped_matmul\"";
      const std::string text = string_of(member, path, expected);
      bool known = false;
      for (const Operation operation : {Operation::matmul, Operation::batched_matmul, Operation::grouped_matmul})
        if (text == to_string(operation)) {
          entry.operation = operation;
          known = true;
        }
      if (!known) fail(member, path, "is " + describe(member), expected);
    } else if (name == "a")
      entry.a = format_of(member, path);
    else if (name == "b")
      entry.b = format_of(member, path);
    else if (name == "c")
      entry.c = format_of(member, path);
    else if (name == "n")
      entry.n = whole_number(member, path, 0, no_limit);
    else if (name == "k")
      entry.k = whole_number(member, path, 0, no_limit);
    else if (name == "m")
      entry.m = range_of(member, path);
    else if (name == "average_m")
      entry.average_m = range_of(member, path);
    else if (name == "backend")
      entry.backend = string_of(member, path, "a backend's name");
    else if (name == "threads")
      entry.threads = whole_number(member, path, 1, std::numeric_limits<std::int32_t>::max());
    else if (name == "device")
      entry.device = string_of(member, path, "a processor's name");
    else if (name == "config")
      entry.config = config_of(member, path);
    else if (name == "note")
      entry.note = string_of(member, path, "a string");
    else
      fail(member, path, "is not known",
           "operation, a, b, c, n, k, m, average_m, backend, threads, device, config, note");
  }
  if (!missing.empty())
    fail(value, field, "has no \"" + std::string(missing.front()) + "\"", "operation, a, b, n, k, backend and config");
  if (entry.average_m && entry.operation != Operation::grouped_matmul)
    fail(value, field, "has \"average_m\"", "none but in a grouped_matmul");
  return entry;
}

std::vector<TuningEntry> entries_of(const JsonValue& root) {
  expect_kind(root, JsonValue::Kind::object, "the whole", "an object");
  bool has_version = false, has_entries = false;
  std::vector<TuningEntry> entries;
  for (const auto& [name, member] : root.members) {
    if (name == "version") {
      if (whole_number(member, name, 0, no_limit) != version)
        fail(member, name, "is " + describe(member), std::to_string(version));
      has_version = true;
    } else if (name == "entries") {
      expect_kind(member, JsonValue::Kind::array, name, "an array");
      for (std::size_t i = 0; i < member.items.size(); ++i)
        entries.push_back(entry_of(member.items[i], "entries[" + std::to_string(i) + "]"));
      has_entries = true;
    } else
      fail(member, name, "is not known", "version and entries");
  }
  if (!has_version) fail(root, "the whole", "has no \"version\"", std::to_string(version));
  if (!has_entries) fail(root, "the whole", "has no \"entries\"", "an array of them");
  return entries;
}

std::string first_processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0)
      if (const std::size_t colon = line.find(": "); colon != line.npos) return line.substr(colon + 2);
  return {};
}

void write_range(JsonWriter& json, const char* name, const TuningRange& range) {
  json.key(name).open('[').number(range.least).number(range.most).close(']');
}

}  // namespace

Tuning parse_tuning(std::string_view json, std::string source) {
  try {
    std::vector<TuningEntry> entries = entries_of(Impl::parse_json(json));
    return {std::move(source), std::move(entries)};
  } catch (const Impl::JsonError& error) {
    throw std::invalid_argument("microscale: " + source + ", line " + std::to_string(error.line) + ": " + error.what());
  }
}

Tuning read_tuning(const std::string& path) {
  const std::string source = "tuning file " + path;
  const auto cannot = [&](const std::string& why) {
    throw std::runtime_error("microscale: " + source + " cannot be read: " + why);
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) cannot(std::generic_category().message(errno));
  constexpr std::size_t most = std::size_t{64} << 20;
  std::string text, part(std::size_t{1} << 16, '\0');
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
    text.append(part, 0, static_cast<std::size_t>(file.gcount()));
    if (text.size() > most) cannot("it is larger than 64 MiB");
  }
  if (file.bad()) cannot(std::generic_category().message(errno));
  return parse_tuning(text, source);
}

std::string to_json(const Tuning& tuning) {
  std::string text = "{\n  \"version\": " + std::to_string(version) + ",\n  \"entries\": [";
  for (const TuningEntry& entry : tuning.entries) {
    JsonWriter json;
    json.open('{').key("operation").string(to_string(entry.operation));
    json.key("a").string(to_string(entry.a)).key("b").string(to_string(entry.b));
    if (entry.c) json.key("c").string(to_string(*entry.c));
    json.key("n").number(entry.n).key("k").number(entry.k);
    if (!(entry.m == TuningRange{})) write_range(json, "m", entry.m);
    if (entry.average_m) write_range(json, "average_m", *entry.average_m);
    json.key("backend").string(entry.backend);
    if (entry.threads != 0) json.key("threads").number(entry.threads);
    if (!entry.device.empty()) json.key("device").string(entry.device);
    Impl::write(json.key("config"), entry.config, true);
    if (!entry.note.empty()) json.key("note").string(entry.note);
    json.close('}');
    text += (&entry == &tuning.entries.front() ? "\n    " : ",\n    ") + json.text();
  }
  return text + (tuning.entries.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

bool same_key(const TuningEntry& x, const TuningEntry& y) {
  const auto key = [](const TuningEntry& e) {
    TuningEntry only = e;
    only.config = {};
    only.note.clear();
    return to_json({"", {only}});
  };
  return key(x) == key(y);
}

const std::string& processor_name() {
  static const std::string name = first_processor();
  return name;
}

namespace Impl {

bool matches(const TuningEntry& entry, const Problem& p, std::string_view backend) {
  const auto in = [](std::int64_t value, const TuningRange& range) {
    return value >= range.least && value <= range.most;
  };
  const bool host = p.execution == ExecutionKind::host;
  if (entry.backend != backend || entry.operation != p.operation || !(entry.a == p.a.format) ||
      !(entry.b == p.b.format) || (entry.c && !(*entry.c == p.c.format)) || entry.n != p.n || entry.k != p.k ||
      !in(p.m, entry.m))
    return false;
  if (entry.threads != 0 && !(host && entry.threads == p.concurrency)) return false;
  if (!entry.device.empty() && !(host && entry.device == processor_name())) return false;
  if (!entry.average_m) return true;
  // least <= total / experts <= most, without a division.
  const Hints& hints = p.hints;
  if (hints.estimated_total_m <= 0 || hints.active_experts <= 0) return false;
  const auto total = static_cast<double>(hints.estimated_total_m);
  const auto experts = static_cast<double>(hints.active_experts);
  return static_cast<double>(entry.average_m->least) * experts <= total &&
         total <= static_cast<double>(entry.average_m->most) * experts;
}

}  // namespace Impl
}  // namespace microscale
