#include <Microscale_Errors.hpp>
#include <Microscale_Places.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

namespace microscale::tools {
namespace fs = std::filesystem;
namespace {

fs::path resolved(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::weakly_canonical(fs::absolute(path), error);
  if (error) throw FileError(path.string(), error.message());
  if (!result.has_filename() && result.has_relative_path()) result = result.parent_path();  // "folder/"
  return result;
}

/// Where the name itself is and where it leads to: a link is replaced, its target read.
std::array<fs::path, 2> places(const fs::path& path) {
  fs::path name = fs::absolute(path);
  if (!name.has_filename()) name = name.parent_path();
  return {resolved(path), resolved(name.parent_path()) / name.filename()};
}

bool lies_in(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

void check_apart(const fs::path& path, const char* what, const fs::path& other) {
  const auto fail = [&](const char* relation) {
    throw FileError(path.string(), std::string(relation) + " the " + what + " " + printable(other.string()));
  };
  std::error_code error;
  if (fs::equivalent(path, other, error)) fail("is");
  for (const auto& a : places(path))
    for (const auto& b : places(other)) {
      if (a == b) fail("is");
      if (lies_in(a, b)) fail("lies in");
      if (lies_in(b, a)) fail("holds");
    }
}

}  // namespace

void check_places(const fs::path& input, const fs::path& output, const fs::path& report) {
  const auto check_written = [&](const fs::path& path) {
    check_apart(path, "input", input);
    if (!fs::is_directory(input)) return;
    for (const auto& entry : fs::recursive_directory_iterator(input))
      if (!entry.is_directory()) check_apart(path, "input's file", entry.path());
  };
  check_written(output);
  if (report.empty()) return;
  check_written(report);
  check_apart(report, "output", output);
}

}  // namespace microscale::tools
