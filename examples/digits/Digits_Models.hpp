#ifndef DIGITS_MODELS_HPP
#define DIGITS_MODELS_HPP

#include <Digits_Tensors.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

// The two classifiers, the same for every precision: Precision is Plain<T> (Digits_Plain.hpp), or Quantized<Format> or
// WeightOnly<Format> (Digits_BlockScaled.hpp). They own the buffers for a fixed number of images.
namespace digits {

/// 64 -> 256 -> 128 -> 10 with ReLU.
template <class Precision>
class Mlp {
  using T = typename Precision::activation;

 public:
  Mlp(const File& file, std::int64_t images)
      : m_layer0(file, "mlp.layers.0", images),
        m_layer1(file, "mlp.layers.1", images),
        m_layer2(file, "mlp.layers.2", images),
        m_hidden0(make_matrix<T>("digits::hidden0", images, 256)),
        m_hidden1(make_matrix<T>("digits::hidden1", images, 128)) {}

  void operator()(const Exec& exec, const Matrix<T>& images, const Matrix<float>& logits) const {
    m_layer0(exec, images, m_hidden0, true);
    m_layer1(exec, m_hidden0, m_hidden1, true);
    m_layer2(exec, m_hidden1, logits, false);
  }
  std::size_t weight_bytes() const {
    return m_layer0.weight_bytes() + m_layer1.weight_bytes() + m_layer2.weight_bytes();
  }

 private:
  typename Precision::Dense m_layer0, m_layer1, m_layer2;
  Matrix<T> m_hidden0, m_hidden1;
};

/// The experts with the two largest router logits, and the softmax of those two. The router stays in float.
template <class T>
void route_top2(const Exec& exec, const Matrix<T>& x, const Matrix<float>& router, const Matrix<std::int32_t>& ids,
                const Matrix<float>& weights) {
  Kokkos::parallel_for(
      "digits::route_top2", Kokkos::RangePolicy<Exec>(exec, 0, x.extent(0)), KOKKOS_LAMBDA(std::size_t t) {
        float best = -Kokkos::Experimental::infinity_v<float>, second = best;
        std::int32_t best_id = 0, second_id = 0;
        for (std::size_t e = 0; e < router.extent(0); ++e) {
          float logit = 0;
          for (std::size_t k = 0; k < x.extent(1); ++k) logit += static_cast<float>(x(t, k)) * router(e, k);
          if (logit > best) {
            second = best;
            second_id = best_id;
            best = logit;
            best_id = static_cast<std::int32_t>(e);
          } else if (logit > second) {
            second = logit;
            second_id = static_cast<std::int32_t>(e);
          }
        }
        ids(t, 0) = best_id;
        ids(t, 1) = second_id;
        weights(t, 0) = 1.0f / (1.0f + Kokkos::exp(second - best));
        weights(t, 1) = 1.0f - weights(t, 0);
      });
}

/// y += x
template <class T>
void add(const Exec& exec, const Matrix<float>& x, const Matrix<T>& y) {
  Kokkos::parallel_for(
      "digits::add", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>(exec, {0, 0}, {y.extent(0), y.extent(1)}),
      KOKKOS_LAMBDA(std::size_t t, std::size_t n) { y(t, n) = static_cast<T>(static_cast<float>(y(t, n)) + x(t, n)); });
}

/// 64 -> 128, plus a top-2 mixture of 8 experts (128 -> 64 -> 128), -> 10.
template <class Precision>
class Moe {
  using T = typename Precision::activation;

 public:
  Moe(const File& file, std::int64_t images)
      : m_proj_in(file, "moe.proj_in", images),
        m_experts(file, "moe.experts", images, 2),
        m_proj_out(file, "moe.proj_out", images),
        m_router(load<Matrix<float>>(file, "moe.router.weight")),
        m_hidden(make_matrix<T>("digits::hidden", images, 128)),
        m_ids(make_matrix<std::int32_t>("digits::topk_ids", images, 2)),
        m_weights(make_matrix<float>("digits::topk_weights", images, 2)),
        m_mixed(make_matrix<float>("digits::mixed", images, 128)) {}

  void operator()(const Exec& exec, const Matrix<T>& images, const Matrix<float>& logits) const {
    m_proj_in(exec, images, m_hidden, true);
    route_top2(exec, m_hidden, m_router, m_ids, m_weights);
    m_experts(exec, m_hidden, m_ids, m_weights, m_mixed);
    add(exec, m_mixed, m_hidden);
    m_proj_out(exec, m_hidden, logits, false);
  }
  std::size_t weight_bytes() const {
    return m_proj_in.weight_bytes() + m_experts.weight_bytes() + m_proj_out.weight_bytes();
  }

 private:
  typename Precision::Dense m_proj_in;
  typename Precision::Experts m_experts;
  typename Precision::Dense m_proj_out;
  Matrix<float> m_router;
  Matrix<T> m_hidden;
  Matrix<std::int32_t> m_ids;
  Matrix<float> m_weights, m_mixed;
};

}  // namespace digits

#endif
