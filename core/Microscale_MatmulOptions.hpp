#ifndef MICROSCALE_MATMULOPTIONS_HPP
#define MICROSCALE_MATMULOPTIONS_HPP

#include <Microscale_Dispatch.hpp>
#include <Microscale_TensorScale.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace microscale {

/// Memory that the caller lends to one call, aligned to 64 bytes and in reach of the execution space; in use until the
/// call's kernels are done.
struct Workspace {
  void* data = nullptr;
  std::int64_t bytes = 0;

  Workspace() = default;
  Workspace(void* pointer, std::int64_t size) : data(pointer), bytes(size) {}
  /// A rank-1 View of std::byte or an 8-bit integer.
  template <class V>
  requires(Kokkos::is_view_v<V>) Workspace(const V& view)
      : data(view.data()), bytes(static_cast<std::int64_t>(view.extent(0))) {
    static_assert(V::rank() == 1 && sizeof(typename V::value_type) == 1 && !std::is_const_v<typename V::value_type>,
                  "microscale::Workspace: the memory must be a rank-1 View of bytes");
  }
};

/// Options of matmul, batched_matmul and grouped_matmul; an aggregate. Nothing but `quantize` and `skipped_rows` bears
/// on results, beyond the order of sums.
struct MatmulOptions {
  Workspace workspace{};                         ///< at least workspace_bytes() of the same call
  const Config* config = nullptr;                ///< tiles and stages instead of the backend's own choice
  Hints hints{};                                 ///< what is known about the sizes of groups
  std::string_view backend{};                    ///< forced; an error if it cannot run
  QuantizeOptions quantize{};                    ///< of a quantized C
  Context* context = nullptr;                    ///< null: default_context()
  SkippedRows skipped_rows = SkippedRows::zero;  ///< grouped: rows in no slot and in slots with expert id -1
};

}  // namespace microscale

#endif
