#include <Microscale_ProblemTraits.hpp>
#include <Microscale_Roofline.hpp>

#include <algorithm>
#include <cmath>

namespace microscale {
namespace {

using Impl::is_product;

// Everything is in double: exact up to 2^53, and without overflow for extents of any size.
double number(std::int64_t value) { return static_cast<double>(value); }

/// How the rows of a grouped matmul are spread.
struct Groups {
  double rows;
  double experts;
};
Groups groups_of(const Problem& p) {
  const Impl::GroupEstimate estimate = Impl::estimate_of(p);
  const double rows = number(estimate.total_m);
  return {rows, std::min({number(estimate.experts), rows, number(p.b.batch)})};
}

/// Bytes of `rows` rows of the operand.
double bytes_of(const Operand& operand, double rows) {
  const FormatId& f = operand.format;
  double bytes = rows * number(packed_bytes(f, operand.cols));
  if (f.block_size > 0) {
    const ScaleTile tile = scale_tile(operand.scale_layout);
    const auto padded = [](double count, double unit) { return std::ceil(count / unit) * unit; };
    bytes += padded(rows, tile.rows) * padded(std::ceil(number(operand.cols) / f.block_size), tile.cols);
  }
  return bytes;
}
double bytes_of(const Operand& operand) { return number(operand.batch) * bytes_of(operand, number(operand.rows)); }

}  // namespace

Work work_of(const Problem& p) {
  Work work;
  if (p.operation == Operation::grouped_matmul) {
    const Groups groups = groups_of(p);
    work.flops = 2 * groups.rows * number(p.n) * number(p.k);
    work.bytes_a = bytes_of(p.a, groups.rows);
    work.bytes_b = groups.experts * bytes_of(p.b, number(p.b.rows));
    work.bytes_c = bytes_of(p.c, groups.rows);
  } else {
    work.bytes_a = bytes_of(p.a);
    work.bytes_c = bytes_of(p.c);
    if (is_product(p)) {
      const double batch = p.operation == Operation::batched_matmul ? number(p.c.batch) : 1;
      work.flops = 2 * batch * number(p.m) * number(p.n) * number(p.k);
      work.bytes_b = bytes_of(p.b);
    }
  }
  if (p.epilogue.beta != 0.0f) work.bytes_c *= 2;
  return work;
}

Roofline roofline(const Problem& problem, const Device& device) {
  const Work work = work_of(problem);
  Roofline result;
  result.memory_seconds = work.bytes() / device.bytes_per_second;
  if (work.flops > 0) {
    result.precision = precision_on(device, problem.a.format, problem.b.format);
    result.compute_seconds = work.flops / device.flops_per_second[static_cast<std::size_t>(result.precision)];
  }
  return result;
}

std::optional<Waves> predicted_waves(const Problem& p, const Config& config, const Device& device) {
  if (!is_product(p) || config.tile_m <= 0 || config.tile_n <= 0) return {};
  // Swapped, the tile's rows are those of B.
  const double tile_m = config.swap_ab ? config.tile_n : config.tile_m;
  const double tile_n = config.swap_ab ? config.tile_m : config.tile_n;
  double rows = number(p.m), matrices = 1;
  if (p.operation == Operation::batched_matmul) matrices = number(p.c.batch);
  if (p.operation == Operation::grouped_matmul) {
    const Groups groups = groups_of(p);
    matrices = groups.experts;
    rows = groups.experts > 0 ? std::ceil(groups.rows / groups.experts) : 0;
  }
  Waves result;
  result.tiles =
      matrices * std::ceil(rows / tile_m) * std::ceil(number(p.n) / tile_n) * std::max(config.split_k, std::int32_t{1});
  // Units that share a tile, or have several at a time.
  const int together = std::max(device.units / std::max(config.cta_group, std::int32_t{1}), 1);
  result.waves =
      std::ceil(result.tiles / (static_cast<double>(together) * std::max(config.groups_per_unit, std::int32_t{1})));
  return result;
}

}  // namespace microscale
