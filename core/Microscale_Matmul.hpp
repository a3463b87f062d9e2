#ifndef MICROSCALE_MATMUL_HPP
#define MICROSCALE_MATMUL_HPP

#include <Microscale_MatmulCall.hpp>

namespace microscale {

/// The Problem of a matmul with these arguments, for Context::plan() and explain(). Throws as matmul does.
template <ExecutionSpace Exec, class A, class B, class C, class E = Epilogue<>>
Problem matmul_problem(const Exec& exec, const A& a, const B& b, const C& c, const E& epilogue = {},
                       const MatmulOptions& options = {}) {
  constexpr const char* where = "matmul";
  static_assert(Impl::check_matmul_types<Exec, A, B, C, E>());
  static_assert(Impl::is_matrix_or_view<A, 1, 2>,
                "microscale::matmul: a must be a BlockScaledMatrix or a Kokkos::View of rank 1 or 2 of float, half or "
                "bf16");
  static_assert(is_block_scaled_matrix_v<Impl::unprepared_t<B>>,
                "microscale::matmul: b must be a BlockScaledMatrix, or what prepare() made of one");
  static_assert(Impl::is_matrix_or_view<C, 1, 2>,
                "microscale::matmul: c must be a BlockScaledMatrix or a Kokkos::View of rank 1 or 2 of float, half or "
                "bf16");
  Problem problem = Impl::matmul_problem(exec, Operation::matmul, a, b, c, epilogue, options);
  Impl::check_matmul(where, problem, -1);
  Impl::check_output<C>(where, options);
  for (const auto& [argument, operand] : {std::pair("a", &problem.a), {"b", &problem.b}, {"c", &problem.c}})
    Impl::expects(!operand->grouped_scales, where, argument, "has grouped scales",
                  "a matrix that is not grouped (grouped_matmul takes those)");
  return problem;
}

namespace reference {

/// microscale::matmul by the portable kernels, whatever backends are enabled.
template <ExecutionSpace Exec, class A, class B, class C, class E = Epilogue<>>
void matmul(const Exec& exec, const A& a, const B& b, const C& c, const E& epilogue = {},
            const MatmulOptions& options = {}) {
  const Problem problem = matmul_problem(exec, a, b, c, epilogue, options);
  Impl::expects_original("reference::matmul", b);
  Impl::run_matmul("microscale::matmul[reference]", exec,
                   Impl::matmul_kernel<false>(a, Impl::original(b), c, 1, epilogue, problem.quantize));
}

}  // namespace reference

/// C(m, n) = epilogue(sum over k of A(m, k) B(n, k)).
///
/// a: BlockScaledMatrix [M, K], or a View [M, K] (rank 1: one row) of float, half or bf16.
/// b: BlockScaledMatrix [N, K], or what prepare() made of one.
/// c: a View [M, N] (rank 1: one row) of float, half or bf16, or a BlockScaledMatrix [M, N] that the result is
///    quantized into by options.quantize; a format with a tensor scale (NVFP4) needs one that is given or stored. With
///    a gate c has N/2 columns.
/// All formats and scale layouts go together, and Views may have any layout and strides; padding scales of a quantized
/// c are zeroed. M, N and K may be 0; K = 0 gives the epilogue of zeros. c must overlap neither a, b nor anything that
/// the epilogue reads.
///
/// The value is defined in docs/numerics.md: sums in binary32, in blocks of ascending k. The reference gives the same
/// bits on every execution space (but for exp, tanh and erf, which are the platform's); a backend may sum in another
/// order within its bound.
///
/// A float a costs a fused multiply-add a product: on CPUs it is many times slower than half or bf16 unless the program is
/// compiled for a processor with FMA instructions (-march=native, say).
///
/// Asynchronous on exec; allocates nothing; may be called by several threads for distinct c. Throws
/// std::invalid_argument for extents, scales or options that do not fit, before anything is launched, and what
/// Context::plan() throws.
template <ExecutionSpace Exec, class A, class B, class C, class E = Epilogue<>>
void matmul(const Exec& exec, const A& a, const B& b, const C& c, const E& epilogue = {},
            const MatmulOptions& options = {}) {
  const Problem problem = matmul_problem(exec, a, b, c, epilogue, options);
  if (Impl::run_by_backend(exec, problem, options))
    Impl::run_functor_pass<false>("microscale::matmul[functor]", exec, c, epilogue);
  else
    reference::matmul(exec, a, b, c, epilogue, options);
}

/// matmul on the default instance of the execution space of c's memory.
template <class A, class B, class C, class E = Epilogue<>>
requires(!ExecutionSpace<A>) void matmul(const A& a, const B& b, const C& c, const E& epilogue = {},
                                         const MatmulOptions& options = {}) {
  matmul(typename C::memory_space::execution_space{}, a, b, c, epilogue, options);
}

}  // namespace microscale

#endif
