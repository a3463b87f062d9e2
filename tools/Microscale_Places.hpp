#ifndef MICROSCALE_TOOLS_PLACES_HPP
#define MICROSCALE_TOOLS_PLACES_HPP

#include <filesystem>

namespace microscale::tools {

/// Throws FileError if what is written could touch what is read, or each other: no two of the input, the output and the
/// report (empty: none) may be the same, nor lie in one another, whatever symbolic or hard links lead there; nor may
/// the output or the report be, hold or lie in what a file of an input folder links to. `input` must exist. Touches
/// nothing.
void check_places(const std::filesystem::path& input, const std::filesystem::path& output,
                  const std::filesystem::path& report = {});

}  // namespace microscale::tools

#endif
