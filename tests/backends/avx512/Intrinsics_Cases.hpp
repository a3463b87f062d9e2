#ifndef INTRINSICS_CASES_HPP
#define INTRINSICS_CASES_HPP

#include <cstddef>
#include <cstdint>

// What the intrinsics of the model give, and those of the compiler, from the same source: Intrinsics_Cases.cpp is
// compiled once with each.

/// Three vectors and a mask.
struct IntrinsicsInput {
  alignas(64) std::uint8_t a[64], b[64], c[64];
  std::uint64_t mask;
};

/// What is compared: all bytes, or floats of which any NaN is as good as another.
enum class Compared { bytes, floats };

struct IntrinsicsCase {
  const char* name;
  Compared compared;
  /// Writes up to 64 bytes of `result`, which is zero.
  void (*run)(const IntrinsicsInput& input, std::uint8_t* result);
};

struct IntrinsicsCases {
  const IntrinsicsCase* cases;
  std::size_t count;
};

namespace microscale::backend_avx512_model {
IntrinsicsCases intrinsics_cases();
}
namespace microscale::backend_avx512 {
IntrinsicsCases intrinsics_cases();
}

#endif
