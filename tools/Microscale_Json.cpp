#include <Microscale_Errors.hpp>
#include <Microscale_Json.hpp>
#include <Microscale_Output.hpp>
#include <Microscale_Safetensors.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace microscale::tools {
namespace {

constexpr std::size_t max_depth = 64;
constexpr std::size_t max_json_bytes = 100'000'000;

/// Builds the value, as the library's own builder does, but refuses what the builder would take: names that appear
/// twice (the last one would win) and a depth at which printing the value would overflow the stack.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  Json take() { return std::move(m_root); }
  const std::string& reason() const { return m_reason; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t&) override { return fail("binary data"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (m_open.back()->contains(name)) return fail("the name \"" + printable(name) + "\" appears twice");
    m_key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    if (dynamic_cast<const Json::out_of_range*>(&error) != nullptr)
      return fail("a number beyond the range of binary64 before byte " + std::to_string(position));
    return fail("not JSON in UTF-8 at byte " + std::to_string(position));
  }

 private:
  bool fail(std::string reason) {
    if (m_reason.empty()) m_reason = std::move(reason);
    return false;
  }
  Json* place(Json value) {
    if (m_open.empty()) return &(m_root = std::move(value));
    Json& parent = *m_open.back();
    if (parent.is_object()) return &(parent[m_key] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (m_open.size() == max_depth) return fail("more than 64 levels deep");
    m_open.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    m_open.pop_back();
    return true;
  }

  Json m_root;
  std::vector<Json*> m_open;  // a parent does not grow while a child is open, so these stay valid
  std::string m_key;
  std::string m_reason;
};

/// Past the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

/// The text with NaN, Infinity and -Infinity as zeros of the same length, where a value may stand.
std::string without_non_finite(std::string_view text) {
  constexpr std::string_view before = " \t\r\n,:[-", after = " \t\r\n,]}";
  std::string result(text);
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = end_of_string(text, at);
      continue;
    }
    for (const std::string_view word : {"NaN", "Infinity"}) {
      const std::size_t end = at + word.size();
      const bool negative_nan = at > 0 && text[at - 1] == '-' && word == "NaN";
      if (text.substr(at, word.size()) == word && at > 0 && before.find(text[at - 1]) != before.npos &&
          end < text.size() && after.find(text[end]) != after.npos && !negative_nan)
        result.replace(at, word.size(), "0." + std::string(word.size() - 2, '0'));
    }
    ++at;
  }
  return result;
}

/// The members of an object that is well-formed: their names, and the text from name to value.
std::vector<std::pair<std::string, std::string>> members_of(std::string_view object) {
  constexpr std::string_view space = " \t\r\n";
  std::vector<std::pair<std::string, std::string>> members;
  std::size_t begin = object.npos, name_end = 0, depth = 0;
  for (std::size_t at = 0; at < object.size();) {
    const char c = object[at];
    if (c == '"') {
      const std::size_t end = end_of_string(object, at);
      if (begin == object.npos) {
        begin = at;
        name_end = end;
      }
      at = end;
      continue;
    }
    if ((c == ',' && depth == 1) || (c == '}' && depth == 1)) {
      if (begin != object.npos) {
        const std::string_view member = object.substr(begin, at - begin);
        members.emplace_back(Json::parse(object.substr(begin, name_end - begin)).get<std::string>(),
                             member.substr(0, member.find_last_not_of(space) + 1));
      }
      begin = object.npos;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at;
  }
  return members;
}

std::string indented(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '\n' ? "\n  " : std::string(1, c);
  return result;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& path) {
  if (text.find('\0') != std::string_view::npos) throw FileError(path, "not JSON: it holds a NUL byte");
  StrictBuilder builder;
  if (!Json::sax_parse(text, &builder)) throw FileError(path, builder.reason());
  return builder.take();
}

Json read_json(const std::filesystem::path& path) {
  const MappedFile file(path.string());
  const auto bytes = file.bytes();
  if (bytes.size() > max_json_bytes) throw FileError(path.string(), "more than 100000000 bytes of JSON");
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

JsonObject read_json_object(const std::filesystem::path& path) {
  const MappedFile file(path.string());
  const auto bytes = file.bytes();
  if (bytes.size() > max_json_bytes) throw FileError(path.string(), "more than 100000000 bytes of JSON");
  JsonObject object{{reinterpret_cast<const char*>(bytes.data()), bytes.size()}, {}};
  object.value = parse_json(without_non_finite(object.text), path.string());
  if (!object.value.is_object()) throw FileError(path.string(), "not a JSON object");
  return object;
}

std::string with_members(std::string_view object, const std::map<std::string, Json>& members) {
  std::string result;
  const auto add = [&](const std::string& member) { result += (result.empty() ? "\n  " : ",\n  ") + member; };
  auto left = members;
  const auto text_of = [](const std::string& name, const Json& value) {
    return Json(name).dump() + ": " + indented(value.dump(2, ' ', false, Json::error_handler_t::replace));
  };
  for (const auto& [name, text] : members_of(object)) {
    const auto changed = members.find(name);
    if (changed == members.end()) {
      add(text);
    } else if (!changed->second.is_null()) {
      add(text_of(name, changed->second));
    }
    left.erase(name);
  }
  for (const auto& [name, value] : left)
    if (!value.is_null()) add(text_of(name, value));
  return "{" + result + (result.empty() ? "}\n" : "\n}\n");
}

void write_json(const std::filesystem::path& path, const Json& json) {
  // Paths in a report need not be UTF-8.
  write_text(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  const int fd = create_file(path);
  bool good = true;
  while (good && !text.empty()) {
    const auto count = ::write(fd, text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<std::size_t>(count));
    else
      good = errno == EINTR;
  }
  good = good && ::fsync(fd) == 0;
  const int error = errno;
  const bool closed = ::close(fd) == 0;
  if (!good) errno = error;
  if (!good || !closed) throw_errno(path.string(), "cannot write");
}

}  // namespace microscale::tools
