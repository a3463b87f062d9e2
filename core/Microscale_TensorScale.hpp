#ifndef MICROSCALE_TENSORSCALE_HPP
#define MICROSCALE_TENSORSCALE_HPP

#include <Microscale_Concepts.hpp>
#include <Microscale_Error.hpp>
#include <Microscale_Interface.hpp>
#include <Microscale_RunBackend.hpp>

#include <concepts>
#include <string>

namespace microscale {

/// Where quantize takes the tensor scale of a format that has one (NVFP4) from. Formats without one accept only the
/// default.
class TensorScale {
 public:
  /// Found from the source's largest finite magnitude, on the device, without a host synchronization.
  static TensorScale dynamic() { return {}; }
  /// None: the pair (1, 1).
  static TensorScale none() { return given({1.0f, 1.0f}); }
  /// The pair that the destination holds already.
  static TensorScale stored() {
    TensorScale result;
    result.m_source = TensorScaleSource::stored;
    return result;
  }
  /// A decode scale s (amax/2688 in ModelOpt's `weight_scale_2`): value = code * block scale * s. Throws
  /// std::invalid_argument if s is 0, negative, NaN or Inf.
  template <std::floating_point T>
  static TensorScale decode(T s) {
    return checked("TensorScale::decode", static_cast<float>(s), pair_from_decode(static_cast<float>(s)));
  }
  /// An encode scale g (2688/amax in compressed-tensors' `weight_global_scale`): value = code * block scale / g. Throws
  /// std::invalid_argument if g is 0, negative, NaN or Inf, or so small that 1/g is not finite.
  template <std::floating_point T>
  static TensorScale encode(T g) {
    return checked("TensorScale::encode", static_cast<float>(g), pair_from_encode(static_cast<float>(g)));
  }
  /// A decode scale that lives in memory of the execution space: a rank-0 View of float, read when the kernel runs
  /// (keep it alive until then). An invalid one gives NaN blocks; validate() finds them.
  template <class V>
  requires(Kokkos::is_view_v<V>) static TensorScale decode(const V& s) { return on_device(s, false); }
  /// The same for an encode scale.
  template <class V>
  requires(Kokkos::is_view_v<V>) static TensorScale encode(const V& g) { return on_device(g, true); }

  TensorScaleSource source() const { return m_source; }
  /// The resolved pair of a host value (source() == given, device() null).
  TensorScalePair pair() const { return m_pair; }
  const float* device() const { return m_device; }
  bool device_is_encode() const { return m_device_is_encode; }

 private:
  static TensorScale given(TensorScalePair pair) {
    TensorScale result;
    result.m_source = TensorScaleSource::given;
    result.m_pair = pair;
    return result;
  }
  static TensorScale checked(const char* where, float value, TensorScalePair pair) {
    Impl::expects(
        is_valid(pair), where, "scale", [&] { return "is " + Impl::digits(value); },
        [] { return "a positive finite value with a finite reciprocal"; });
    return given(pair);
  }
  template <class V>
  static TensorScale on_device(const V& scale, bool is_encode) {
    static_assert(V::rank() == 0 && std::same_as<std::remove_const_t<typename V::value_type>, float>,
                  "microscale::TensorScale: a scale in memory must be a rank-0 Kokkos::View of float");
    Impl::expects(scale.data() != nullptr, "TensorScale", "scale", "is an empty View", "an allocated rank-0 View");
    TensorScale result = given({});
    result.m_device = scale.data();
    result.m_device_is_encode = is_encode;
    return result;
  }

  TensorScaleSource m_source = TensorScaleSource::dynamic;
  TensorScalePair m_pair{};
  const float* m_device = nullptr;
  bool m_device_is_encode = false;
};

/// Along which axis of the source blocks run. columns: the destination is the transposed matrix, exactly what
/// quantizing a transposed copy along rows gives.
enum class Axis : std::uint8_t { rows, columns };

/// Options of quantize, grouped_quantize, requantize and quantized matmul outputs.
struct QuantizeOptions {
  TensorScale tensor_scale = TensorScale::dynamic();
  ScaleRule scale_rule = ScaleRule::rceil;  ///< E8M0 formats; any other value than the default throws for NVFP4
  NonFinite non_finite = NonFinite::strict;
  Axis axis = Axis::rows;
  DispatchOptions dispatch{};
};

namespace Impl {

/// Throws if the options do not fit the format.
template <BlockFormat F>
void expects_options(const char* where, const QuantizeOptions& options) {
  expects(F::scale::type == ScaleType::e8m0 || options.scale_rule == ScaleRule::rceil, where, "scale_rule",
          "is not the default", "the default: only formats with E8M0 scales have scale rules");
  expects(F::tensor_scale || options.tensor_scale.source() == TensorScaleSource::dynamic, where, "tensor_scale",
          "is given", "none: this format has no tensor scale");
}

inline QuantizeData quantize_data(const QuantizeOptions& options) {
  QuantizeData data;
  data.scale_rule = options.scale_rule;
  data.non_finite = options.non_finite;
  data.source = options.tensor_scale.source();
  data.tensor_scale = options.tensor_scale.pair();
  data.device = options.tensor_scale.device();
  data.device_is_encode = options.tensor_scale.device_is_encode();
  return data;
}

}  // namespace Impl
}  // namespace microscale

#endif
