#ifndef MICROSCALE_TEST_BACKENDUNDERTEST_HPP
#define MICROSCALE_TEST_BACKENDUNDERTEST_HPP

#include <Microscale_Dispatch.hpp>

#include <string>
#include <string_view>

// Runs a suite that knows nothing of backends on one of them: MICROSCALE_TEST_BACKEND names it. It is then chosen for
// every call of the default Context, whatever it costs. A call that it refuses fails, unless the refusal is listed here.
namespace microscale::Test {

/// What a backend may leave to the reference, and the words in which it refuses.
struct AllowedRefusal {
  std::string_view backend;
  Operation operation;
  std::string_view reason;  ///< how the reason starts
};

inline constexpr AllowedRefusal allowed_refusals[] = {
    {"avx512", Operation::requantize, ""},  // it has no kernel for that
    // A functor is a pass of its own after a backend's kernels, and there is none over quantized values.
    {"avx512", Operation::matmul, "only the reference calls a functor before it quantizes"},
    {"avx512", Operation::quantize, "no kernel for this block format"},  // formats that an application made up
    {"avx512", Operation::dequantize, "no kernel for this block format"},
};

inline bool is_allowed(std::string_view backend, Operation operation, std::string_view reason) {
  for (const AllowedRefusal& allowed : allowed_refusals)
    if (allowed.backend == backend && allowed.operation == operation &&
        reason.substr(0, allowed.reason.size()) == allowed.reason)
      return true;
  return false;
}

/// Why the backend cannot run on this machine; empty if it can.
inline std::string unavailable(std::string_view backend) {
  for (const BackendInfo& info : backends())
    if (info.name == backend) return info.available ? std::string() : std::string(info.reason);
  return "there is no such backend";
}

inline void use_backend(const std::string& backend) {
  default_context().set_policy([backend](const Problem& problem, const Choice& choice) -> std::string_view {
    for (const Candidate& candidate : choice.candidates) {
      if (candidate.name != backend) continue;
      if (!candidate.able && is_allowed(backend, problem.operation, candidate.reason)) return reference_name;
      return candidate.name;
    }
    return {};
  });
}

}  // namespace microscale::Test

#endif
