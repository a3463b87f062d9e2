#include <Microscale_Avx512_Parallel.hpp>
#include <Microscale_Avx512_ScaleRows.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

Status interleave_scales(const Problem& problem, const Config&, void*, const Native& native) {
  static constexpr int64_t chunk = 256;  // columns that are copied at once
  const ScaleRows from(problem.a), to(problem.c);
  const int64_t rows = problem.c.rows, cols = problem.c.cols;
  const int64_t tile = to.tile_rows(), padded_rows = (rows + tile - 1) / tile * tile, padded_cols = to.padded(cols);
  const int64_t rows_a_task = larger(65536 / larger(padded_cols, 1), 1);
  parallel_for(native, (padded_rows + rows_a_task - 1) / rows_a_task, [&](int64_t task) {
    for (int64_t r = task * rows_a_task; r < smaller((task + 1) * rows_a_task, padded_rows); ++r) {
      uint8_t bytes[chunk];
      for (int64_t c = 0; r < rows && c < cols; c += chunk) {
        const int64_t count = smaller(chunk, cols - c);
        from.read(r, c, bytes, count);
        to.write(r, c, bytes, count);
      }
      to.clear(r, r < rows ? cols : 0, padded_cols);
    }
  });
  return {};
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
