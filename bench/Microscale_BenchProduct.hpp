#ifndef MICROSCALE_BENCHPRODUCT_HPP
#define MICROSCALE_BENCHPRODUCT_HPP

#include <Microscale_Bench.hpp>

// What the benchmarks of products share.
namespace microscale::bench {

template <class A, class B>
std::string pair_name() {
  return type_name<A>() + 'x' + type_name<B>();
}

template <class T>
inline constexpr bool is_fp4 = false;
template <BlockFormat T>
inline constexpr bool is_fp4<T> = std::is_same_v<typename T::element, E2M1>;

/// The instruction that multiplies operands of these types fastest without loss: 8-bit integers hold FP4 codes, bf16
/// holds all others but float and half. The reference, and a processor without the instruction, multiply floats.
template <class A, class B>
Ceiling instruction() {
  const Ceiling best = is_fp4<A> && is_fp4<B>                      ? Ceiling::vpdpbusd
                       : BlockFormat<A> || std::is_same_v<A, bf16> ? Ceiling::vdpbf16ps
                                                                   : Ceiling::fma;
  return measured_backend() != reference_name && has(best) ? best : Ceiling::fma;
}

/// Too much for the reference, if that is what is measured.
inline bool too_slow(double operations) {
  return measured_backend() == reference_name && operations > reference_operations;
}

/// Memory for what the backend needs in calls of this problem.
inline Kokkos::View<std::uint8_t*, Space> workspace_for(const Problem& problem) {
  return {"workspace",
          static_cast<std::size_t>(workspace_bytes(problem, MatmulOptions{.backend = measured_backend()}))};
}
inline MatmulOptions options_with(const Kokkos::View<std::uint8_t*, Space>& workspace) {
  return {.workspace = workspace, .backend = measured_backend()};
}

/// What prepare() should know about the products of A.
template <class A>
PrepareOptions prepare_options(std::int64_t m) {
  PrepareOptions options{.typical_m = m, .backend = measured_backend()};
  if constexpr (std::is_same_v<A, bf16>)
    options.a_format = bfloat16_id;
  else if constexpr (std::is_same_v<A, float>)
    options.a_format = float32_id;
  else
    options.a_format = format_id<A>;
  return options;
}

}  // namespace microscale::bench

#endif
