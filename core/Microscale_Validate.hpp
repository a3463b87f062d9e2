#ifndef MICROSCALE_VALIDATE_HPP
#define MICROSCALE_VALIDATE_HPP

#include <Microscale_BlockScaledMatrix.hpp>
#include <Microscale_Groups.hpp>
#include <Microscale_Reference_Validate.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

// What lives on the device cannot throw when an operation is launched; these functions look at it when asked.
namespace microscale {

/// What validate() found in a matrix. Counts of scales and codes are of real ones; padding is counted on its own.
struct ValidationReport {
  TensorScalePair tensor_scale{};   ///< (1, 1) for formats without one
  bool tensor_scale_valid = true;   ///< both halves positive and finite
  std::int64_t nan_scales = 0;      ///< blocks that decode to NaN
  std::int64_t signed_scales = 0;   ///< UE4M3 bytes with bit 7 set, which is ignored here but may not be elsewhere
  std::int64_t padding_scales = 0;  ///< nonzero scale bytes that belong to no block
  std::int64_t stray_bytes = 0;     ///< bytes of codes with bits set past the last element or above a code
  std::int64_t nan_codes = 0;       ///< elements that are NaN by themselves (FP8)
  std::int64_t inf_codes = 0;       ///< elements that are Inf (E5M2)
  std::int32_t min_scale = -1;      ///< smallest scale byte that is not NaN, without bit 7 for UE4M3; -1 if none
  std::int32_t max_scale = -1;      ///< largest such byte

  /// Whether all values are numbers and every byte is one that the library itself would write.
  bool ok() const {
    return tensor_scale_valid && nan_scales == 0 && signed_scales == 0 && padding_scales == 0 && stray_bytes == 0 &&
           nan_codes == 0 && inf_codes == 0;
  }

  /// The same in words: what is wrong, or "ok", and the range of scales.
  std::string to_string() const {
    std::string text;
    const auto say = [&](std::int64_t n, const char* what) {
      if (n != 0) text += (text.empty() ? "" : "; ") + std::to_string(n) + " " + what;
    };
    if (!tensor_scale_valid)
      text = "the tensor scale (decode " + Impl::digits(tensor_scale.decode) + ", encode " +
             Impl::digits(tensor_scale.encode) + ") is not positive and finite";
    say(nan_scales, "block(s) with a NaN scale");
    say(signed_scales, "scale byte(s) with bit 7 set");
    say(padding_scales, "nonzero scale byte(s) in the padding");
    say(stray_bytes, "byte(s) of codes with bits outside of any code");
    say(nan_codes, "NaN element(s)");
    say(inf_codes, "infinite element(s)");
    if (text.empty()) text = "ok";
    if (max_scale >= 0) text += "; scale bytes " + std::to_string(min_scale) + " to " + std::to_string(max_scale);
    return text;
  }
};

/// What validate() found in groups.
struct GroupsReport {
  std::vector<std::string> problems;  ///< each names the array, the slot and the value

  bool ok() const { return problems.empty(); }
  std::string to_string() const {
    std::string text;
    for (const std::string& problem : problems) text += (text.empty() ? "" : "; ") + problem;
    return text.empty() ? "ok" : text;
  }
};

namespace Impl {

template <class Exec, BlockFormat Format, class Space>
ValidationReport validate(const Exec& exec, const BlockScaledMatrix<Format, Space>& matrix, const SlotTable& slots) {
  static_assert(can_access<Exec, Space>,
                "microscale::validate: the execution space must be able to access the memory of the matrix");
  const std::string label = "microscale::validate[reference]";
  const auto handle = matrix.handle();
  const std::int64_t scale_rows = handle.tile_rows * scale_tile(matrix.scale_layout()).rows;
  ValidationCounts scales, codes;
  Kokkos::parallel_reduce(label, IndexRange<Exec>(exec, 0, scale_rows),
                          ValidateScales<Format>(handle, slots, matrix.has_grouped_scales()), scales);
  Kokkos::parallel_reduce(label, IndexRange<Exec>(exec, 0, matrix.rows() * matrix.blocks()),
                          ValidateCodes<Format>(handle), codes);
  ValidationReport report;
  if constexpr (Format::tensor_scale) {
    Kokkos::View<TensorScalePair, Kokkos::HostSpace> pair("microscale::validate");
    if (matrix.tensor_scale().data() != nullptr) Kokkos::deep_copy(exec, pair, matrix.tensor_scale());
    exec.fence(label);
    report.tensor_scale = pair();
    report.tensor_scale_valid = is_valid(pair());
  }
  exec.fence(label);
  scales.add(codes);
  report.nan_scales = scales.nan_scales;
  report.signed_scales = scales.signed_scales;
  report.padding_scales = scales.padding_scales;
  report.stray_bytes = scales.stray_bytes;
  report.nan_codes = scales.nan_codes;
  report.inf_codes = scales.inf_codes;
  report.min_scale = scales.max_scale < 0 ? -1 : scales.min_scale;
  report.max_scale = scales.max_scale;
  return report;
}

template <class Exec, class View>
auto host_copy(const Exec& exec, const View& view) {
  std::vector<std::int32_t> values(view.extent(0));
  Kokkos::deep_copy(exec, Kokkos::View<std::int32_t*, Kokkos::HostSpace>(values.data(), values.size()), view);
  return values;
}

/// What is wrong with groups on the host; with a layout, scale offsets too.
inline GroupsReport check_groups(const std::vector<std::int32_t>& row_offsets,
                                 const std::vector<std::int32_t>& expert_ids,
                                 const std::vector<std::int32_t>& a_scale_offsets, std::int64_t rows,
                                 std::int64_t experts, ScaleLayout layout, std::int64_t tile_rows) {
  GroupsReport report;
  const auto say = [&](const char* array, std::size_t slot, std::int64_t value, const std::string& expected) {
    report.problems.push_back(std::string(array) + "(" + std::to_string(slot) + ") is " + std::to_string(value) +
                              "; expected " + expected);
  };
  const int r = scale_tile(layout).rows;
  std::int64_t tiles = 0;
  std::set<std::int64_t> seen;
  for (std::size_t s = 0; s < expert_ids.size(); ++s) {
    const std::int64_t begin = row_offsets[s], end = row_offsets[s + 1], id = expert_ids[s];
    if (s == 0 && begin < 0) say("row_offsets", 0, begin, "0 or more");
    if (end < begin) say("row_offsets", s + 1, end, "at least " + std::to_string(begin) + ", the one before");
    if (end > rows) say("row_offsets", s + 1, end, "at most " + std::to_string(rows) + ", the rows");
    if (id < -1 || id >= experts)
      say("expert_ids", s, id, "-1, or 0 to " + std::to_string(experts - 1));
    else if (id >= 0 && !seen.insert(id).second)
      say("expert_ids", s, id, "an id that no other slot has");
    if (layout == ScaleLayout::linear || begin < 0 || end <= begin) continue;
    const std::int64_t expected = grouped_scale_offset(layout, begin, tiles);
    if (a_scale_offsets[s] != expected)
      say("a_scale_offsets", s, a_scale_offsets[s],
          std::to_string(expected) + ", as its scales begin at row of tiles " + std::to_string(tiles));
    tiles += (end - begin + r - 1) / r;
  }
  if (tiles > tile_rows)
    report.problems.push_back("the scale buffer has " + std::to_string(tile_rows) + " rows of tiles; expected " +
                              std::to_string(tiles));
  return report;
}

template <class Exec, class Space>
GroupsReport validate_groups(const Exec& exec, const Groups<Space>& groups, std::int64_t rows, std::int64_t experts,
                             ScaleLayout layout, std::int64_t tile_rows) {
  expects(
      rows >= 0, "validate", "rows", [&] { return "is " + std::to_string(rows); }, [] { return "0 or more"; });
  expects(
      experts >= 0, "validate", "experts", [&] { return "is " + std::to_string(experts); }, [] { return "0 or more"; });
  const bool tiled = layout != ScaleLayout::linear;
  groups.data("validate", SkippedRows::zero, tiled);  // throws if an array is too short
  if (groups.slots == 0) return {};
  const auto upto = [](const auto& view, std::int64_t n) {
    return Kokkos::subview(view, Kokkos::pair(std::int64_t{0}, n));
  };
  const auto row_offsets = host_copy(exec, upto(groups.row_offsets, groups.slots + 1));
  const auto expert_ids = host_copy(exec, upto(groups.expert_ids, groups.slots));
  const auto a_scale_offsets = host_copy(exec, upto(groups.a_scale_offsets, tiled ? groups.slots : 0));
  exec.fence("microscale::validate[reference]");
  return check_groups(row_offsets, expert_ids, a_scale_offsets, rows, experts, layout, tile_rows);
}

}  // namespace Impl

/// Looks through all bytes of a matrix: the tensor scale, scales, their padding, codes. Synchronizes exec and may
/// allocate; sees what was submitted to exec before. Safe to call from several threads. Throws std::invalid_argument
/// for a matrix with grouped scales (the overload with groups looks at those).
template <ExecutionSpace Exec, BlockFormat Format, class Space>
ValidationReport validate(const Exec& exec, const BlockScaledMatrix<Format, Space>& matrix) {
  Impl::expects(!matrix.has_grouped_scales(), "validate", "matrix", "has grouped scales",
                "the groups beside it: validate(exec, matrix, groups)");
  return Impl::validate(exec, matrix, {});
}

/// The same for activations of a grouped operation; which scales are padding follows from the groups. Codes of rows in
/// no slot are looked at too.
template <ExecutionSpace Exec, BlockFormat Format, class Space>
ValidationReport validate(const Exec& exec, const BlockScaledMatrix<Format, Space>& matrix,
                          const Groups<Space>& groups) {
  if (!matrix.has_grouped_scales()) return validate(exec, matrix);
  const GroupData data = groups.data("validate", SkippedRows::zero, true);
  return Impl::validate(exec, matrix,
                        {data, matrix.scale_layout(), matrix.rows(), matrix.handle().tile_rows, any_expert});
}

/// validate on the default instance of the execution space of the matrix' memory.
template <BlockFormat Format, class Space>
ValidationReport validate(const BlockScaledMatrix<Format, Space>& matrix) {
  return validate(typename Space::execution_space{}, matrix);
}

/// Checks the row offsets and expert ids of groups for a matrix of `rows` rows and so many experts: offsets ascend
/// within 0..rows; ids are -1 or 0..experts - 1, none twice. Copies the arrays to the host, so it synchronizes exec and
/// allocates. Safe to call from several threads. Throws std::invalid_argument for negative counts and for arrays
/// shorter than the number of slots asks for.
template <ExecutionSpace Exec, class Space>
GroupsReport validate(const Exec& exec, const Groups<Space>& groups, std::int64_t rows, std::int64_t experts) {
  return Impl::validate_groups(exec, groups, rows, experts, ScaleLayout::linear, rows);
}

/// The same for the matrix that the groups are meant for, and its scale offsets (see grouped_scale_offset): each slot's
/// tiles follow those of the slot before, and the buffer has room for them.
template <ExecutionSpace Exec, class Space, BlockFormat Format>
GroupsReport validate(const Exec& exec, const Groups<Space>& groups, const BlockScaledMatrix<Format, Space>& matrix,
                      std::int64_t experts) {
  return Impl::validate_groups(exec, groups, matrix.rows(), experts, matrix.scale_layout(), matrix.handle().tile_rows);
}

}  // namespace microscale

#endif
