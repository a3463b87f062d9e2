#ifndef MICROSCALE_NATIVE_HPP
#define MICROSCALE_NATIVE_HPP

#include <Microscale_Concepts.hpp>
#include <Microscale_Interface.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

// A Kokkos execution-space instance as backends see it: without Kokkos.
namespace microscale::Impl {

template <class Exec>
consteval ExecutionKind execution_kind() {
#if defined(KOKKOS_ENABLE_CUDA)
  if (std::is_same_v<Exec, Kokkos::Cuda>) return ExecutionKind::cuda;
#endif
#if defined(KOKKOS_ENABLE_HIP)
  if (std::is_same_v<Exec, Kokkos::HIP>) return ExecutionKind::hip;
#endif
  return is_host<Exec> ? ExecutionKind::host : ExecutionKind::other;
}

template <class Exec>
int device_of([[maybe_unused]] const Exec& exec) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Exec, Kokkos::Cuda>) return exec.cuda_device();
#endif
#if defined(KOKKOS_ENABLE_HIP)
  if constexpr (std::is_same_v<Exec, Kokkos::HIP>) return exec.hip_device();
#endif
  return 0;
}

/// Gives a Native for an instance. It points into this object, which must outlive the launch. On the host, the
/// backend's loops run as Kokkos kernels of the given label on exactly the caller's instance and its threads.
template <class Exec>
class NativeInstance {
 public:
  NativeInstance(const Exec& exec, std::string label) : m_exec(exec), m_label(std::move(label)) {}
  NativeInstance(const NativeInstance&) = delete;
  NativeInstance& operator=(const NativeInstance&) = delete;

  Native native() const {
    Native result;
    result.kind = execution_kind<Exec>();
    result.device = device_of(m_exec);
    if constexpr (execution_kind<Exec>() == ExecutionKind::host) {
      result.concurrency = m_exec.concurrency();
      result.context = this;
      result.parallel_for = &parallel_for;
    }
#if defined(KOKKOS_ENABLE_CUDA)
    if constexpr (std::is_same_v<Exec, Kokkos::Cuda>) result.stream = m_exec.cuda_stream();
#endif
#if defined(KOKKOS_ENABLE_HIP)
    if constexpr (std::is_same_v<Exec, Kokkos::HIP>) result.stream = m_exec.hip_stream();
#endif
    return result;
  }

 private:
  static void parallel_for(const void* context, std::int64_t n, void (*body)(void*, std::int64_t), void* argument) {
    const auto& self = *static_cast<const NativeInstance*>(context);
    using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>, Kokkos::Schedule<Kokkos::Dynamic>>;
    Kokkos::parallel_for(self.m_label, Range(self.m_exec, 0, n, Kokkos::ChunkSize(1)),
                         [=](std::int64_t i) { body(argument, i); });
    if constexpr (!returns_when_done) self.m_exec.fence(self.m_label);
  }

  // Serial and OpenMP kernels are done when parallel_for returns; of other host spaces that is not known.
  static constexpr bool returns_when_done =
#if defined(KOKKOS_ENABLE_SERIAL)
      std::is_same_v<Exec, Kokkos::Serial> ||
#endif
#if defined(KOKKOS_ENABLE_OPENMP)
      std::is_same_v<Exec, Kokkos::OpenMP> ||
#endif
      false;

  Exec m_exec;
  std::string m_label;
};

}  // namespace microscale::Impl

#endif
