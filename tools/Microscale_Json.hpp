#ifndef MICROSCALE_TOOLS_JSON_HPP
#define MICROSCALE_TOOLS_JSON_HPP

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace microscale::tools {

using Json = nlohmann::json;

/// Parses JSON from an untrusted source: UTF-8, at most 64 levels deep, no name twice in one object. `path` is only
/// used in messages. Throws FileError. Thread-safe.
Json parse_json(std::string_view text, const std::string& path);

/// The JSON in a file of at most 100 MB. Throws FileError.
Json read_json(const std::filesystem::path& path);

/// A JSON object as the text it came as and the value it holds. Like Python's json, its numbers may be NaN, Infinity and
/// -Infinity, which the value has as some number; the text keeps what the value cannot (them, large integers, the order).
struct JsonObject {
  std::string text;
  Json value;
};

/// The object in a file of at most 100 MB, as parse_json has it. Throws FileError.
JsonObject read_json_object(const std::filesystem::path& path);

/// The text of an object with these members at its top replaced, added at the end, or, where the new value is null, left
/// out; the text of all others is kept. `object` must come from read_json_object() or be "{}".
std::string with_members(std::string_view object, const std::map<std::string, Json>& members);

/// Creates `path`, which must not exist, with `json` indented by two spaces, and puts it on the disk. Throws FileError.
void write_json(const std::filesystem::path& path, const Json& json);

/// Creates `path`, which must not exist, with these bytes, and puts it on the disk. Throws FileError.
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace microscale::tools

#endif
