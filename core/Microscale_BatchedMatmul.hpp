#ifndef MICROSCALE_BATCHEDMATMUL_HPP
#define MICROSCALE_BATCHEDMATMUL_HPP

#include <Microscale_MatmulCall.hpp>

namespace microscale {

/// The Problem of a batched_matmul with these arguments, for Context::plan() and explain(). Throws as batched_matmul
/// does.
template <ExecutionSpace Exec, class A, class B, class C, class E = Epilogue<>>
Problem batched_matmul_problem(const Exec& exec, const A& a, const B& b, const C& c, const E& epilogue = {},
                               const MatmulOptions& options = {}) {
  constexpr const char* where = "batched_matmul";
  static_assert(Impl::check_matmul_types<Exec, A, B, C, E>());
  static_assert(
      Impl::is_batch_or_view<A, 3>,
      "microscale::batched_matmul: a must be a BatchedBlockScaledMatrix or a Kokkos::View of rank 3 of float, "
      "half or bf16");
  static_assert(is_batched_block_scaled_matrix_v<Impl::unprepared_t<B>>,
                "microscale::batched_matmul: b must be a BatchedBlockScaledMatrix, or what prepare() made of one");
  static_assert(
      Impl::is_batch_or_view<C, 3>,
      "microscale::batched_matmul: c must be a BatchedBlockScaledMatrix or a Kokkos::View of rank 3 of float, "
      "half or bf16");
  const Problem problem = Impl::matmul_problem(exec, Operation::batched_matmul, a, b, c, epilogue, options);
  for (const auto& [argument, operand] : {std::pair("a", &problem.a), {"c", &problem.c}})
    Impl::expects(
        operand->batch == problem.b.batch, where, argument,
        [batch = operand->batch] { return "has batch " + std::to_string(batch); },
        [&] { return std::to_string(problem.b.batch) + ", as b has"; });
  Impl::check_matmul(where, problem, problem.b.batch);
  Impl::check_output<C>(where, options);
  return problem;
}

namespace reference {

/// microscale::batched_matmul by the portable kernels, whatever backends are enabled.
template <ExecutionSpace Exec, class A, class B, class C, class E = Epilogue<>>
void batched_matmul(const Exec& exec, const A& a, const B& b, const C& c, const E& epilogue = {},
                    const MatmulOptions& options = {}) {
  const Problem problem = batched_matmul_problem(exec, a, b, c, epilogue, options);
  Impl::expects_original("reference::batched_matmul", b);
  Impl::run_matmul("microscale::batched_matmul[reference]", exec,
                   Impl::matmul_kernel<true>(a, Impl::original(b), c, problem.b.batch, epilogue, problem.quantize));
}

}  // namespace reference

/// C(e) = epilogue(A(e) B(e)^T) for each e of a batch of equal products.
///
/// a: BatchedBlockScaledMatrix [batch, M, K], or a View of that shape of float, half or bf16.
/// b: BatchedBlockScaledMatrix [batch, N, K], or what prepare() made of one.
/// c: a View [batch, M, N] of float, half or bf16, or a BatchedBlockScaledMatrix; with a gate it has N/2 columns.
/// In the epilogue, expert_scale and the rows of a rank-2 bias belong to the matrices of the batch, row_scale has M
/// entries and is used for all, and a functor is called with (e, m, n, value). A given tensor scale of a quantized c is
/// used for every matrix. Everything else is as for matmul.
template <ExecutionSpace Exec, class A, class B, class C, class E = Epilogue<>>
void batched_matmul(const Exec& exec, const A& a, const B& b, const C& c, const E& epilogue = {},
                    const MatmulOptions& options = {}) {
  const Problem problem = batched_matmul_problem(exec, a, b, c, epilogue, options);
  if (Impl::run_by_backend(exec, problem, options))
    Impl::run_functor_pass<true>("microscale::batched_matmul[functor]", exec, c, epilogue);
  else
    reference::batched_matmul(exec, a, b, c, epilogue, options);
}

/// batched_matmul on the default instance of the execution space of c's memory.
template <class A, class B, class C, class E = Epilogue<>>
requires(!ExecutionSpace<A>) void batched_matmul(const A& a, const B& b, const C& c, const E& epilogue = {},
                                                 const MatmulOptions& options = {}) {
  batched_matmul(typename C::memory_space::execution_space{}, a, b, c, epilogue, options);
}

}  // namespace microscale

#endif
