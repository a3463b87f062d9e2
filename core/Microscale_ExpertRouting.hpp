#ifndef MICROSCALE_EXPERTROUTING_HPP
#define MICROSCALE_EXPERTROUTING_HPP

#include <Microscale_Groups.hpp>
#include <Microscale_Quantize.hpp>
#include <Microscale_Reference_ExpertRouting.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

namespace microscale {

/// Which rows of a mixture-of-experts layer go to which expert: the rows of all experts sorted by expert, and within an
/// expert by (token, j), where j in [0, k) counts a token's choices. Filled by build_expert_offsets; until then it
/// holds zeros.
///
/// There is one slot an expert, slot e for expert e, empty or not, so that the number of slots is known on the host.
/// Copies share the memory, as Views do. The constructor allocates (zero-filled, with a fence of the default instance);
/// const members may be called by several threads at once.
template <class MemorySpace>
class ExpertRouting {
  static_assert(Kokkos::is_memory_space_v<MemorySpace>,
                "microscale::ExpertRouting<MemorySpace>: the argument must be a Kokkos memory space");

 public:
  using memory_space = MemorySpace;
  using index_view = Kokkos::View<const std::int32_t*, MemorySpace>;

  ExpertRouting() = default;

  /// For `tokens` tokens of `k` choices among `experts`; a_scale_offsets will be those of `layout`. Throws
  /// std::invalid_argument for negative sizes, and for tokens * k beyond 2^31 - 1.
  ExpertRouting(const std::string& label, std::int64_t tokens, std::int64_t k, std::int64_t experts,
                ScaleLayout layout = ScaleLayout::tcgen)
      : m_tokens(tokens), m_k(k), m_experts(experts), m_layout(layout) {
    constexpr const char* where = "ExpertRouting";
    constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
    const auto check = [&](const char* argument, std::int64_t n) {
      Impl::expects(
          0 <= n && n < limit, where, argument, [&] { return "is " + std::to_string(n); },
          [] { return "0 to 2^31 - 2"; });
    };
    check("tokens", tokens);
    check("k", k);
    check("experts", experts);
    Impl::expects(
        tokens * k <= limit, where, "tokens * k", [&] { return "is " + std::to_string(tokens * k); },
        [] { return "at most 2^31 - 1, as rows are numbered by int32"; });
    m_chunk = std::max<std::int64_t>(64, experts);  // so that `counts` is never larger than the assignments
    m_row_offsets = indices(label + "::row_offsets", experts + 1);
    m_expert_ids = indices(label + "::expert_ids", experts);
    m_a_scale_offsets = indices(label + "::a_scale_offsets", experts);
    m_permutation = indices(label + "::permutation", rows());
    m_inverse = indices(label + "::inverse", rows());
    m_counts = indices(label + "::counts", chunks() * experts);
  }

  std::int64_t tokens() const { return m_tokens; }
  std::int64_t k() const { return m_k; }
  std::int64_t experts() const { return m_experts; }
  ScaleLayout scale_layout() const { return m_layout; }
  /// Rows that gather() writes: tokens() * k(). Dropped choices leave the last ones unused.
  std::int64_t rows() const { return m_tokens * m_k; }

  /// [experts + 1]: expert e has the rows [row_offsets(e), row_offsets(e + 1)).
  index_view row_offsets() const { return m_row_offsets; }
  /// [experts]: e
  index_view expert_ids() const { return m_expert_ids; }
  /// [experts]: see grouped_scale_offset(); empty experts take no tile.
  index_view a_scale_offsets() const { return m_a_scale_offsets; }
  /// [rows()]: token * k + j of the choice that a row serves, -1 for unused rows.
  index_view permutation() const { return m_permutation; }
  /// [rows()]: the row that serves choice token * k + j, -1 if it was dropped.
  index_view inverse() const { return m_inverse; }

  /// What grouped_quantize and grouped_matmul take.
  Groups<MemorySpace> groups() const { return {m_row_offsets, m_expert_ids, m_a_scale_offsets, m_experts}; }

  /// What the kernels see.
  Impl::RoutingData data(const Impl::StridedMatrix<const std::int32_t>& topk_ids) const {
    return {topk_ids,
            m_experts,
            m_chunk,
            chunks(),
            m_layout,
            m_counts.data(),
            m_row_offsets.data(),
            m_expert_ids.data(),
            m_a_scale_offsets.data(),
            m_permutation.data(),
            m_inverse.data()};
  }

 private:
  using mutable_view = Kokkos::View<std::int32_t*, MemorySpace>;
  static mutable_view indices(const std::string& label, std::int64_t n) {
    return mutable_view(label, static_cast<std::size_t>(n));
  }
  std::int64_t chunks() const { return (rows() + m_chunk - 1) / m_chunk; }

  std::int64_t m_tokens = 0, m_k = 0, m_experts = 0;
  std::int64_t m_chunk = 1;
  ScaleLayout m_layout = ScaleLayout::tcgen;
  mutable_view m_row_offsets, m_expert_ids, m_a_scale_offsets, m_permutation, m_inverse;
  mutable_view m_counts;  // workspace of build_expert_offsets
};

namespace Impl {

/// The compile-time rules of gather and combine: real Views of rank 2 within reach.
template <class Exec, class Space, class... Views>
consteval bool check_routing_types() {
  static_assert((RealView<Views> && ...),
                "microscale: gather and combine take Kokkos::Views of float, double, half or bf16 with layout "
                "LayoutRight, LayoutLeft or LayoutStride");
  static_assert(((Views::rank() == 2) && ...), "microscale: gather and combine take Views of rank 2");
  static_assert(can_access<Exec, Space> && (can_access<Exec, typename Views::memory_space> && ...),
                "microscale: the execution space must be able to access the memory of the routing and of every View");
  return true;
}

}  // namespace Impl

/// Sorts the choices of a router by expert. topk_ids: View [tokens, k] of std::int32_t in any layout, the experts that
/// each token chose. An id outside of 0..experts - 1 (-1, say) drops the choice; an expert may be named twice by a
/// token. Every array of `routing` is written.
///
/// Asynchronous on exec; allocates nothing (the routing holds the workspace, so one routing serves one instance at a
/// time); the same result for every execution space and number of threads. Throws std::invalid_argument if the extents
/// of topk_ids are not those of the routing.
template <ExecutionSpace Exec, class Ids, class Space>
void build_expert_offsets(const Exec& exec, const Ids& topk_ids, const ExpertRouting<Space>& routing) {
  static_assert(Kokkos::is_view_v<Ids>, "microscale::build_expert_offsets: topk_ids must be a Kokkos::View");
  static_assert(Ids::rank() == 2 && std::is_same_v<typename Ids::non_const_value_type, std::int32_t>,
                "microscale::build_expert_offsets: topk_ids must be a rank-2 View of std::int32_t");
  static_assert(Impl::can_access<Exec, Space> && Impl::can_access<Exec, typename Ids::memory_space>,
                "microscale::build_expert_offsets: the execution space must be able to access the memory of both "
                "topk_ids and the routing");
  const auto i = [](auto n) { return static_cast<std::int64_t>(n); };
  Impl::expects_extents("build_expert_offsets", "topk_ids", i(topk_ids.extent(0)), i(topk_ids.extent(1)),
                        routing.tokens(), routing.k());
  if (routing.row_offsets().data() == nullptr) return;  // one without memory
  Impl::build_expert_offsets(exec, routing.data({topk_ids.data(), i(topk_ids.extent(0)), i(topk_ids.extent(1)),
                                                 i(topk_ids.stride(0)), i(topk_ids.stride(1))}));
}

/// build_expert_offsets on the default instance of the execution space of topk_ids.
template <class Ids, class Space>
void build_expert_offsets(const Ids& topk_ids, const ExpertRouting<Space>& routing) {
  build_expert_offsets(typename Ids::execution_space{}, topk_ids, routing);
}

/// The same into a new routing, which is allocated here (with a fence of the default instance); the sorting itself is
/// asynchronous on exec.
template <ExecutionSpace Exec, class Ids>
auto build_expert_offsets(const Exec& exec, const Ids& topk_ids, std::int64_t experts,
                          ScaleLayout layout = ScaleLayout::tcgen) {
  const ExpertRouting<typename Ids::memory_space> routing(
      "microscale::ExpertRouting", static_cast<std::int64_t>(topk_ids.extent(0)),
      static_cast<std::int64_t>(topk_ids.extent(1)), experts, layout);
  build_expert_offsets(exec, topk_ids, routing);
  return routing;
}

/// Copies the tokens to the rows of their experts: out(row, :) = x(token, :). x: View [tokens, d]; out: View
/// [tokens * k, d]; each of float, double, half or bf16 in any layout and stride (of different types: by way of float,
/// rounded to nearest even). Unused rows become 0. x and out must not overlap.
///
/// Asynchronous on exec; allocates nothing; safe from several threads for distinct out. Fastest when rows are
/// contiguous. Throws std::invalid_argument for extents that do not fit.
template <ExecutionSpace Exec, class In, class Space, class Out>
void gather(const Exec& exec, const In& x, const ExpertRouting<Space>& routing, const Out& out) {
  static_assert(Impl::check_routing_types<Exec, Space, In, Out>());
  static_assert(!std::is_const_v<typename Out::value_type>, "microscale::gather: out must not be const");
  const auto from = Impl::source_of(x, Axis::rows);
  const auto to = Impl::strided(out);
  Impl::expects_extents("gather", "x", from.rows, from.cols, routing.tokens(), to.cols);
  Impl::expects_extents("gather", "out", to.rows, to.cols, routing.rows(), from.cols);
  constexpr std::int64_t width = Impl::columns_per_index<Exec>;
  const Impl::GatherKernel kernel{from, to, routing.permutation().data(), routing.k(), width};
  Kokkos::parallel_for("microscale::gather[reference]",
                       Impl::IndexRange<Exec>(exec, 0, to.rows * ((to.cols + width - 1) / width)), kernel);
}

/// gather on the default instance of out's execution space.
template <class In, class Space, class Out>
void gather(const In& x, const ExpertRouting<Space>& routing, const Out& out) {
  gather(typename Out::execution_space{}, x, routing, out);
}

/// Brings the rows back to their tokens: out(t, :) = sum over j = 0..k - 1, in this order, of weights(t, j) * y(row of
/// choice (t, j), :), by fmaf in float from 0, then rounded to out's type. y: View [tokens * k, d]; weights: View
/// [tokens, k]; out: View [tokens, d]; each of float, double, half or bf16 in any layout and stride. Dropped choices do
/// not count, whatever their weights are; a token without any gets 0. out must not overlap the others.
///
/// Asynchronous on exec; allocates nothing; safe from several threads for distinct out; the same bits always. Throws
/// std::invalid_argument for extents that do not fit.
template <ExecutionSpace Exec, class In, class Weights, class Space, class Out>
void combine(const Exec& exec, const In& y, const Weights& weights, const ExpertRouting<Space>& routing,
             const Out& out) {
  static_assert(Impl::check_routing_types<Exec, Space, In, Weights, Out>());
  static_assert(!std::is_const_v<typename Out::value_type>, "microscale::combine: out must not be const");
  const auto from = Impl::source_of(y, Axis::rows);
  const auto factors = Impl::source_of(weights, Axis::rows);
  const auto to = Impl::strided(out);
  Impl::expects_extents("combine", "y", from.rows, from.cols, routing.rows(), to.cols);
  Impl::expects_extents("combine", "weights", factors.rows, factors.cols, routing.tokens(), routing.k());
  Impl::expects_extents("combine", "out", to.rows, to.cols, routing.tokens(), from.cols);
  constexpr std::int64_t width = Impl::columns_per_index<Exec>;
  const Impl::CombineKernel kernel{from, factors, to, routing.inverse().data(), width};
  Kokkos::parallel_for("microscale::combine[reference]",
                       Impl::IndexRange<Exec>(exec, 0, to.rows * ((to.cols + width - 1) / width)), kernel);
}

/// combine on the default instance of out's execution space.
template <class In, class Weights, class Space, class Out>
void combine(const In& y, const Weights& weights, const ExpertRouting<Space>& routing, const Out& out) {
  combine(typename Out::execution_space{}, y, weights, routing, out);
}

}  // namespace microscale

#endif
