#ifndef MICROSCALE_GROUPEDMATMUL_HPP
#define MICROSCALE_GROUPEDMATMUL_HPP

#include <Microscale_Groups.hpp>
#include <Microscale_MatmulCall.hpp>
#include <Microscale_Reference_GroupedMatmul.hpp>

namespace microscale {

namespace Impl {

template <class M>
SlotTable slot_table(const M& m, const Problem& problem) {
  SlotTable table{problem.groups, ScaleLayout::linear, problem.m, 0, problem.b.batch};
  if constexpr (is_block_scaled_matrix_v<M>) {
    table.layout = m.scale_layout();
    table.tile_rows = m.handle().tile_rows;
  }
  return table;
}

template <class A, class B, class C, class E>
auto grouped_matmul_kernel(const Problem& problem, const A& a, const B& b, const C& c, const E& epilogue) {
  const auto ka = input_batch(a).first;
  const auto kb = input_batch(b);
  const auto kc = operand_batch(c).first;
  return GroupedMatmulKernel<std::remove_const_t<decltype(ka)>, std::remove_const_t<decltype(kb.first)>,
                             std::remove_const_t<decltype(kc)>, std::remove_cvref_t<decltype(epilogue.functor())>>{
      ka,
      kb,
      kc,
      slot_table(a, problem),
      slot_table(c, problem),
      epilogue.data(),
      epilogue.functor(),
      problem.quantize};
}

}  // namespace Impl

/// The Problem of a grouped_matmul with these arguments, for Context::plan() and explain(). Throws as grouped_matmul
/// does.
template <ExecutionSpace Exec, class A, class B, class C, class Space, class E = Epilogue<>>
Problem grouped_matmul_problem(const Exec& exec, const A& a, const B& b, const C& c, const Groups<Space>& groups,
                               const E& epilogue = {}, const MatmulOptions& options = {}) {
  constexpr const char* where = "grouped_matmul";
  static_assert(Impl::check_matmul_types<Exec, A, B, C, E>());
  static_assert(
      Impl::is_matrix_or_view<A, 2, 2>,
      "microscale::grouped_matmul: a must be a BlockScaledMatrix or a Kokkos::View of rank 2 of float, half or "
      "bf16");
  static_assert(is_batched_block_scaled_matrix_v<Impl::unprepared_t<B>>,
                "microscale::grouped_matmul: b must be a BatchedBlockScaledMatrix, or what prepare() made of one");
  static_assert(
      Impl::is_matrix_or_view<C, 2, 2>,
      "microscale::grouped_matmul: c must be a BlockScaledMatrix or a Kokkos::View of rank 2 of float, half or "
      "bf16");
  static_assert(Impl::can_access<Exec, Space>,
                "microscale::grouped_matmul: the execution space must be able to access the memory of the groups");
  Problem problem = Impl::matmul_problem(exec, Operation::grouped_matmul, a, b, c, epilogue, options);
  Impl::check_matmul(where, problem, problem.b.batch);
  Impl::check_output<C>(where, options);
  for (const auto& [argument, operand] : {std::pair("a", &problem.a), {"c", &problem.c}})
    Impl::expects(operand->scale_layout == ScaleLayout::linear || operand->grouped_scales, where, argument,
                  "has tiled scales that are not grouped", "linear scales, or a matrix made by grouped()");
  const bool a_tiled = problem.a.grouped_scales, c_tiled = problem.c.grouped_scales;
  Impl::expects(
      !(a_tiled && c_tiled) || scale_tile(problem.a.scale_layout).rows == scale_tile(problem.c.scale_layout).rows,
      where, "c", [&] { return std::string("has scale layout ") + name(problem.c.scale_layout); },
      [&] { return std::string("tiles of as many rows as a's ") + name(problem.a.scale_layout); });
  problem.groups = groups.data(where, options.skipped_rows, a_tiled || c_tiled);
  return problem;
}

namespace reference {

/// microscale::grouped_matmul by the portable kernels, whatever backends are enabled.
template <ExecutionSpace Exec, class A, class B, class C, class Space, class E = Epilogue<>>
void grouped_matmul(const Exec& exec, const A& a, const B& b, const C& c, const Groups<Space>& groups,
                    const E& epilogue = {}, const MatmulOptions& options = {}) {
  const Problem problem = grouped_matmul_problem(exec, a, b, c, groups, epilogue, options);
  Impl::expects_original("reference::grouped_matmul", b);
  Impl::run_grouped_matmul("microscale::grouped_matmul[reference]", exec,
                           Impl::grouped_matmul_kernel(problem, a, Impl::original(b), c, epilogue));
}

}  // namespace reference

/// The matmul of a mixture of experts: rows are sorted by slot, and each slot's rows are multiplied with the weights of
/// its expert. C(m, n) = epilogue(sum over k of A(m, k) B(e, n, k)) with e the expert of the slot of row m.
///
/// a: BlockScaledMatrix [total, K], with linear scales or made by grouped(), or a View [total, K] of float, half, bf16.
/// b: BatchedBlockScaledMatrix [experts, N, K], or what prepare() made of one.
/// c: a View [total, N] of float, half or bf16, or a BlockScaledMatrix with linear scales or made by grouped() (its
///    scales are then found through the same a_scale_offsets as a's). With a gate it has N/2 columns.
/// groups: row offsets, expert ids and scale offsets of groups.slots slots, read by the kernels. Slots may be empty or
///    skipped (id -1). Rows of skipped slots and rows in no slot are zeroed, or left untouched by options.skipped_rows,
///    the same in every kernel. Whatever the arrays hold, nothing outside of the operands is read or written: an id
///    outside of [0, experts) skips the slot, and a slot that is not within the rows is as if it were not there.
/// In the epilogue, expert_scale and the rows of a rank-2 bias are indexed by expert id, row_scale by row. A functor is
/// called with (m, n, value), not for skipped rows. options.hints say how many rows to expect and change speed only.
///
/// Nothing is read back to the host. Everything else is as for matmul.
template <ExecutionSpace Exec, class A, class B, class C, class Space, class E = Epilogue<>>
void grouped_matmul(const Exec& exec, const A& a, const B& b, const C& c, const Groups<Space>& groups,
                    const E& epilogue = {}, const MatmulOptions& options = {}) {
  const Problem problem = grouped_matmul_problem(exec, a, b, c, groups, epilogue, options);
  if (!Impl::run_by_backend(exec, problem, options)) {
    reference::grouped_matmul(exec, a, b, c, groups, epilogue, options);
  } else if constexpr (E::has_functor && Kokkos::is_view_v<C>) {
    const auto kc = Impl::operand_batch(c);
    using Matrix = std::remove_const_t<decltype(kc.first)>;
    using Functor = std::remove_cvref_t<decltype(epilogue.functor())>;
    Kokkos::parallel_for(
        "microscale::grouped_matmul[functor]", Impl::IndexRange<Exec>(exec, 0, problem.m),
        Impl::GroupedFunctorPass<Matrix, Functor>{{kc, epilogue.functor()}, Impl::slot_table(a, problem)});
  }
}

/// grouped_matmul on the default instance of the execution space of c's memory.
template <class A, class B, class C, class Space, class E = Epilogue<>>
requires(!ExecutionSpace<A>) void grouped_matmul(const A& a, const B& b, const C& c, const Groups<Space>& groups,
                                                 const E& epilogue = {}, const MatmulOptions& options = {}) {
  grouped_matmul(typename C::memory_space::execution_space{}, a, b, c, groups, epilogue, options);
}

}  // namespace microscale

#endif
