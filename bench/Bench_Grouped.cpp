#include <Microscale_Bench.hpp>

#include <algorithm>
#include <exception>
#include <vector>

// The two operations on the rows of a mixture of experts, sorted by expert: grouped_quantize (bytes/s counts the plain
// side) and grouped_matmul (FLOP/s counts 2 tokens N K; N and K are those of one expert).
namespace microscale::bench {
namespace {

Kokkos::View<const std::int32_t*, Space> on_device(const std::vector<std::int32_t>& values) {
  Kokkos::View<std::int32_t*, Space> result("indices", values.size());
  Kokkos::deep_copy(result, Kokkos::View<const std::int32_t*, Kokkos::HostSpace>(values.data(), values.size()));
  return result;
}

/// Each active slot gets half of the rows that are left, and the last one the rest.
Groups<Space> make_groups(const GroupedProduct& p) {
  std::vector<std::int32_t> offsets{0}, experts, tiles;
  std::int64_t row = 0, tile = 0;
  for (std::int64_t s = 0; s < p.active; ++s) {
    const std::int64_t left = p.tokens - row;
    const std::int64_t count = s + 1 == p.active ? left : std::min(left, std::max<std::int64_t>(1, left / 2));
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
void add_grouped_quantize(const GroupedProduct& p) {
  add(std::string("grouped_quantize/float/") + Format::name + extents(p), "reference", [p](benchmark::State& state) {
    const auto source = random_matrix<float>("source", p.tokens, p.k);
    const Groups<Space> groups = make_groups(p);
    const auto result =
        BlockScaledMatrix<Format, Space>::grouped("result", p.tokens, p.k, p.active, ScaleLayout::tcgen);
    measure(state, result.data().data(), {{"bytes/s", static_cast<double>(p.tokens * p.k) * sizeof(float)}},
            [&](const Exec& exec) { reference::grouped_quantize(exec, source, result, groups); });
  });
}

/// A operand: quantized with the scales of each slot on fresh tiles, or a plain matrix.
template <class T>
auto activations(const GroupedProduct& p, const Groups<Space>& groups) {
  if constexpr (BlockFormat<T>) {
    const auto result = BlockScaledMatrix<T, Space>::grouped("a", p.tokens, p.k, p.active, ScaleLayout::tcgen);
    grouped_quantize(random_matrix<float>("values", p.tokens, p.k), result, groups);
    return result;
  } else {
    return random_matrix<T>("a", p.tokens, p.k);
  }
}

template <class A, class B>
void add_grouped_matmul(std::type_identity<Pair<A, B>>, const GroupedProduct& p, std::string_view backend) {
  add(std::string("grouped_matmul/") + type_name<A> + '/' + B::name + extents(p), std::string(backend),
      [p, backend](benchmark::State& state) {
        const Groups<Space> groups = make_groups(p);
        const auto a = activations<A>(p, groups);
        const BatchedBlockScaledMatrix<B, Space> b("b", p.experts, p.n, p.k);
        for (std::int64_t e = 0; e < p.experts; ++e) quantize(random_matrix<float>("weights", p.n, p.k), b.matrix(e));
        const Matrix<float> c("c", p.tokens, p.n);
        try {
          const double operations = 2.0 * static_cast<double>(p.tokens * p.n * p.k);
          measure(state, c.data(), {{"FLOP/s", operations}}, [&](const Exec& exec) {
            grouped_matmul(exec, a, b, c, groups, Epilogue{}, MatmulOptions{.backend = backend});
          });
        } catch (const std::exception& e) {
          state.SkipWithError(e.what());
        }
      });
}

}  // namespace

void add_grouped() {
  for (const GroupedProduct& p : grouped) {
    add_grouped_quantize<NVFP4>(p);
    add_grouped_quantize<MXFP4>(p);
    for (const BackendInfo& backend : backends())
      if (backend.available)
        for_each_type(GroupedFormats(), [&](auto pair) { add_grouped_matmul(pair, p, backend.name); });
  }
}

}  // namespace microscale::bench
