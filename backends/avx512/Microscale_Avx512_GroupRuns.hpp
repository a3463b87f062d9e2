#ifndef MICROSCALE_AVX512_GROUPRUNS_HPP
#define MICROSCALE_AVX512_GROUPRUNS_HPP

#include <Microscale_Avx512_Kernels.hpp>
#include <Microscale_GroupSlots.hpp>
#include <stdint.h>

// The rows of a grouped matmul as runs that are treated alike, without memory for a list of them.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// Rows [row, row + rows) of A and C.
struct GroupRun {
  int64_t row = 0, rows = 0;
  int64_t expert = -1;        ///< -1: they are not multiplied
  int64_t a_scale_shift = 0;  ///< what is added to a row to get its row in A's scale buffer
  int64_t c_scale_shift = 0;  ///< likewise C's
  bool has_c_scales = false;  ///< false: the rows have no place among C's scales
};

/// Rows are covered by stretches: one for each slot, and two more for rows before the first and after the last. Where the
/// arrays are not in order (BasicSlotTable says what every content of them means), rows are looked up one by one, and a
/// stretch is 16 of them, whatever they belong to.
class GroupRuns {
 public:
  explicit GroupRuns(const Problem& p)
      : m_groups(p.groups),
        m_rows(p.m),
        m_experts(p.b.batch),
        m_a(table(p, p.a)),
        m_c(table(p, p.c)),
        m_ordered(in_order(m_a) && in_order(m_c)) {}

  int64_t stretches() const { return m_ordered ? m_groups.slots + 2 : (m_rows + unordered_rows - 1) / unordered_rows; }

  /// First row and end of a stretch.
  int64_t begin(int64_t stretch) const {
    if (!m_ordered) return stretch * unordered_rows;
    if (stretch == 0) return 0;
    return m_groups.slots == 0 ? m_rows : m_groups.row_offsets[stretch - 1];
  }
  int64_t end(int64_t stretch) const { return stretch + 1 == stretches() ? m_rows : begin(stretch + 1); }

  /// The run of at most `limit` rows that begins at a row of the stretch.
  GroupRun run(int64_t stretch, int64_t row, int64_t limit) const {
    GroupRun run = find(stretch, row);
    const int64_t last = end(stretch) - row < limit ? end(stretch) : row + limit;
    run.rows = last - row;
    if (!m_ordered)
      for (run.rows = 1; row + run.rows < last; ++run.rows)
        if (const GroupRun next = find(stretch, row + run.rows); next.expert < 0 || next.expert != run.expert ||
                                                                 next.a_scale_shift != run.a_scale_shift ||
                                                                 next.c_scale_shift != run.c_scale_shift)
          break;
    return run;
  }

  /// Whether a row of C's scale buffer belongs to a row of C.
  bool owns_c_scales(int64_t scale_row) const { return m_c.row_of(scale_row) >= 0; }

 private:
  using Table = BasicSlotTable<GroupData>;
  static constexpr int64_t unordered_rows = 16;

  static Table table(const Problem& p, const Operand& m) {
    const bool tiled = m.format.block_size > 0 && m.scale_layout != ScaleLayout::linear;
    return {p.groups, tiled ? m.scale_layout : ScaleLayout::linear, p.m, m.scale_tile_rows, p.b.batch};
  }

  /// Whether slots follow one another within the matrix, and their scales within the buffer.
  bool in_order(const Table& t) const {
    const int r = scale_tile(t.layout).rows;
    int64_t scales_end = 0;
    for (int64_t s = 0; s < m_groups.slots; ++s) {
      const int64_t begin = m_groups.row_offsets[s], rows = m_groups.row_offsets[s + 1] - begin;
      if (begin < 0 || rows < 0 || begin + rows > m_rows) return false;
      if (t.layout == ScaleLayout::linear || rows == 0) continue;
      const int64_t first = grouped_scale_row(t.layout, begin, begin, m_groups.a_scale_offsets[s]);
      if (first < scales_end || first + rows > t.tile_rows * r) return false;
      scales_end = first + (rows + r - 1) / r * r;
    }
    return true;
  }

  GroupRun find(int64_t stretch, int64_t row) const {
    GroupRun run;
    run.row = row;
    SlotRow in_a, in_c;
    if (m_ordered) {
      if (stretch > 0 && stretch <= m_groups.slots) {
        in_a = in_slot(m_a, stretch - 1, row);
        in_c = in_slot(m_c, stretch - 1, row);
      }
    } else {
      in_a = m_a.find(row);
      in_c = m_c.find(row);
    }
    run.has_c_scales = m_c.layout == ScaleLayout::linear || in_c.slot >= 0;
    if (m_c.layout != ScaleLayout::linear) run.c_scale_shift = in_c.scale_row - row;
    if (in_a.slot < 0 || (m_c.layout != ScaleLayout::linear && in_a.slot != in_c.slot)) return run;
    run.expert = in_a.expert;
    run.a_scale_shift = in_a.scale_row - row;
    return run;
  }

  SlotRow in_slot(const Table& t, int64_t slot, int64_t row) const {
    const int64_t id = m_groups.expert_ids[slot];
    const int64_t scale_row =
        t.layout == ScaleLayout::linear
            ? row
            : grouped_scale_row(t.layout, row, m_groups.row_offsets[slot], m_groups.a_scale_offsets[slot]);
    return {slot, 0 <= id && id < m_experts ? id : -1, scale_row};
  }

  GroupData m_groups;
  int64_t m_rows, m_experts;
  Table m_a, m_c;
  bool m_ordered;
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
