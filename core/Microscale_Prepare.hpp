#ifndef MICROSCALE_PREPARE_HPP
#define MICROSCALE_PREPARE_HPP

#include <Microscale_Operand.hpp>
#include <Microscale_RunBackend.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace microscale {

/// What prepare() should know about the products to come.
struct PrepareOptions {
  std::int64_t typical_m = 256;        ///< rows of A
  std::optional<FormatId> a_format{};  ///< format_id<F>, or bfloat16_id and its like; absent: that of b
  FormatId c_format = float32_id;
  bool keep_original = true;   ///< if not, only the backend that was chosen can use the result
  std::string_view backend{};  ///< forced; an error if it cannot run
  Context* context = nullptr;  ///< null: default_context()
};

/// A B operand, once more in the form that a backend likes best. Made by prepare(); copies share the memory.
template <class Matrix>
class Prepared {
 public:
  using matrix_type = Matrix;
  using format = typename Matrix::format;
  using memory_space = typename Matrix::memory_space;

  /// The matrix as it was given, in no other form: what prepare() returns where the reference is chosen.
  explicit Prepared(const Matrix& original) : m_original(original), m_operand(Impl::operand(original)) {}

  std::int64_t rows() const { return m_operand.rows; }
  std::int64_t cols() const { return m_operand.cols; }
  bool has_original() const { return !m_operand.original_dropped; }
  /// Empty if the original was dropped.
  const Matrix& original() const { return m_original; }
  /// Bytes of the prepared form; 0 if there is none.
  std::int64_t prepared_bytes() const { return static_cast<std::int64_t>(m_bytes.extent(0)); }
  /// As dispatch sees it.
  const Operand& operand() const { return m_operand; }

  /// The same with a prepared form, which `operand` points at and `bytes` owns.
  Prepared with_form(const Operand& operand, const Kokkos::View<std::uint8_t*, memory_space>& bytes) const {
    Prepared result = *this;
    result.m_operand = operand;
    result.m_bytes = bytes;
    return result;
  }
  /// The same without the original, whose memory is freed if nobody else has it.
  Prepared without_original() const {
    Prepared result = *this;
    result.m_original = Matrix();
    result.m_operand.data = nullptr;
    result.m_operand.scales = nullptr;
    result.m_operand.original_dropped = true;
    if constexpr (format::tensor_scale) result.m_tensor_scale = m_original.tensor_scale();
    return result;
  }

 private:
  Matrix m_original;
  Operand m_operand;
  Kokkos::View<std::uint8_t*, memory_space> m_bytes;
  typename Matrix::tensor_scale_type m_tensor_scale;
};

template <BlockFormat Format, class MemorySpace>
using PreparedMatrix = Prepared<BlockScaledMatrix<Format, MemorySpace>>;
/// The weights of all experts, prepared.
template <BlockFormat Format, class MemorySpace>
using PreparedBatch = Prepared<BatchedBlockScaledMatrix<Format, MemorySpace>>;

template <class T>
struct is_prepared : std::false_type {};
template <class M>
struct is_prepared<Prepared<M>> : std::true_type {};
template <class T>
inline constexpr bool is_prepared_v = is_prepared<T>::value;

namespace Impl {
template <class M>
Operand operand(const Prepared<M>& m) {
  return m.operand();
}
}  // namespace Impl

/// Repacks b, a BlockScaledMatrix or BatchedBlockScaledMatrix that will be the B operand of many matmuls, into the form
/// that the backend chosen for them likes best. The result can be used by every matmul; it keeps the original unless
/// told not to, and is the original itself where the backend has no such form (the reference has none). b must not
/// change while the result is used.
///
/// Asynchronous on exec, but allocates (on the default instance, which fences). Throws std::invalid_argument if b has
/// grouped scales, std::runtime_error as Context::plan() does. Thread-safe.
template <ExecutionSpace Exec, class Matrix>
Prepared<Matrix> prepare(const Exec& exec, const Matrix& b, const PrepareOptions& options = {}) {
  static_assert(is_block_scaled_matrix_v<Matrix> || is_batched_block_scaled_matrix_v<Matrix>,
                "microscale::prepare: b must be a BlockScaledMatrix or a BatchedBlockScaledMatrix");
  static_assert(Impl::can_access<Exec, typename Matrix::memory_space>,
                "microscale::prepare: the execution space must be able to access the memory of b");
  using Space = typename Matrix::memory_space;
  constexpr bool batched = is_batched_block_scaled_matrix_v<Matrix>;
  if constexpr (!batched)
    Impl::expects(!b.has_grouped_scales(), "prepare", "b", "has grouped scales", "a matrix that is not grouped");

  Problem problem = Impl::problem_on(exec, batched ? Operation::grouped_matmul : Operation::matmul);
  problem.m = options.typical_m;
  problem.n = b.rows();
  problem.k = b.cols();
  problem.b = Impl::operand(b);
  const auto typical = [&](FormatId format, std::int64_t cols) {
    Operand result;
    result.format = format;
    result.rows = options.typical_m;
    result.cols = cols;
    result.row_stride = format.block_size > 0 ? packed_bytes(format, cols) : cols;
    return result;
  };
  problem.a = typical(options.a_format.value_or(format_id<typename Matrix::format>), b.cols());
  problem.c = typical(options.c_format, b.rows());
  problem.hints.estimated_total_m = options.typical_m;
  if constexpr (batched) problem.groups.slots = problem.hints.active_experts = b.batch();

  Context& context = options.context != nullptr ? *options.context : default_context();
  const Plan plan = context.plan(problem, {.backend = options.backend, .preparing = true});
  Prepared<Matrix> result(b);
  if (plan.prepared_bytes() == 0) return result;
  const Kokkos::View<std::uint8_t*, Space> bytes(
      Kokkos::view_alloc("microscale::prepared", Kokkos::WithoutInitializing), plan.prepared_bytes());
  const std::string label = std::string("microscale::prepare[") + plan.backend()->name() + "]";
  const Kokkos::Profiling::ScopedRegion region(label);
  const Impl::NativeInstance<Exec> instance(exec, label);
  result = result.with_form(plan.prepare(problem, bytes.data(), plan.prepared_bytes(), instance.native()), bytes);
  if (options.keep_original) return result;
  exec.fence("microscale::prepare: the original is freed");
  return result.without_original();
}

/// prepare on the default instance of the execution space of b's memory.
template <class Matrix>
requires(!ExecutionSpace<Matrix>) Prepared<Matrix> prepare(const Matrix& b, const PrepareOptions& options = {}) {
  return prepare(typename Matrix::memory_space::execution_space{}, b, options);
}

}  // namespace microscale

#endif
