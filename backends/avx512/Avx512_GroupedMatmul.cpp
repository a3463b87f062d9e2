#include <Microscale_Avx512_GroupRuns.hpp>
#include <Microscale_Avx512_Parallel.hpp>
#include <Microscale_Avx512_Product.hpp>
#include <string.h>

// The matmul of a mixture of experts: tasks are pieces of the rows of a slot by pieces of the columns, so that a large
// expert is many tasks and a small one few.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {
namespace {

class GroupedMatmul {
 public:
  GroupedMatmul(const Problem& problem, const Config& config)
      : m_problem(problem),
        m_runs(problem),
        m_rows(TileSize(problem, config).rows),
        m_cols(TileSize(problem, config).cols),
        m_col_tasks((problem.c.cols + m_cols - 1) / m_cols) {}

  int64_t tasks() const {
    int64_t n = 0;
    for (int64_t s = 0; s < m_runs.stretches(); ++s) n += row_tasks(s) * m_col_tasks;
    return n;
  }

  void run(int64_t task) const {
    int64_t s = 0;
    for (int64_t n; task >= (n = row_tasks(s) * m_col_tasks); ++s) task -= n;
    // Tasks that follow one another share their columns of B, if not their rows.
    const int64_t rows = rows_of_task(s), col = task / row_tasks(s) * m_cols;
    const int64_t begin = m_runs.begin(s) + task % row_tasks(s) * rows, end = smaller(begin + rows, m_runs.end(s));
    const int cols = static_cast<int>(smaller(m_cols, m_problem.c.cols - col));
    for (int64_t row = begin; row < end;) {
      const GroupRun run = m_runs.run(s, row, end - row);
      if (run.expert < 0)
        skip(run, col, cols);
      else
        multiply(run, col, cols);
      row += run.rows;
    }
  }

  /// Zeroes those scales of a row of tiles of a quantized C that belong to no row.
  void clear_unowned_scales(int64_t tile) const {
    const ScaleRows scales(m_problem.c);
    const int64_t blocks = (m_problem.c.cols + m_problem.c.format.block_size - 1) / m_problem.c.format.block_size;
    for (int64_t r = tile * scales.tile_rows(); r < (tile + 1) * scales.tile_rows(); ++r)
      if (!m_runs.owns_c_scales(r)) scales.clear(r, 0, scales.padded(blocks));
  }

 private:
  /// Equal parts of a stretch, of whole groups of 16 rows.
  int64_t rows_of_task(int64_t stretch) const {
    const int64_t rows = m_runs.end(stretch) - m_runs.begin(stretch), parts = larger((rows + m_rows - 1) / m_rows, 1);
    return larger(((rows + parts - 1) / parts + 15) / 16 * 16, 16);
  }
  int64_t row_tasks(int64_t stretch) const {
    const int64_t rows = m_runs.end(stretch) - m_runs.begin(stretch), each = rows_of_task(stretch);
    return (rows + each - 1) / each;
  }

  void multiply(const GroupRun& run, int64_t col, int cols) const {
    const ProductSlice slice{
        m_problem.a, matrix_of(m_problem.b, run.expert), m_problem.c, run.expert, run.a_scale_shift, run.c_scale_shift};
    product_tile(m_problem, slice, run.row, static_cast<int>(run.rows), col, cols);
  }

  /// Zeroes rows that are not multiplied, or leaves them but for the padding of their scales.
  void skip(const GroupRun& run, int64_t col, int cols) const {
    const Operand& c = m_problem.c;
    const bool zero = m_problem.groups.skipped_rows == SkippedRows::zero;
    if (c.format.block_size == 0) {
      const int64_t size = c.format == float32_id ? 4 : 2;
      for (int64_t i = run.row; zero && i < run.row + run.rows; ++i) {
        char* first = static_cast<char*>(c.data) + (i * c.row_stride + col * c.col_stride) * size;
        if (c.col_stride == 1)
          memset(first, 0, static_cast<size_t>(cols * size));
        else
          for (int64_t j = 0; j < cols; ++j) memset(first + j * c.col_stride * size, 0, static_cast<size_t>(size));
      }
      return;
    }
    const ScaleRows scales(c);
    const int64_t blocks = (c.cols + c.format.block_size - 1) / c.format.block_size;
    const int64_t begin = col / c.format.block_size, end = (col + cols + c.format.block_size - 1) / c.format.block_size;
    const int64_t scales_end = end == blocks ? scales.padded(blocks) : end;
    for (int64_t i = run.row; i < run.row + run.rows; ++i) {
      if (run.has_c_scales) scales.clear(i + run.c_scale_shift, zero ? begin : end, scales_end);
      if (zero)
        memset(static_cast<uint8_t*>(c.data) + i * c.row_stride + packed_bytes(c.format, col), 0,
               static_cast<size_t>(packed_bytes(c.format, cols)));
    }
  }

  const Problem& m_problem;
  GroupRuns m_runs;
  int64_t m_rows, m_cols, m_col_tasks;  ///< most rows and columns of a task
};

}  // namespace

Status grouped_matmul(const Problem& problem, const Config& config, void*, const Native& native) {
  resolve_output_scale(problem);
  const GroupedMatmul call(problem, config);
  const bool tiled = problem.c.format.block_size > 0 && problem.c.scale_layout != ScaleLayout::linear;
  parallel_for(native, tiled ? problem.c.scale_tile_rows : 0, [&](int64_t tile) { call.clear_unowned_scales(tile); });
  parallel_for(native, call.tasks(), [&](int64_t task) { call.run(task); });
  return {};
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
