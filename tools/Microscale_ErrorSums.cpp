#include <Microscale_ErrorSums.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace microscale::tools {

ErrorSums& ErrorSums::operator+=(const ErrorSums& other) {
  count += other.count;
  non_finite += other.non_finite;
  zeroed += other.zeroed;
  saturated += other.saturated;
  aa += other.aa;
  bb += other.bb;
  ab += other.ab;
  ee += other.ee;
  abs_error += other.abs_error;
  max_abs_error = std::max(max_abs_error, other.max_abs_error);
  return *this;
}

double ErrorSums::sqnr_db() const {
  if (ee == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(aa / ee);
}

double ErrorSums::mean_abs_error() const { return count == 0 ? 0 : abs_error / static_cast<double>(count); }

double ErrorSums::cosine() const {
  if (aa == 0 || bb == 0) return aa == bb ? 1 : 0;
  return ab / (std::sqrt(aa) * std::sqrt(bb));
}

double ErrorSums::share(std::uint64_t part) const {
  const std::uint64_t all = count + non_finite;
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace microscale::tools
