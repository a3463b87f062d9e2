#include <Microscale_Bench.hpp>
#include <Microscale_BenchProduct.hpp>

#include <vector>

// The two operations on the rows of a mixture of experts, sorted by expert: grouped_quantize (the rate counts the plain
// side) and grouped_matmul (2 tokens N K operations; N and K are those of one expert) with B prepared.
namespace microscale::bench {
namespace {

Kokkos::View<const std::int32_t*, Space> on_device(const std::vector<std::int32_t>& values) {
  Kokkos::View<std::int32_t*, Space> result("indices", values.size());
  Kokkos::deep_copy(result, Kokkos::View<const std::int32_t*, Kokkos::HostSpace>(values.data(), values.size()));
  return result;
}

/// Slot s gets a share of the rows in proportion to 1/(s + 1), which is how unevenly experts are used; the first gets
/// what rounding leaves.
Groups<Space> make_groups(const GroupedProduct& p) {
  double parts = 0;
  for (std::int64_t s = 1; s <= p.active; ++s) parts += 1.0 / static_cast<double>(s);
  std::vector<std::int64_t> counts;
  std::int64_t left = p.tokens;
  for (std::int64_t s = 1; s <= p.active; ++s) {
    counts.push_back(static_cast<std::int64_t>(static_cast<double>(p.tokens) / (static_cast<double>(s) * parts)));
    left -= counts.back();
  }
  counts[0] += left;
  std::vector<std::int32_t> offsets{0}, experts, tiles;
  std::int64_t row = 0, tile = 0;
  for (std::int64_t s = 0; s < p.active; ++s) {
    const std::int64_t count = counts[static_cast<std::size_t>(s)];
    experts.push_back(static_cast<std::int32_t>(s * (p.experts / p.active)));
    tiles.push_back(static_cast<std::int32_t>(grouped_scale_offset(ScaleLayout::tcgen, row, tile)));
    row += count;
    tile += (count + 127) / 128;
    offsets.push_back(static_cast<std::int32_t>(row));
  }
  return {on_device(offsets), on_device(experts), on_device(tiles), p.active};
}

std::string extents(const GroupedProduct& p) {
  return extent("M", p.tokens) + extent("N", p.n) + extent("K", p.k) + extent("experts", p.experts);
}

template <class Format>
void add_grouped_quantize(std::vector<Case>& cases, const GroupedProduct& p) {
  cases.push_back({"grouped_quantize/F32to" + type_name<Format>() + extent("M", p.tokens) + extent("K", p.k) +
                       extent("experts", p.experts) + backend_and_threads(),
                   Ceiling::read, 0, bytes<float>(p.tokens, p.k), [p] {
                     const auto values = random_matrix<float>(p.tokens, p.k);
                     auto sources = repeat(turns(bytes<float>(p.tokens, p.k)), [&] { return copy_of(values); });
                     const Groups<Space> groups = make_groups(p);
                     const auto result = BlockScaledMatrix<Format, Space>::grouped("result", p.tokens, p.k, p.active,
                                                                                   ScaleLayout::tcgen);
                     Trial trial{waited([=](const Exec& exec) mutable {
                       GroupedQuantizeOptions<Space> options;
                       options.quantize.dispatch.backend = measured_backend();
                       grouped_quantize(exec, sources.next(), result, groups, options);
                     })};
                     add_reference(trial, waited([=](const Exec& exec) mutable {
                                     reference::grouped_quantize(exec, sources.next(), result, groups);
                                   }));
                     return trial;
                   }});
}

/// A operand: quantized with the scales of each slot on fresh tiles, or a plain matrix.
template <class T>
auto activations(const GroupedProduct& p, const Groups<Space>& groups) {
  if constexpr (BlockFormat<T>) {
    const auto result = BlockScaledMatrix<T, Space>::grouped("a", p.tokens, p.k, p.active, ScaleLayout::tcgen);
    grouped_quantize(random_matrix<float>(p.tokens, p.k), result, groups);
    return result;
  } else {
    return random_matrix<T>(p.tokens, p.k);
  }
}

template <class A, class B>
void add_grouped_matmul(std::vector<Case>& cases, std::type_identity<Pair<A, B>>, const GroupedProduct& p) {
  const double operations = 2.0 * static_cast<double>(p.tokens * p.n * p.k);
  if (too_slow(operations)) return;
  const double traffic =
      bytes<A>(p.tokens, p.k) + static_cast<double>(p.active) * bytes<B>(p.n, p.k) + bytes<float>(p.tokens, p.n);
  cases.push_back({"grouped_matmul/" + pair_name<A, B>() + extents(p) + backend_and_threads(), instruction<A, B>(),
                   operations, traffic, [p] {
                     const Groups<Space> groups = make_groups(p);
                     const auto a = activations<A>(p, groups);
                     const BatchedBlockScaledMatrix<B, Space> b("b", p.experts, p.n, p.k);
                     const auto weights = random_matrix<float>(p.n, p.k);
                     for (std::int64_t e = 0; e < p.experts; ++e) quantize(weights, b.matrix(e));
                     const auto prepared = prepare(Exec(), b, prepare_options<A>(p.tokens));
                     const Matrix<float> c("c", p.tokens, p.n);
                     const auto workspace = workspace_for(grouped_matmul_problem(Exec(), a, prepared, c, groups));
                     Trial trial{waited([=](const Exec& exec) {
                       grouped_matmul(exec, a, prepared, c, groups, Epilogue{}, options_with(workspace));
                     })};
                     add_reference(trial,
                                   waited([=](const Exec& exec) { reference::grouped_matmul(exec, a, b, c, groups); }));
                     return trial;
                   }});
}

}  // namespace

void add_grouped(std::vector<Case>& cases) {
  for (const GroupedProduct& p : grouped) {
    add_grouped_quantize<NVFP4>(cases, p);
    add_grouped_quantize<MXFP4>(cases, p);
    for_each_type(GroupedFormats(), [&](auto pair) { add_grouped_matmul(cases, pair, p); });
  }
}

}  // namespace microscale::bench
