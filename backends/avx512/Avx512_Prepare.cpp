#include <Microscale_Avx512_Epilogue.hpp>
#include <Microscale_Avx512_Layout.hpp>
#include <Microscale_Avx512_Panels.hpp>
#include <Microscale_Avx512_Parallel.hpp>
#include <string.h>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

Status prepare(const Problem& problem, const PreparedForm&, void* destination, const Native& native) {
  const Operand& b = problem.b;
  const avx512_layout::InterleavedForm form(b.format, b.rows, b.cols);
  const int64_t row_bytes = packed_bytes(b.format, b.cols);
  parallel_for(native, b.batch * form.groups, [&](int64_t task) {
    const int64_t entry = task / form.groups, group = task % form.groups, row = group * group_rows;
    const Operand m = matrix_of(b, entry);
    const int rows = static_cast<int>(smaller(m.rows - row, group_rows));
    auto* const to = static_cast<uint8_t*>(destination) + entry * form.bytes();
    const auto* from = static_cast<const uint8_t*>(m.data) + row * m.row_stride;
    uint8_t* codes = to + form.codes_at(group);
    for (int64_t done = 0, size = form.group_bytes / group_rows; done < size; done += 64) {
      alignas(64) uint8_t unit[64 * group_rows];
      interleave_codes(from + done, m.row_stride, rows, static_cast<int>(smaller(row_bytes - done, 64)), 64, 0, unit);
      memcpy(codes + done * group_rows, unit, static_cast<size_t>(smaller(size - done, 64) * group_rows));
    }
    for (int64_t block = 0; block < form.row_blocks; block += 64) {
      alignas(64) uint8_t scales[64 * group_rows];
      const int blocks = static_cast<int>(smaller(form.row_blocks - block, 64));
      interleave_scales(m, row, rows, block, blocks, scales);
      memcpy(to + form.scales_at(group) + block * group_rows, scales, static_cast<size_t>(blocks * group_rows));
    }
    const int64_t end = form.scales_at(form.groups);
    if (group + 1 == form.groups) memset(to + end, 0, static_cast<size_t>(form.bytes() - end));
  });
  return {};
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
