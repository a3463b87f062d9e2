#include <Microscale_Errors.hpp>

#include <cerrno>
#include <system_error>

namespace microscale::tools {

std::string printable(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      result += c;
    } else {
      result += "\\x";
      result += digits[byte >> 4];
      result += digits[byte & 15];
    }
  }
  return result;
}

void throw_errno(const std::string& path, const std::string& action) {
  throw FileError(path, action + ": " + std::generic_category().message(errno));
}

}  // namespace microscale::tools
