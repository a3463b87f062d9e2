#ifndef MICROSCALE_ERROR_HPP
#define MICROSCALE_ERROR_HPP

#include <cstdio>
#include <stdexcept>
#include <string>

namespace microscale::Impl {

/// Throws std::invalid_argument "microscale::<function>: <argument> <given>; expected <expected>" unless `ok`.
/// The texts are callables, so that nothing is formatted on the good path.
template <class Given, class Expected>
void expects(bool ok, const char* function, const char* argument, const Given& given, const Expected& expected) {
  if (ok) return;
  throw std::invalid_argument(std::string("microscale::") + function + ": " + argument + " " + given() + "; expected " +
                              expected());
}

/// The same with fixed texts.
inline void expects(bool ok, const char* function, const char* argument, const char* given, const char* expected) {
  if (ok) return;
  throw std::invalid_argument(std::string("microscale::") + function + ": " + argument + " " + given + "; expected " +
                              expected);
}

/// A float with all its digits, for texts.
inline std::string digits(float x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(x));
  return text;
}

template <class Int>
std::string extents(Int rows, Int cols) {
  return std::to_string(rows) + " x " + std::to_string(cols);
}

/// Checks the logical extents of a matrix argument.
inline void expects_extents(const char* function, const char* argument, long long rows, long long cols,
                            long long expected_rows, long long expected_cols) {
  expects(
      rows == expected_rows && cols == expected_cols, function, argument,
      [&] { return "has extents " + extents(rows, cols); }, [&] { return extents(expected_rows, expected_cols); });
}

}  // namespace microscale::Impl

#endif
