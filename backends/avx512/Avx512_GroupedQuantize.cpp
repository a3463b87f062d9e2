#include <Microscale_Avx512_QuantizeRows.hpp>
#include <Microscale_Avx512_TensorScale.hpp>
#include <Microscale_GroupSlots.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {
namespace {

using SlotTable = BasicSlotTable<GroupData>;

template <class Type, class Encoder>
class GroupedQuantizer {
 public:
  GroupedQuantizer(const Problem& problem, const SlotTable& slots, TensorScalePair pair)
      : m_problem(problem), m_slots(slots), m_pair(pair), m_quantizer(problem.a, problem.c) {}

  int64_t blocks() const { return m_quantizer.blocks(); }

  void operator()(const BlockTasks::Part& part) const {
    for (int64_t row = part.row_begin; row < part.row_end;) {
      const SlotRow first = m_slots.find(row);
      BlockTasks::Part run = part;
      run.row_begin = row;
      // As far as rows go to the same expert and their scales follow one another.
      for (++row; row < part.row_end; ++row) {
        const SlotRow next = m_slots.find(row);
        if (next.slot != first.slot || next.expert != first.expert ||
            (first.slot >= 0 && next.scale_row != first.scale_row + row - run.row_begin))
          break;
      }
      run.row_end = row;
      if (first.expert >= 0)
        m_quantizer(Encoder(m_problem.quantize.scale_rule, pair(first.expert)), run, first.scale_row);
      else
        skip(run, first);
    }
  }

  /// Zeroes the scales of a row of the buffer that belongs to no row of the matrix.
  void clear_padding(int64_t scale_row) const {
    if (m_slots.row_of(scale_row) < 0) m_quantizer.clear_scales({0, 0, 0, blocks()}, scale_row, 0);
  }

 private:
  TensorScalePair pair(int64_t expert) const {
    const VectorOperand& scales = m_problem.quantize.expert_tensor_scale;
    return scales.data == nullptr ? m_pair
                                  : pair_from_decode(static_cast<const float*>(scales.data)[expert * scales.stride]);
  }

  /// Zeroes what rows that are not quantized have among these blocks; if they are to stay untouched, only the padding.
  void skip(const BlockTasks::Part& run, const SlotRow& first) const {
    const bool untouched = m_problem.groups.skipped_rows == SkippedRows::untouched;
    const bool linear = !m_quantizer.scales().tiled();
    for (int64_t row = run.row_begin; row < run.row_end; ++row) {
      const int64_t scale_row = linear ? row : first.scale_row + row - run.row_begin;
      if (linear || first.slot >= 0)
        m_quantizer.clear_scales(run, scale_row, untouched ? run.block_end : run.block_begin);
      if (!untouched) m_quantizer.clear_codes(run, row);
    }
  }

  const Problem& m_problem;
  SlotTable m_slots;
  TensorScalePair m_pair;
  RowQuantizer<Type, Encoder> m_quantizer;
};

template <class Type, class Encoder>
void run(const Problem& problem, const Native& native) {
  const VectorOperand& scales = problem.quantize.expert_tensor_scale;
  const SlotTable slots{problem.groups, problem.c.scale_layout, problem.c.rows, problem.c.scale_tile_rows,
                        scales.data != nullptr ? scales.size : any_expert};
  const TensorScalePair pair =
      resolve_tensor_scale<Type>(problem, native, false, [&](int64_t row) { return slots.find(row).expert >= 0; });
  const GroupedQuantizer<Type, Encoder> quantizer(problem, slots, pair);
  const BlockTasks tasks(problem.c.rows, quantizer.blocks(), native.concurrency);
  parallel_for(native, tasks.count(), [&](int64_t task) { quantizer(tasks[task]); });
  if (problem.c.scale_layout == ScaleLayout::linear) return;
  const int64_t tile = scale_tile(problem.c.scale_layout).rows;
  parallel_for(native, problem.c.scale_tile_rows, [&](int64_t i) {
    for (int64_t r = 0; r < tile; ++r) quantizer.clear_padding(i * tile + r);
  });
}

}  // namespace

Status grouped_quantize(const Problem& problem, const Config&, void*, const Native& native) {
  with_type(problem.a.format, [&](auto type) {
    with_encoder(problem.c.format, problem.quantize.non_finite,
                 [&](auto encoder) { run<decltype(type), typename decltype(encoder)::type>(problem, native); });
  });
  return {};
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
