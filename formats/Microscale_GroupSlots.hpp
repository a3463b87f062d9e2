#ifndef MICROSCALE_GROUPSLOTS_HPP
#define MICROSCALE_GROUPSLOTS_HPP

#include <Microscale_ScaleLayout.hpp>

#include <cstdint>

namespace microscale::inline MICROSCALE_ISA {

/// Number of experts where there is no list of them: any id from 0 up names one.
inline constexpr std::int64_t any_expert = std::int64_t{1} << 31;

/// Where a row of a grouped operation lies. slot is -1 for a row in no slot; expert is -1 if the slot is skipped.
struct SlotRow {
  std::int64_t slot = -1;
  std::int64_t expert = -1;
  std::int64_t scale_row = 0;  ///< row of the scale buffer
};

/// How kernels read GroupData. The arrays live on the device and are not checked before a launch, so every value they
/// may hold has a meaning, the same in all kernels, and none leads outside of a buffer:
///  - a slot counts if 0 <= begin <= end <= rows and its tiles lie in the scale buffer; any other is as if it were not
///    there;
///  - a row belongs to the first slot that counts and contains it, a row of scale tiles to the first that covers it (in
///    valid groups there is only one); a row whose tiles went to another slot belongs to none;
///  - an expert id outside of [0, experts) skips the slot, as -1 does.
/// Lookups run through the slots in order and divide nothing: they cost about a nanosecond a slot, so callers make one
/// for many elements.
///
/// Groups: a struct with `slots` and pointers to 32-bit row_offsets, expert_ids and a_scale_offsets.
template <class Groups>
struct BasicSlotTable {
  Groups groups;
  ScaleLayout layout;      ///< tile rows are powers of two in all layouts
  std::int64_t rows;       ///< rows of the matrix, all slots together
  std::int64_t tile_rows;  ///< rows of tiles of the scale buffer
  std::int64_t experts;

  MICROSCALE_FUNCTION SlotRow find(std::int64_t row) const {
    const std::int64_t slot = slot_of_row(row);
    if (slot < 0) return {};
    if (layout == ScaleLayout::linear) return {slot, expert(slot), row};
    const std::int64_t scale_row = grouped_scale_row(layout, row, begin(slot), groups.a_scale_offsets[slot]);
    if (slot_of_tile(scale_row / scale_tile(layout).rows) != slot) return {};
    return {slot, expert(slot), scale_row};
  }

  /// The inverse: the matrix row whose scales are in a row of the scale buffer, or -1 if it is padding.
  MICROSCALE_FUNCTION std::int64_t row_of(std::int64_t scale_row) const {
    const int r = scale_tile(layout).rows;
    const std::int64_t slot = slot_of_tile(scale_row / r);
    if (slot < 0) return -1;
    const std::int64_t row =
        layout == ScaleLayout::linear ? scale_row : begin(slot) + scale_row - first_scale_row(slot, r);
    return row < end(slot) && slot_of_row(row) == slot ? row : -1;
  }

 private:
  MICROSCALE_FUNCTION std::int64_t begin(std::int64_t slot) const { return groups.row_offsets[slot]; }
  MICROSCALE_FUNCTION std::int64_t end(std::int64_t slot) const { return groups.row_offsets[slot + 1]; }
  MICROSCALE_FUNCTION std::int64_t expert(std::int64_t slot) const {
    const std::int64_t id = groups.expert_ids[slot];
    return 0 <= id && id < experts ? id : -1;
  }
  /// Tile start times tile rows; may be nonsense (checked by counts()).
  MICROSCALE_FUNCTION std::int64_t first_scale_row(std::int64_t slot, int r) const {
    return (begin(slot) & -std::int64_t{r}) + std::int64_t{groups.a_scale_offsets[slot]} * r;
  }
  MICROSCALE_FUNCTION bool counts(std::int64_t slot) const {
    const std::int64_t b = begin(slot), e = end(slot);
    if (b < 0 || e < b || e > rows) return false;
    if (layout == ScaleLayout::linear || e == b) return true;
    const int r = scale_tile(layout).rows;
    const std::int64_t first = first_scale_row(slot, r);
    return first >= 0 && first + (e - b) <= tile_rows * r;
  }
  MICROSCALE_FUNCTION std::int64_t slot_of_row(std::int64_t row) const {
    for (std::int64_t s = 0; s < groups.slots; ++s)
      if (begin(s) <= row && row < end(s) && counts(s)) return s;
    return -1;
  }
  MICROSCALE_FUNCTION std::int64_t slot_of_tile(std::int64_t tile) const {
    if (layout == ScaleLayout::linear) return slot_of_row(tile);
    const int r = scale_tile(layout).rows;
    for (std::int64_t s = 0; s < groups.slots; ++s) {
      const std::int64_t below = tile * r - first_scale_row(s, r);
      if (below >= 0 && below < end(s) - begin(s) && counts(s)) return s;
    }
    return -1;
  }
};

}  // namespace microscale::inline MICROSCALE_ISA

#endif
