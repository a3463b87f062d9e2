#include <Microscale_Avx512_Layout.hpp>
#include <Microscale_Avx512_Rules.hpp>
#include <Microscale_ProblemTraits.hpp>

#include <algorithm>

namespace microscale::Impl {
namespace {

using avx512_layout::tile_cols, avx512_layout::tile_rows;

bool is_grouped(const Problem& problem) { return problem.operation == Operation::grouped_matmul; }

int tile_cols_limit(const Problem& problem) { return problem.epilogue.gate == Gate::none ? tile_cols : tile_cols / 2; }

/// How many matrices B there are to multiply with, as far as is known beforehand.
std::int64_t products(const Problem& problem) {
  const std::int64_t n = is_grouped(problem)                              ? estimate_of(problem).experts
                         : problem.operation == Operation::batched_matmul ? problem.c.batch
                                                                          : 1;
  return std::max<std::int64_t>(n, 1);
}

/// Rows that are multiplied by the same B, likewise.
std::int64_t rows_of_a_product(const Problem& problem) {
  if (!is_grouped(problem)) return problem.m;
  return (estimate_of(problem).total_m + products(problem) - 1) / products(problem);
}

}  // namespace

Support avx512_product_supports(const Problem& problem) {
  if (!avx512_has_kernels_for(problem.b.format)) return {false, "no kernel for this format of b"};
  if (!avx512_has_kernels_for(problem.a.format) && !is_plain(problem.a.format))
    return {false, "no kernel for this format of a"};
  if (!avx512_has_kernels_for(problem.c.format) && !is_plain(problem.c.format))
    return {false, "no kernel for this format of c"};
  if (problem.c.format.tensor_scale && problem.quantize.source == TensorScaleSource::dynamic)
    return {false, "a dynamic tensor scale of c is not known before all of c is"};
  return {true};
}

// Estimates for one core of a server, in operations or bytes a second. They err on the side of caution and still are far
// above what the reference reaches.
double avx512_product_cost(const Problem& problem) {
  constexpr double start = 3e-6, integers = 250e9, reals = 80e9, bandwidth = 8e9;
  const double cores = std::max(problem.concurrency, 1);
  const double batch = problem.operation == Operation::batched_matmul ? static_cast<double>(problem.c.batch) : 1.0;
  const double m = static_cast<double>(problem.m), n = static_cast<double>(problem.n),
               k = static_cast<double>(problem.k);
  const bool fp4 = bits_per_code(problem.a.format) == 4 && bits_per_code(problem.b.format) == 4;
  const double multiplying = 2 * m * n * k / (fp4 ? integers : reals);
  const double copies =
      is_grouped(problem)
          ? std::max(m / static_cast<double>(std::max<std::int64_t>(rows_of_a_product(problem), 1)), 1.0)
          : 1.0;
  const double reading = copies * n * k * bits_per_code(problem.b.format) / 8 / bandwidth;
  return start + batch * (multiplying + reading) / cores;
}

Config avx512_product_config(const Problem& problem) {
  Config config;
  const std::int64_t m = rows_of_a_product(problem), n = problem.c.cols;
  const int limit = tile_cols_limit(problem);
  // Equal tiles of whole groups of 16 rows.
  const std::int64_t row_tiles = std::max<std::int64_t>((m + tile_rows - 1) / tile_rows, 1);
  config.tile_m = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(((m + row_tiles - 1) / row_tiles + 15) / 16 * 16, 16, tile_rows));
  if (is_grouped(problem)) config.tile_m = tile_rows;  // slots may be far from the mean; each is cut into equal tiles
  config.tile_n = limit;
  // Smaller ones where threads would be left without work.
  const auto tiles = [&] {
    return products(problem) * ((m + config.tile_m - 1) / config.tile_m) * ((n + config.tile_n - 1) / config.tile_n);
  };
  const std::int64_t enough = problem.concurrency > 1 ? std::int64_t{4} * problem.concurrency : 1;
  for (const int cols : {96, 64, 32})
    if (cols < config.tile_n && tiles() < enough) config.tile_n = cols;
  while (config.tile_m > 32 && tiles() < enough) config.tile_m = (config.tile_m / 2 + 15) / 16 * 16;
  return config;
}

Support avx512_product_accepts(const Problem& problem, const Config& config) {
  if (config.tile_m < 0 || config.tile_m > tile_rows) return {false, "tile_m is up to 256, or 0"};
  if (config.tile_n < 0 || config.tile_n % 32 != 0) return {false, "tile_n is a multiple of 32, or 0"};
  if (config.tile_n > tile_cols_limit(problem)) return {false, "tile_n is up to 192, 96 under a gate, or 0"};
  Config others = config;
  others.tile_m = others.tile_n = 0;
  if (others != Config{}) return {false, "there are only tile_m and tile_n to choose"};
  return {true};
}

std::int64_t avx512_product_workspace_bytes(const Problem&, const Config&) { return 0; }

PreparedForm avx512_product_prepared_form(const Problem& problem) {
  if (!avx512_has_kernels_for(problem.b.format)) return {};
  const avx512_layout::InterleavedForm form(problem.b.format, problem.b.rows, problem.b.cols);
  return {problem.b.batch * form.bytes(), avx512_layout::tag};
}

}  // namespace microscale::Impl
