#ifndef MICROSCALE_TOOLS_ERRORSUMS_HPP
#define MICROSCALE_TOOLS_ERRORSUMS_HPP

#include <cstdint>

namespace microscale::tools {

/// Sums over pairs of values (a, b) from which the measures of how well b stands for a follow. The order of summation,
/// and so every digit, depends only on the shape.
struct ErrorSums {
  std::uint64_t count = 0;       ///< pairs in which both are finite; the sums are over these
  std::uint64_t non_finite = 0;  ///< the other pairs
  std::uint64_t zeroed = 0;      ///< b = 0 where a is not
  std::uint64_t saturated = 0;   ///< |a| was cut down to the largest |b| that the block can hold
  double aa = 0, bb = 0, ab = 0, ee = 0, abs_error = 0, max_abs_error = 0;

  ErrorSums& operator+=(const ErrorSums& other);
  /// 10 log10(sum a^2 / sum (a-b)^2) in dB; Inf without error.
  double sqnr_db() const;
  double mean_abs_error() const;
  /// 1 if both are all zero, 0 if one is.
  double cosine() const;
  double share(std::uint64_t part) const;
};

}  // namespace microscale::tools

#endif
