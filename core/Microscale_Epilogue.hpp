#ifndef MICROSCALE_EPILOGUE_HPP
#define MICROSCALE_EPILOGUE_HPP

#include <Microscale_Concepts.hpp>
#include <Microscale_Error.hpp>
#include <Microscale_Interface.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace microscale {

/// The functor of an epilogue without one.
struct NoFunctor {};

/// What a matmul does to each element of A B^T before it is stored. Made by chaining: Epilogue{}.alpha(0.5f).relu().
///
/// Whatever the order of the calls, the value is computed in this order, each step one binary32 operation:
///   v = A B^T element * tensor scale of A * tensor scale of B * alpha
///   v = v * row_scale(m) * expert_scale(e) + bias(n) + beta * C(m, n)
///   v = activation(v), or gate over two columns; a NaN becomes the quiet NaN 7FC00000
///   v = functor(m, n, v rounded to C's value type)
/// then v is stored (rounded to C's type) or quantized. What was not asked for is left out. C is not read if beta is 0.
///
/// Views are held by pointer and read when the kernel runs: keep them alive until then, and do not let them overlap C.
/// Building an Epilogue launches nothing; a const one may be used by several threads.
template <class Functor = NoFunctor, class... Spaces>
class Epilogue {
 public:
  static constexpr bool has_functor = !std::same_as<Functor, NoFunctor>;
  /// Whether Exec can reach everything that the epilogue points at.
  template <class Exec>
  static constexpr bool accessible_from = (Impl::can_access<Exec, Spaces> && ...);

  Epilogue() = default;

  Epilogue alpha(float value) const {
    return changed([&](EpilogueData& d) {
      d.alpha = value;
      d.alpha_device = nullptr;
    });
  }
  /// alpha from memory of the execution space: a rank-0 View of float.
  template <class V>
  requires(Kokkos::is_view_v<V>) auto alpha(const V& value) const {
    static_assert(V::rank() == 0 && std::same_as<std::remove_const_t<typename V::value_type>, float>,
                  "microscale::Epilogue::alpha: a factor in memory must be a rank-0 Kokkos::View of float");
    Impl::expects(value.data() != nullptr, "Epilogue::alpha", "value", "is an empty View", "an allocated rank-0 View");
    auto result = with_space<typename V::memory_space>();
    result.m_data.alpha = 1.0f;
    result.m_data.alpha_device = value.data();
    return result;
  }
  /// One factor a row of C: a rank-1 View of float with M entries.
  template <class V>
  auto row_scale(const V& scale) const {
    static_assert(is_float_vector<V>, "microscale::Epilogue::row_scale: the scales must be a rank-1 View of float");
    auto result = with_space<typename V::memory_space>();
    result.m_data.row_scale = vector(scale);
    return result;
  }
  /// One factor an expert (grouped_matmul: by expert id; batched_matmul: by matrix): a rank-1 View of float.
  template <class V>
  auto expert_scale(const V& scale) const {
    static_assert(is_float_vector<V>, "microscale::Epilogue::expert_scale: the scales must be a rank-1 View of float");
    auto result = with_space<typename V::memory_space>();
    result.m_data.expert_scale = vector(scale);
    return result;
  }
  /// One addend a column of A B^T: a View [N] of float, half or bf16, or [experts, N] for one vector an expert. Under a
  /// gate N counts the gate and the up columns.
  template <class V>
  auto bias(const V& values) const {
    static_assert(RealView<V> && !std::same_as<std::remove_const_t<typename V::value_type>, double>,
                  "microscale::Epilogue::bias: the values must be a Kokkos::View of float, half or bf16");
    static_assert(V::rank() == 1 || V::rank() == 2,
                  "microscale::Epilogue::bias: the View must have rank 1, [N], or rank 2, [experts, N]");
    auto result = with_space<typename V::memory_space>();
    result.m_data.bias = vector(values);
    return result;
  }
  /// Adds beta * C(m, n). C is not read if beta is 0. Not together with a gate or a quantized C.
  Epilogue beta(float value) const {
    return changed([&](EpilogueData& d) { d.beta = value; });
  }

  Epilogue relu() const { return activation(Activation::relu); }
  /// 0.5 v (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3)))
  Epilogue gelu() const { return activation(Activation::gelu_tanh); }
  /// 0.5 v (1 + erf(v / sqrt(2)))
  Epilogue gelu_erf() const { return activation(Activation::gelu_erf); }
  Epilogue silu() const { return activation(Activation::silu); }

  /// silu(g) * u: B has N = 2H rows, gates and ups, and C has H columns.
  Epilogue gate_silu(GateColumns columns) const {
    return changed([&](EpilogueData& d) {
      d.activation = Activation::none;
      d.gate = Gate::silu;
      d.gate_columns = columns;
    });
  }
  /// g' * sigmoid(slope * g') * (u' + 1) with g' = min(g, limit), u' = clamp(u, -limit, limit), as in gpt-oss. B has N
  /// = 2H rows, gates and ups, and C has H columns.
  Epilogue gate_swiglu(GateColumns columns, float limit = 7.0f, float slope = 1.702f) const {
    return changed([&](EpilogueData& d) {
      d.activation = Activation::none;
      d.gate = Gate::clamped_swiglu;
      d.gate_columns = columns;
      d.gate_limit = limit;
      d.gate_slope = slope;
    });
  }

  /// Calls functor(m, n, value) for each element of C, with std::int64_t m and n, and value a float that was rounded to
  /// C's value type (as it is if C is quantized). Its result replaces value; if it returns void it stores by itself,
  /// and C gets the value as without it. batched_matmul passes (batch, m, n, value). Rows that grouped_matmul skips are
  /// not passed. Each element is passed once, in any order, by any thread; the functor is copied to the execution space
  /// and called as a const object.
  template <class F>
  Epilogue<F, Spaces...> then(const F& functor) const {
    static_assert(!has_functor, "microscale::Epilogue::then: the epilogue has a functor already");
    Epilogue<F, Spaces...> result(functor);
    result.m_data = m_data;
    return result;
  }

  const EpilogueData& data() const { return m_data; }
  const Functor& functor() const { return m_functor; }

 private:
  template <class, class...>
  friend class Epilogue;

  explicit Epilogue(const Functor& functor) : m_functor(functor) {}

  template <class V>
  static constexpr bool is_float_vector =
      Kokkos::is_view_v<V>&& V::rank() == 1 && std::same_as<std::remove_const_t<typename V::value_type>, float>;

  template <class Change>
  Epilogue changed(const Change& change) const {
    Epilogue result = *this;
    change(result.m_data);
    return result;
  }
  Epilogue activation(Activation kind) const {
    return changed([&](EpilogueData& d) {
      d.activation = kind;
      d.gate = Gate::none;
    });
  }
  template <class Space>
  Epilogue<Functor, Spaces..., Space> with_space() const {
    Epilogue<Functor, Spaces..., Space> result(m_functor);
    result.m_data = m_data;
    return result;
  }
  template <class V>
  static VectorOperand vector(const V& v) {
    const auto i = [](auto n) { return static_cast<std::int64_t>(n); };
    const bool empty = v.extent(0) == 0 || v.extent(V::rank() - 1) == 0;  // size() is 0 for null pointers too
    Impl::expects(v.data() != nullptr || empty, "Epilogue", "values", "are at a null pointer", "an allocated View");
    VectorOperand operand;
    operand.data = v.data();
    operand.type = Impl::element_id<Impl::storage_t<typename V::value_type>>;
    operand.size = i(v.extent(V::rank() - 1));
    operand.stride = i(v.stride(V::rank() - 1));
    if constexpr (V::rank() == 2) {
      operand.experts = i(v.extent(0));
      operand.expert_stride = i(v.stride(0));
    }
    return operand;
  }

  EpilogueData m_data;
  Functor m_functor;
};

template <class T>
struct is_epilogue : std::false_type {};
template <class F, class... S>
struct is_epilogue<Epilogue<F, S...>> : std::true_type {};
template <class T>
inline constexpr bool is_epilogue_v = is_epilogue<T>::value;

}  // namespace microscale

#endif
