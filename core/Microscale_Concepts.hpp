#ifndef MICROSCALE_CONCEPTS_HPP
#define MICROSCALE_CONCEPTS_HPP

#include <Kokkos_Core.hpp>
#include <Microscale_Block.hpp>
#include <Microscale_Half.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace microscale {

template <class T>
concept ExecutionSpace = Kokkos::is_execution_space_v<T>;

namespace Impl {

// Kokkos' 16-bit types have the bits of ours wherever they are 2 bytes; elsewhere (host-only builds) they are float.
template <class T>
consteval auto storage_of() {
  using Kokkos::Experimental::bhalf_t;
  using Kokkos::Experimental::half_t;
  if constexpr (std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, half> || std::same_as<T, bf16>)
    return std::type_identity<T>();
  else if constexpr (std::same_as<T, half_t> && sizeof(half_t) == 2)
    return std::type_identity<half>();
  else if constexpr (std::same_as<T, bhalf_t> && sizeof(bhalf_t) == 2)
    return std::type_identity<bf16>();
  else
    return std::type_identity<void>();
}

/// The type by which kernels see values of type T: float, double, half or bf16; void for anything else.
template <class T>
using storage_t = typename decltype(storage_of<std::remove_cv_t<T>>())::type;

}  // namespace Impl

/// Value types of the plain Views that the library reads and writes.
template <class T>
concept RealValue = !std::is_void_v<Impl::storage_t<T>>;

/// A Kokkos::View of real values with one of Kokkos' three layouts.
template <class V>
concept RealView = Kokkos::is_view_v<V> && RealValue<typename V::value_type> &&
    (std::same_as<typename V::array_layout, Kokkos::LayoutRight> ||
     std::same_as<typename V::array_layout, Kokkos::LayoutLeft> ||
     std::same_as<typename V::array_layout, Kokkos::LayoutStride>);

namespace Impl {

template <class T>
inline constexpr ElementId element_id = std::same_as<T, half>     ? float16_id.element
                                        : std::same_as<T, bf16>   ? bfloat16_id.element
                                        : std::same_as<T, double> ? float64_id.element
                                                                  : float32_id.element;

/// A matrix in memory by pointer and strides (in elements): how kernels see Views, whatever their layout.
template <class T>
struct StridedMatrix {
  using value_type = T;
  T* data;
  std::int64_t rows, cols;
  std::int64_t row_stride, col_stride;

  KOKKOS_FUNCTION T& operator()(std::int64_t i, std::int64_t j) const { return data[i * row_stride + j * col_stride]; }
  KOKKOS_FUNCTION StridedMatrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }
};

template <class T>
struct StridedBatch {
  StridedMatrix<T> matrix;  ///< the first one
  std::int64_t batch, batch_stride;
};

template <class V>
using view_storage_t = std::conditional_t<std::is_const_v<typename V::value_type>,
                                          const storage_t<typename V::value_type>, storage_t<typename V::value_type>>;

/// A rank-2 View, or a rank-1 View as one row.
template <RealView V>
requires(V::rank() == 1 || V::rank() == 2) auto strided(const V& v) {
  auto* data = reinterpret_cast<view_storage_t<V>*>(v.data());
  using T = view_storage_t<V>;
  const auto i = [](auto n) { return static_cast<std::int64_t>(n); };
  if constexpr (V::rank() == 1)
    return StridedMatrix<T>{data, 1, i(v.extent(0)), i(v.extent(0)), i(v.stride(0))};
  else
    return StridedMatrix<T>{data, i(v.extent(0)), i(v.extent(1)), i(v.stride(0)), i(v.stride(1))};
}

/// A rank-3 View as a batch over its first index.
template <RealView V>
requires(V::rank() == 3) auto strided_batch(const V& v) {
  using T = view_storage_t<V>;
  const auto i = [](auto n) { return static_cast<std::int64_t>(n); };
  return StridedBatch<T>{
      {reinterpret_cast<T*>(v.data()), i(v.extent(1)), i(v.extent(2)), i(v.stride(1)), i(v.stride(2))},
      i(v.extent(0)),
      i(v.stride(0))};
}

/// Whether Exec can reach the memory of a View or matrix.
template <class Exec, class Space>
inline constexpr bool can_access = Kokkos::SpaceAccessibility<Exec, Space>::accessible;

/// Whether Exec runs on the host.
template <class Exec>
inline constexpr bool is_host = can_access<Exec, Kokkos::HostSpace>;

}  // namespace Impl
}  // namespace microscale

#endif
