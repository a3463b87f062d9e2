#ifndef MICROSCALE_JSONREADER_HPP
#define MICROSCALE_JSONREADER_HPP

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace microscale::Impl {

/// A JSON value that remembers on which line it began, so that what is wrong with it can be said as well as with the
/// syntax. Libraries tell only where the syntax is broken.
struct JsonValue {
  enum class Kind { null, boolean, number, string, array, object };

  Kind kind = Kind::null;
  int line = 1;
  bool boolean = false;
  std::string text;  ///< a string's characters in UTF-8; a number as it is written
  std::vector<JsonValue> items;
  std::vector<std::pair<std::string, JsonValue>> members;  ///< in order; no name appears twice
};

/// "null", "true", the number as it is written, "\"x\"", "an array", "an object".
std::string describe(const JsonValue& value);

/// What is wrong on a line.
struct JsonError : std::runtime_error {
  JsonError(int at, const std::string& what) : std::runtime_error(what), line(at) {}
  int line;
};

/// Reads one JSON value (RFC 8259), at most 64 levels deep. Throws JsonError.
JsonValue parse_json(std::string_view text);

}  // namespace microscale::Impl

#endif
