#ifndef MICROSCALE_TOOLS_ERRORS_HPP
#define MICROSCALE_TOOLS_ERRORS_HPP

#include <stdexcept>
#include <string>
#include <string_view>

namespace microscale::tools {

/// Text that is safe to print: control characters, which a hostile file may use to move a terminal's cursor, become
/// \xNN. The input is UTF-8 (or any bytes) and everything from 0x20 up, except 0x7f, is kept.
std::string printable(std::string_view text);

/// A file that cannot be read, is not what it says it is, or cannot be written. what() is "<path>: <reason>".
class FileError : public std::runtime_error {
 public:
  FileError(const std::string& path, const std::string& reason)
      : std::runtime_error(printable(path) + ": " + reason), m_path(path), m_reason(reason) {}

  const std::string& path() const { return m_path; }
  const std::string& reason() const { return m_reason; }

 private:
  std::string m_path;
  std::string m_reason;
};

/// A command line that asks for something that does not exist or contradicts itself.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// FileError whose reason is `action` and the text of the current errno ("cannot open: No such file or directory").
[[noreturn]] void throw_errno(const std::string& path, const std::string& action);

}  // namespace microscale::tools

#endif
