// Misuse of the operations, one case a macro. Without any of them this file compiles.
#include <Microscale.hpp>

namespace ms = microscale;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Space = Exec::memory_space;

/// A memory that no host thread can reach.
struct Elsewhere {
  using memory_space = Elsewhere;
  using execution_space = Exec;
  using device_type = Kokkos::Device<Exec, Elsewhere>;
  using size_type = std::size_t;
  static constexpr const char* name() { return "Elsewhere"; }
};

struct NotAFormat {
  static constexpr int block_size = 32;
};

/// E8M0 scales with a tensor scale.
struct TwiceScaled : ms::MXFP4 {
  static constexpr bool tensor_scale = true;
};

void misuse() {
  const Exec exec;
  const Kokkos::View<float**, Space> view("view", 4, 32);
  const Kokkos::View<double**, Space> doubles("doubles", 4, 32);
  const ms::BlockScaledMatrix<ms::MXFP4, Space> matrix("matrix", 4, 32);
  ms::quantize(exec, view, matrix);
  ms::dequantize(exec, matrix, doubles);
  const Kokkos::View<std::int32_t**, Space> ids("ids", 4, 2);
  const Kokkos::View<std::int64_t**, Space> long_ids("long_ids", 4, 2);
  const auto routing = ms::build_expert_offsets(exec, ids, 3);
  const Kokkos::View<float**, Space> gathered("gathered", 8, 32);
  ms::gather(exec, view, routing, gathered);
#if defined(INTEGER_SOURCE)
  ms::quantize(exec, Kokkos::View<int**, Space>("ints", 4, 32), matrix);
#elif defined(RANK_3_SOURCE)
  ms::quantize(exec, Kokkos::View<float***, Space>("cube", 4, 32, 1), matrix);
#elif defined(CONST_DESTINATION)
  ms::dequantize(exec, matrix, Kokkos::View<const float**, Space>(view));
#elif defined(NO_INSTANCE)
  ms::reference::quantize(0, view, matrix);
#elif defined(UNREACHABLE_MATRIX)
  ms::quantize(exec, view, *static_cast<const ms::BlockScaledMatrix<ms::MXFP4, Elsewhere>*>(nullptr));
#elif defined(NO_FORMAT)
  ms::BlockScaledMatrix<NotAFormat, Space> wrong("wrong", 4, 32);
#elif defined(TENSOR_SCALE_OVER_E8M0)
  ms::BlockScaledMatrix<TwiceScaled, Space> wrong("wrong", 4, 32);
#elif defined(NO_MEMORY_SPACE)
  ms::BlockScaledMatrix<ms::MXFP4, float> wrong("wrong", 4, 32);
#elif defined(WRAPPED_FLOATS)
  ms::BlockScaledMatrix<ms::MXFP4, Space>::wrap(view, matrix.scales(), 4, 32);
#elif defined(TENSOR_SCALE_OF_DOUBLE)
  ms::TensorScale::decode(Kokkos::View<double, Space>("s"));
#elif defined(TENSOR_SCALE_OF_BF16)
  ms::TensorScale::decode(ms::bf16(1.0f));
#elif defined(LONG_EXPERT_IDS)
  ms::build_expert_offsets(exec, long_ids, routing);
#elif defined(INTEGER_ROWS)
  ms::gather(exec, ids, routing, gathered);
#elif defined(CONST_ROWS)
  ms::gather(exec, view, routing, Kokkos::View<const float**, Space>(gathered));
#elif defined(RANK_1_WEIGHTS)
  ms::combine(exec, gathered, Kokkos::View<float*, Space>("weights", 4), routing, view);
#elif defined(RANK_1_GROUPED_SOURCE)
  ms::grouped_quantize(exec, Kokkos::View<float*, Space>("x", 32), matrix, routing.groups());
#elif defined(UNREACHABLE_SOURCE_MATRIX)
  ms::requantize(exec, *static_cast<const ms::BlockScaledMatrix<ms::MXFP4, Elsewhere>*>(nullptr), matrix);
#elif defined(PLAIN_B)
  ms::matmul(exec, matrix, view, view);
#elif defined(DOUBLE_A)
  ms::matmul(exec, doubles, matrix, view);
#elif defined(DOUBLE_C)
  ms::matmul(exec, matrix, matrix, doubles);
#elif defined(NO_EPILOGUE)
  ms::matmul(exec, matrix, matrix, view, 0.5f);
#endif
}
