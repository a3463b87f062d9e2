#ifndef MICROSCALE_PROBLEMTRAITS_HPP
#define MICROSCALE_PROBLEMTRAITS_HPP

#include <Microscale_Interface.hpp>

#include <cstdint>

// What the rules of all targets ask of a problem.
namespace microscale::Impl {

/// matmul, batched_matmul, grouped_matmul.
bool is_product(Operation operation);
inline bool is_product(const Problem& problem) { return is_product(problem.operation); }

bool is_plain(FormatId format);  ///< float, half, bf16
bool is_mxfp8(FormatId format);
bool is_mxfp6(FormatId format);  ///< dense

/// Rows that a grouped matmul will have, of how many experts: the hints; without one, all rows, or all slots.
struct GroupEstimate {
  std::int64_t total_m = 0;
  std::int64_t experts = 0;
};
GroupEstimate estimate_of(const Problem& problem);

}  // namespace microscale::Impl

#endif
