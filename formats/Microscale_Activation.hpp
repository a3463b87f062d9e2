#ifndef MICROSCALE_ACTIVATION_HPP
#define MICROSCALE_ACTIVATION_HPP

#include <Microscale_Arithmetic.hpp>

// The activations and gates of a matmul epilogue, in binary32. NaN stays NaN in all of them. exp, tanh and erf are
// those of the platform's math library, so results may differ by an ulp or two between platforms.
namespace microscale::inline MICROSCALE_ISA {

MICROSCALE_FUNCTION inline float relu(float x) { return x < 0.0f ? 0.0f : x; }

MICROSCALE_FUNCTION inline float sigmoid(float x) { return 1.0f / add(1.0f, expf(-x)); }

MICROSCALE_FUNCTION inline float silu(float x) { return x / add(1.0f, expf(-x)); }

/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
MICROSCALE_FUNCTION inline float gelu_tanh(float x) {
  constexpr float sqrt_2_over_pi = 0.797884560802865f;
  const float inner = add(x, mul(0.044715f, mul(x, mul(x, x))));
  return mul(mul(0.5f, x), add(1.0f, tanhf(mul(sqrt_2_over_pi, inner))));
}

/// 0.5 x (1 + erf(x / sqrt(2)))
MICROSCALE_FUNCTION inline float gelu_erf(float x) {
  constexpr float inverse_sqrt_2 = 0.707106781186548f;
  return mul(mul(0.5f, x), add(1.0f, erff(mul(x, inverse_sqrt_2))));
}

/// silu(g) * u
MICROSCALE_FUNCTION inline float silu_gate(float g, float u) { return mul(silu(g), u); }

/// The gate of gpt-oss: g' = min(g, limit), u' = clamp(u, -limit, limit), result g' * sigmoid(slope * g') * (u' + 1).
MICROSCALE_FUNCTION inline float clamped_swiglu(float g, float u, float limit, float slope) {
  const float gate = g > limit ? limit : g;
  const float up = u > limit ? limit : (u < -limit ? -limit : u);
  return mul(mul(gate, sigmoid(mul(slope, gate))), add(up, 1.0f));
}

}  // namespace microscale::inline MICROSCALE_ISA

#endif
