#ifndef MICROSCALE_MATMULCALL_HPP
#define MICROSCALE_MATMULCALL_HPP

#include <Microscale_MatmulOptions.hpp>
#include <Microscale_Prepare.hpp>
#include <Microscale_Reference_Matmul.hpp>
#include <Microscale_RunBackend.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

// What matmul, batched_matmul and grouped_matmul have in common: checks, the plain Problem, running a plan.
namespace microscale {

/// Bytes of workspace that a matmul with this problem needs (matmul_problem() and its like make one); aligned to 64.
inline std::int64_t workspace_bytes(const Problem& problem, const MatmulOptions& options = {}) {
  Context& context = options.context != nullptr ? *options.context : default_context();
  return context.plan(problem, {.backend = options.backend, .config = options.config}).workspace_bytes();
}

namespace Impl {

template <class T>
struct unprepared {
  using type = T;
};
template <class M>
struct unprepared<Prepared<M>> {
  using type = M;
};
template <class T>
using unprepared_t = typename unprepared<T>::type;

template <class M>
const M& original(const M& m) {
  return m;
}
template <class M>
const M& original(const Prepared<M>& m) {
  return m.original();
}

template <class T>
consteval bool is_matmul_view(std::size_t least_rank, std::size_t most_rank) {
  if constexpr (RealView<T>)
    return !std::is_same_v<storage_t<typename T::value_type>, double> && T::rank() >= least_rank &&
           T::rank() <= most_rank;
  else
    return false;
}
template <class T, int LeastRank, int MostRank>
inline constexpr bool is_matrix_or_view = is_block_scaled_matrix_v<T> || is_matmul_view<T>(LeastRank, MostRank);
template <class T, int Rank>
inline constexpr bool is_batch_or_view = is_batched_block_scaled_matrix_v<T> || is_matmul_view<T>(Rank, Rank);

template <class Exec, class A, class B, class C, class E>
consteval bool check_matmul_types() {
  static_assert(is_epilogue_v<E>, "microscale: the epilogue of a matmul must be a microscale::Epilogue");
  static_assert(can_access<Exec, typename A::memory_space> && can_access<Exec, typename B::memory_space> &&
                    can_access<Exec, typename C::memory_space>,
                "microscale: the execution space must be able to access the memory of all operands of a matmul");
  static_assert(E::template accessible_from<Exec>,
                "microscale: the execution space must be able to access the Views of the epilogue");
  if constexpr (Kokkos::is_view_v<C>)
    static_assert(!std::is_const_v<typename C::value_type>, "microscale: the output of a matmul must not be const");
  return true;
}

/// The checks that the three have in common. experts: how many the epilogue may know, -1 if none.
inline void check_matmul(const char* where, const Problem& p, std::int64_t experts) {
  const EpilogueData& e = p.epilogue;
  expects(
      p.a.cols == p.b.cols, where, "a", [&] { return "has extents " + extents(p.a.rows, p.a.cols); },
      [&] { return std::to_string(p.b.cols) + " columns, as b has"; });
  const bool gated = e.gate != Gate::none;
  expects(
      !gated || p.n % 2 == 0, where, "b", [&] { return "has " + std::to_string(p.n) + " rows"; },
      [] { return "an even number of them under a gate"; });
  expects_extents(where, "c", p.c.rows, p.c.cols, p.m, gated ? p.n / 2 : p.n);
  expects(!gated || e.beta == 0.0f, where, "beta", "is not 0", "0 together with a gate");
  expects(p.c.format.block_size == 0 || e.beta == 0.0f, where, "beta", "is not 0", "0 if c is quantized");

  const auto given = [](const VectorOperand& v) { return v.type.exponent_bits != 0; };
  const auto size = [&](const char* argument, const VectorOperand& v, std::int64_t expected) {
    expects(
        !given(v) || v.size == expected, where, argument, [&] { return "has extent " + std::to_string(v.size); },
        [&] { return std::to_string(expected); });
  };
  size("row_scale", e.row_scale, p.m);
  size("bias", e.bias, p.n);
  expects(!given(e.expert_scale) || experts >= 0, where, "expert_scale", "is given", "none: there are no experts");
  expects(e.bias.experts < 0 || experts >= 0, where, "bias", "has rank 2", "rank 1: there are no experts");
  if (experts >= 0) {
    size("expert_scale", e.expert_scale, experts);
    expects(
        e.bias.experts < 0 || e.bias.experts == experts, where, "bias",
        [&] { return "has " + std::to_string(e.bias.experts) + " rows"; },
        [&] { return "1 vector, or one for each of " + std::to_string(experts) + " experts"; });
  }
}

/// The options of a quantized output.
template <class C>
void check_output(const char* where, const MatmulOptions& options) {
  if constexpr (!Kokkos::is_view_v<C>) {
    using F = typename C::format;
    expects_options<F>(where, options.quantize);
    expects(options.quantize.axis == Axis::rows, where, "quantize.axis", "is columns", "rows");
    expects(!F::tensor_scale || options.quantize.tensor_scale.source() != TensorScaleSource::dynamic, where,
            "quantize.tensor_scale", "is dynamic",
            "a given or stored one: the largest value is not known before all are computed");
  }
}

template <class Exec, class A, class B, class C, class E>
Problem matmul_problem(const Exec& exec, Operation operation, const A& a, const B& b, const C& c, const E& epilogue,
                       const MatmulOptions& options) {
  Problem problem = problem_on(exec, operation);
  problem.a = operand(a);
  problem.b = operand(b);
  problem.c = operand(c);
  problem.m = problem.a.rows;
  problem.n = problem.b.rows;
  problem.k = problem.a.cols;
  problem.epilogue = epilogue.data();
  problem.user_functor = E::has_functor;
  problem.quantize = quantize_data(options.quantize);
  problem.hints = options.hints;
  return problem;
}

/// Runs the problem by the backend that the plan chooses; false if that is the reference.
template <class Exec>
bool run_by_backend(const Exec& exec, const Problem& problem, const MatmulOptions& options) {
  return run_by_backend(exec, problem,
                        DispatchOptions{options.backend, options.context, options.config, options.workspace.data,
                                        options.workspace.bytes});
}

// Arguments as kernels take them.

template <class F, class Space>
OperandBatch<MatrixHandle<F>> operand_batch(const BlockScaledMatrix<F, Space>& m) {
  return {m.handle(), 0, 0};
}
template <class F, class Space>
OperandBatch<MatrixHandle<F>> operand_batch(const BatchedBlockScaledMatrix<F, Space>& m) {
  return {m.handle(), m.data_stride(), m.scale_stride()};
}
template <RealView V>
auto operand_batch(const V& v) {
  if constexpr (V::rank() == 3) {
    const auto batch = strided_batch(v);
    return OperandBatch<std::remove_const_t<decltype(batch.matrix)>>{batch.matrix, batch.batch_stride};
  } else {
    const auto matrix = strided(v);
    return OperandBatch<std::remove_const_t<decltype(matrix)>>{matrix, 0};
  }
}
/// The same for what is only read.
template <class M>
auto input_batch(const M& m) {
  const auto batch = operand_batch(m);
  if constexpr (Kokkos::is_view_v<M>) {
    using T = const typename decltype(batch.first)::value_type;
    const auto& f = batch.first;
    return OperandBatch<StridedMatrix<T>>{{f.data, f.rows, f.cols, f.row_stride, f.col_stride}, batch.stride};
  } else {
    return batch;
  }
}

template <bool Batched, class A, class B, class C, class E>
auto matmul_kernel(const A& a, const B& b, const C& c, std::int64_t batch, const E& epilogue,
                   const QuantizeData& quantize) {
  const auto ka = input_batch(a);
  const auto kb = input_batch(b);
  const auto kc = operand_batch(c);
  return MatmulKernel<std::remove_const_t<decltype(ka.first)>, std::remove_const_t<decltype(kb.first)>,
                      std::remove_const_t<decltype(kc.first)>, std::remove_cvref_t<decltype(epilogue.functor())>,
                      Batched>{ka, kb, kc, batch, epilogue.data(), epilogue.functor(), quantize};
}

/// Throws if the reference could not read b.
template <class M>
void expects_original(const char* where, const M& b) {
  if constexpr (is_prepared_v<M>)
    expects(b.has_original(), where, "b", "has only a prepared form", "one that keeps its original");
}

/// The functor of an epilogue after a backend has written C. (No backend is chosen for one with a quantized C.)
template <bool Batched, class Exec, class C, class E>
void run_functor_pass(const std::string& label, const Exec& exec, const C& c, const E& epilogue) {
  if constexpr (E::has_functor && Kokkos::is_view_v<C>) {
    const auto batch = operand_batch(c);
    std::int64_t matrices = 1;
    if constexpr (Batched) matrices = static_cast<std::int64_t>(c.extent(0));
    using Matrix = std::remove_const_t<decltype(batch.first)>;
    using Functor = std::remove_cvref_t<decltype(epilogue.functor())>;
    Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, matrices * batch.first.rows * batch.first.cols),
                         FunctorPass<Matrix, Functor, Batched>{batch, epilogue.functor()});
  }
}

}  // namespace Impl
}  // namespace microscale

#endif
