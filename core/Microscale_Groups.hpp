#ifndef MICROSCALE_GROUPS_HPP
#define MICROSCALE_GROUPS_HPP

#include <Microscale_Concepts.hpp>
#include <Microscale_Error.hpp>
#include <Microscale_Interface.hpp>

#include <cstdint>
#include <string>

namespace microscale {

/// The groups of a grouped operation, all on the device. Rows are sorted by slot: slot s holds the rows
/// [row_offsets[s], row_offsets[s+1]) and belongs to expert expert_ids[s]. A slot may be empty; id -1 skips it.
/// What the arrays hold is read by the kernels only; validate() checks it when asked.
template <class MemorySpace>
struct Groups {
  using memory_space = MemorySpace;
  using index_view = Kokkos::View<const std::int32_t*, MemorySpace>;

  index_view row_offsets;      ///< [slots + 1], ascending
  index_view expert_ids;       ///< [slots], -1 or 0 to experts - 1, no expert twice
  index_view a_scale_offsets;  ///< [slots], see grouped_scale_offset(); may be empty if scales are linear
  std::int64_t slots = 0;      ///< a host value: unused slots are empty or have id -1

  /// Host-side view of the same for the kernels. Throws std::invalid_argument, naming `function`, if an array is
  /// shorter than `slots` asks for.
  GroupData data(const char* function, SkippedRows skipped_rows, bool needs_scale_offsets) const {
    const auto check = [&](const char* argument, const index_view& view, std::int64_t needed) {
      Impl::expects(
          static_cast<std::int64_t>(view.extent(0)) >= needed, function, argument,
          [&] { return "has extent " + std::to_string(view.extent(0)); },
          [&] { return "at least " + std::to_string(needed) + " for " + std::to_string(slots) + " slots"; });
    };
    Impl::expects(
        slots >= 0, function, "groups.slots", [&] { return "is " + std::to_string(slots); },
        [] { return "0 or more"; });
    check("groups.row_offsets", row_offsets, slots == 0 ? 0 : slots + 1);
    check("groups.expert_ids", expert_ids, slots);
    if (needs_scale_offsets) check("groups.a_scale_offsets", a_scale_offsets, slots);
    return {slots, row_offsets.data(), expert_ids.data(), needs_scale_offsets ? a_scale_offsets.data() : nullptr,
            skipped_rows};
  }
};

}  // namespace microscale

#endif
