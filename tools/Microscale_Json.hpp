#ifndef MICROSCALE_TOOLS_JSON_HPP
#define MICROSCALE_TOOLS_JSON_HPP

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace microscale::tools {

using Json = nlohmann::json;

/// Parses JSON from an untrusted source: UTF-8, at most 64 levels deep, no name twice in one object. `path` is only
/// used in messages. Throws FileError. Thread-safe.
Json parse_json(std::string_view text, const std::string& path);

/// The JSON in a file of at most 100 MB. Throws FileError.
Json read_json(const std::filesystem::path& path);

/// Creates `path`, which must not exist, with `json` indented by two spaces, and puts it on the disk. Throws FileError.
void write_json(const std::filesystem::path& path, const Json& json);

/// Creates `path`, which must not exist, with these bytes, and puts it on the disk. Throws FileError.
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace microscale::tools

#endif
