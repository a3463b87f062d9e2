#ifndef DIGITS_BLOCKSCALED_HPP
#define DIGITS_BLOCKSCALED_HPP

#include <Digits_Tensors.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

// The layers with block-scaled weights: what an application writes that uses Microscale.
namespace digits {

/// The bytes of a matrix or a batch: codes, block scales, tensor scales.
template <class QuantizedMatrix>
std::size_t stored_bytes(const QuantizedMatrix& m) {
  return m.data().size() + m.scales().size() + m.tensor_scale().size() * sizeof(ms::TensorScalePair);
}

/// Weights in Format; activations are bf16 between layers, and `quantize_activations` says whether they are quantized
/// to Format, too, before they are multiplied.
template <ms::BlockFormat Format, bool quantize_activations>
struct BlockScaled {
  using activation = ms::bf16;
  using Quantized = ms::BlockScaledMatrix<Format, Space>;
  using QuantizedStack = ms::BatchedBlockScaledMatrix<Format, Space>;

  /// y = x W^T + bias, then relu if asked: x [rows, K], W [N, K], y [rows, N].
  class Dense {
   public:
    Dense(const File& file, const std::string& name, std::int64_t rows)
        : m_bias(load<Vector<float>>(file, name + ".bias")) {
      const auto weight = load<Matrix<ms::bf16>>(file, name + ".weight");
      m_weight = Quantized(name, weight.extent(0), weight.extent(1));
      if (quantize_activations) m_x = Quantized(name + ".x", rows, weight.extent(1));
      ms::quantize(weight, m_weight);
    }

    template <class Out>
    void operator()(const Exec& exec, const Matrix<ms::bf16>& x, const Matrix<Out>& y, bool relu) const {
      auto epilogue = ms::Epilogue{}.bias(m_bias);
      if (relu) epilogue = epilogue.relu();
      if constexpr (quantize_activations) {
        ms::quantize(exec, x, m_x);
        ms::matmul(exec, m_x, m_weight, y, epilogue);
      } else {
        ms::matmul(exec, x, m_weight, y, epilogue);
      }
    }
    std::size_t weight_bytes() const { return stored_bytes(m_weight); }

   private:
    Vector<float> m_bias;
    Quantized m_weight, m_x;
  };

  /// y(t) = sum over j of weights(t, j) * expert ids(t, j) of x(t). An expert is down(silu(gate(x)) * up(x)); the rows
  /// of gate and up alternate in gate_up [E, 2I, K], down is [E, K, I].
  class Experts {
   public:
    Experts(const File& file, const std::string& name, std::int64_t tokens, std::int64_t top_k) {
      const auto gate_up = load<Stack<ms::bf16>>(file, name + ".gate_up_proj.weight");
      const auto down = load<Stack<ms::bf16>>(file, name + ".down_proj.weight");
      const std::int64_t experts = gate_up.extent(0), hidden = down.extent(1), inner = down.extent(2);
      m_gate_up = Quantized::batched(name + ".gate_up", experts, 2 * inner, hidden);
      m_down = Quantized::batched(name + ".down", experts, hidden, inner);
      ms::quantize(Exec(), gate_up, m_gate_up);
      ms::quantize(Exec(), down, m_down);

      m_routing = ms::ExpertRouting<Space>(name + ".routing", tokens, top_k, experts, ms::ScaleLayout::linear);
      const std::int64_t rows = m_routing.rows();
      m_x = make_matrix<ms::bf16>("digits::expert_x", rows, hidden);
      m_inner = make_matrix<ms::bf16>("digits::expert_inner", rows, inner);
      m_y = make_matrix<float>("digits::expert_y", rows, hidden);
      if (quantize_activations) {
        m_quantized_x = Quantized::grouped(name + ".x", rows, hidden, experts);
        m_quantized_inner = Quantized::grouped(name + ".inner", rows, inner, experts);
      }
    }

    void operator()(const Exec& exec, const Matrix<ms::bf16>& x, const Matrix<std::int32_t>& ids,
                    const Matrix<float>& weights, const Matrix<float>& y) const {
      ms::build_expert_offsets(exec, ids, m_routing);
      ms::gather(exec, x, m_routing, m_x);
      multiply(exec, m_x, m_quantized_x, m_gate_up, m_inner, ms::Epilogue{}.gate_silu(ms::GateColumns::interleaved));
      multiply(exec, m_inner, m_quantized_inner, m_down, m_y, ms::Epilogue{});
      ms::combine(exec, m_y, weights, m_routing, y);
    }
    std::size_t weight_bytes() const { return stored_bytes(m_gate_up) + stored_bytes(m_down); }

   private:
    template <class Out>
    void multiply(const Exec& exec, const Matrix<ms::bf16>& x, const Quantized& quantized, const QuantizedStack& weight,
                  const Matrix<Out>& y, const ms::Epilogue<>& epilogue) const {
      if constexpr (quantize_activations) {
        ms::grouped_quantize(exec, x, quantized, m_routing.groups());
        ms::grouped_matmul(exec, quantized, weight, y, m_routing.groups(), epilogue);
      } else {
        ms::grouped_matmul(exec, x, weight, y, m_routing.groups(), epilogue);
      }
    }

    QuantizedStack m_gate_up, m_down;
    ms::ExpertRouting<Space> m_routing;
    Matrix<ms::bf16> m_x, m_inner;
    Matrix<float> m_y;
    Quantized m_quantized_x, m_quantized_inner;
  };
};

template <ms::BlockFormat Format>
using Quantized = BlockScaled<Format, true>;
template <ms::BlockFormat Format>
using WeightOnly = BlockScaled<Format, false>;

}  // namespace digits

#endif
