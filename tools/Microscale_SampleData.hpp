#ifndef MICROSCALE_TOOLS_SAMPLEDATA_HPP
#define MICROSCALE_TOOLS_SAMPLEDATA_HPP

#include <Kokkos_Core.hpp>
#include <Microscale_Shape.hpp>

#include <vector>

namespace microscale::tools {

/// A shape with memory behind it: random numbers without NaN or Inf, all near 1, and rows spread evenly over groups.
class SampleData {
 public:
  using Exec = Kokkos::DefaultExecutionSpace;

  explicit SampleData(const Shape& shape);

  /// On the default instance; valid as long as this object.
  const Problem& problem() const { return m_problem; }
  /// At least this many bytes, aligned to 64; null for 0. Stays valid until a larger one is asked for.
  void* workspace(std::int64_t bytes);

 private:
  using Bytes = Kokkos::View<std::uint8_t*, Exec>;

  void* keep(const std::vector<std::uint8_t>& bytes);
  void fill(Operand& operand);

  Problem m_problem;
  std::vector<Bytes> m_memory;
  Bytes m_workspace;
};

}  // namespace microscale::tools

#endif
