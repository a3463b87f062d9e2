#ifndef DIGITS_PLAIN_HPP
#define DIGITS_PLAIN_HPP

#include <Digits_Tensors.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

// The layers without block scaling, as short Kokkos kernels: what the others are compared with. They share nothing with
// Digits_BlockScaled.hpp; the experts are not even sorted here.
namespace digits {

/// Weights and activations in T (float or bf16); sums in float.
template <class T>
struct Plain {
  using activation = T;

  /// y = x W^T + bias, then relu if asked: x [rows, K], W [N, K], y [rows, N].
  class Dense {
   public:
    Dense(const File& file, const std::string& name, std::int64_t /*rows*/)
        : m_weight(load<Matrix<T>>(file, name + ".weight")), m_bias(load<Vector<float>>(file, name + ".bias")) {}

    template <class Out>
    void operator()(const Exec& exec, const Matrix<T>& x, const Matrix<Out>& y, bool relu) const {
      const auto weight = m_weight;
      const auto bias = m_bias;
      Kokkos::parallel_for(
          "digits::dense", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>(exec, {0, 0}, {y.extent(0), y.extent(1)}),
          KOKKOS_LAMBDA(std::size_t m, std::size_t n) {
            float sum = bias(n);
            for (std::size_t k = 0; k < x.extent(1); ++k) {
              sum += static_cast<float>(x(m, k)) * static_cast<float>(weight(n, k));
            }
            y(m, n) = static_cast<Out>(relu && sum < 0 ? 0.0f : sum);
          });
    }
    std::size_t weight_bytes() const { return m_weight.size() * sizeof(T); }

   private:
    Matrix<T> m_weight;
    Vector<float> m_bias;
  };

  /// y(t) = sum over j of weights(t, j) * expert ids(t, j) of x(t). An expert is down(silu(gate(x)) * up(x)); the rows
  /// of gate and up alternate in gate_up [E, 2I, K], down is [E, K, I].
  class Experts {
   public:
    Experts(const File& file, const std::string& name, std::int64_t tokens, std::int64_t top_k)
        : m_gate_up(load<Stack<T>>(file, name + ".gate_up_proj.weight")),
          m_down(load<Stack<T>>(file, name + ".down_proj.weight")),
          m_inner("digits::inner", tokens, top_k, m_down.extent(2)) {}

    void operator()(const Exec& exec, const Matrix<T>& x, const Matrix<std::int32_t>& ids, const Matrix<float>& weights,
                    const Matrix<float>& y) const {
      const auto gate_up = m_gate_up;
      const auto down = m_down;
      const auto inner = m_inner;
      Kokkos::parallel_for(
          "digits::experts_up",
          Kokkos::MDRangePolicy<Exec, Kokkos::Rank<3>>(exec, {0, 0, 0},
                                                       {inner.extent(0), inner.extent(1), inner.extent(2)}),
          KOKKOS_LAMBDA(std::size_t t, std::size_t j, std::size_t i) {
            const std::int32_t e = ids(t, j);
            float gate = 0, up = 0;
            for (std::size_t k = 0; k < x.extent(1); ++k) {
              gate += static_cast<float>(x(t, k)) * static_cast<float>(gate_up(e, 2 * i, k));
              up += static_cast<float>(x(t, k)) * static_cast<float>(gate_up(e, 2 * i + 1, k));
            }
            inner(t, j, i) = static_cast<T>(gate / (1.0f + Kokkos::exp(-gate)) * up);
          });
      Kokkos::parallel_for(
          "digits::experts_down",
          Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>(exec, {0, 0}, {y.extent(0), y.extent(1)}),
          KOKKOS_LAMBDA(std::size_t t, std::size_t n) {
            float sum = 0;
            for (std::size_t j = 0; j < inner.extent(1); ++j) {
              float expert = 0;
              for (std::size_t i = 0; i < inner.extent(2); ++i) {
                expert += static_cast<float>(inner(t, j, i)) * static_cast<float>(down(ids(t, j), n, i));
              }
              sum += weights(t, j) * expert;
            }
            y(t, n) = sum;
          });
    }
    std::size_t weight_bytes() const { return (m_gate_up.size() + m_down.size()) * sizeof(T); }

   private:
    Stack<T> m_gate_up, m_down, m_inner;
  };
};

}  // namespace digits

#endif
