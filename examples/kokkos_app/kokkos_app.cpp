// A Kokkos application that uses Microscale inside what it already has: quantization in its own kernels, several
// execution-space instances (streams) at once, and a mixture-of-experts layer. Every part checks its own result.

#include <Kokkos_Core.hpp>
#include <Microscale.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace ms = microscale;
using Exec = Kokkos::DefaultExecutionSpace;
using Space = Exec::memory_space;
template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, Space>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Space>;
template <class T>
using Stack = Kokkos::View<T***, Kokkos::LayoutRight, Space>;

void require(bool ok, const std::string& what) {
  if (!ok) throw std::runtime_error(what);
}

/// Fills any View with reproducible values in [-scale, scale).
template <class View>
void fill(const View& view, std::uint32_t seed, float scale) {
  Kokkos::parallel_for(
      "app::fill", Kokkos::RangePolicy<Exec>(0, view.size()), KOKKOS_LAMBDA(std::size_t i) {
        std::uint32_t x = (static_cast<std::uint32_t>(i) + 1) * 2654435761u ^ seed * 0x9e3779b9u;
        x = (x ^ (x >> 15)) * 0x2c1b3c6du;
        x = (x ^ (x >> 12)) * 0x297a2d39u;
        view.data()[i] = scale * (static_cast<float>(x >> 8) * 0x1p-23f - 1.0f);
      });
}

/// How far `got` is from `want`: the root of the ratio of their squares' sums.
double relative_error(const Matrix<float>& want, const Matrix<float>& got) {
  double error = 0, size = 0;
  Kokkos::parallel_reduce(
      "app::relative_error", Kokkos::RangePolicy<Exec>(0, want.size()),
      KOKKOS_LAMBDA(std::size_t i, double& e, double& s) {
        const double w = want.data()[i], difference = w - got.data()[i];
        e += difference * difference;
        s += w * w;
      },
      error, size);
  return std::sqrt(error / size);
}

// ---- Quantization inside the application's own kernel
// ----------------------------------------------------------------

/// RMS-normalizes the rows of x and quantizes the result at once, so that normalized values never go to memory. Blocks
/// are spread over the team's threads; each thread quantizes whole blocks. q has linear scales. inverse_rms [rows]
/// keeps what the rows were multiplied by.
template <ms::BlockFormat Format>
void normalize_and_quantize(const Exec& exec, const Matrix<float>& x, const Vector<float>& inverse_rms,
                            const ms::BlockScaledMatrix<Format, Space>& q) {
  const auto data = q.data();
  const auto scales = q.scales();
  const int cols = static_cast<int>(q.cols()), blocks = static_cast<int>(q.blocks());
  using Team = Kokkos::TeamPolicy<Exec>;
  Kokkos::parallel_for(
      "app::normalize_and_quantize", Team(exec, static_cast<int>(q.rows()), Kokkos::AUTO),
      KOKKOS_LAMBDA(const typename Team::member_type& team) {
        const int row = team.league_rank();
        float squares = 0;
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, cols), [&](int c, float& sum) { sum += x(row, c) * x(row, c); }, squares);
        const float factor = 1.0f / Kokkos::sqrt(squares / static_cast<float>(cols) + 1e-6f);
        Kokkos::single(Kokkos::PerTeam(team), [&] { inverse_rms(row) = factor; });
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, blocks), [&](int block) {
          const int begin = block * Format::block_size;
          const int count = cols - begin < Format::block_size ? cols - begin : Format::block_size;
          float values[Format::block_size];
          for (int i = 0; i < count; ++i) values[i] = x(row, begin + i) * factor;
          std::uint8_t* bytes = &data(row, ms::packed_bytes<Format>(begin));
          scales(row, block) = ms::quantize_block<Format>(values, count, bytes);
        });
      });
}

/// The same in two steps, for comparison.
template <ms::BlockFormat Format>
void normalize_then_quantize(const Exec& exec, const Matrix<float>& x, const Vector<float>& inverse_rms,
                             const ms::BlockScaledMatrix<Format, Space>& q) {
  const Matrix<float> normalized("app::normalized", x.extent(0), x.extent(1));
  Kokkos::parallel_for(
      "app::normalize", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>(exec, {0, 0}, {x.extent(0), x.extent(1)}),
      KOKKOS_LAMBDA(std::size_t r, std::size_t c) { normalized(r, c) = x(r, c) * inverse_rms(r); });
  ms::quantize(exec, normalized, q);
  exec.fence("app: `normalized` is freed");
}

/// Independent batches, each on an instance of its own, against one matrix of weights.
void run_streams() {
  using Format = ms::MXFP8_E4M3;
  constexpr std::int64_t outputs = 192, features = 500;  // the last block of a row has 20 of 32 elements
  const Matrix<float> weight("app::weight", outputs, features);
  const Vector<float> bias("app::bias", outputs);
  fill(weight, 1, 0.05f);
  fill(bias, 2, 0.1f);
  ms::BlockScaledMatrix<Format, Space> quantized_weight("app::quantized_weight", outputs, features);
  ms::quantize(weight, quantized_weight);
  Kokkos::fence("app: the weights are used on other instances");

  struct Batch {
    Matrix<float> x, y;
    Vector<float> inverse_rms;
    ms::BlockScaledMatrix<Format, Space> q;
  };
  const int streams = std::clamp(Exec().concurrency(), 1, 4);
  const auto instances = Kokkos::Experimental::partition_space(Exec(), std::vector<int>(streams, 1));
  std::vector<Batch> batches;
  for (int s = 0; s < streams; ++s) {
    const std::int64_t rows = 100 + 37 * s;
    batches.push_back({{"app::x", static_cast<std::size_t>(rows), features},
                       {"app::y", static_cast<std::size_t>(rows), outputs},
                       {"app::inverse_rms", static_cast<std::size_t>(rows)},
                       {"app::q", rows, features}});
    fill(batches.back().x, 10 + s, 3.0f);
  }
  Kokkos::fence("app: inputs are ready for all instances");

  // Everything here is asynchronous and ordered within its instance only.
  for (int s = 0; s < streams; ++s) {
    const Batch& batch = batches[s];
    normalize_and_quantize(instances[s], batch.x, batch.inverse_rms, batch.q);
    ms::matmul(instances[s], batch.q, quantized_weight, batch.y, ms::Epilogue{}.bias(bias).gelu());
  }
  for (const Exec& instance : instances) instance.fence("app: this batch is done");

  for (const Batch& batch : batches) {
    ms::BlockScaledMatrix<Format, Space> q("app::q_unfused", batch.q.rows(), features);
    const Matrix<float> y("app::y_unfused", batch.y.extent(0), outputs);
    normalize_then_quantize(Exec(), batch.x, batch.inverse_rms, q);
    ms::matmul(Exec(), q, quantized_weight, y, ms::Epilogue{}.bias(bias).gelu());
    require(q.bytes() == batch.q.bytes(), "fused and separate quantization differ");
    require(relative_error(y, batch.y) == 0, "a batch on its own instance and one on the default instance differ");
  }
  std::printf(
      "streams: %d batches on %d instances, quantized within the application's kernel: same bytes, same product\n",
      streams, streams);
}

// ---- A mixture-of-experts layer
// --------------------------------------------------------------------------------------

struct Routed {
  Matrix<std::int32_t> ids;  ///< [tokens, k]; -1 drops a choice
  Matrix<float> weights;     ///< [tokens, k]
};

/// Top-2 experts by a linear router. Every 16th token drops its second choice, as a layer with bounded expert capacity
/// does.
Routed route(const Matrix<float>& x, const Matrix<float>& router) {
  const Routed routed{{"app::ids", x.extent(0), 2}, {"app::routing_weights", x.extent(0), 2}};
  Kokkos::parallel_for(
      "app::route", Kokkos::RangePolicy<Exec>(0, x.extent(0)), KOKKOS_LAMBDA(std::size_t t) {
        float logits[2] = {-1e30f, -1e30f};
        std::int32_t ids[2] = {0, 0};
        for (std::size_t e = 0; e < router.extent(0); ++e) {
          float logit = 0;
          for (std::size_t k = 0; k < x.extent(1); ++k) logit += x(t, k) * router(e, k);
          const int place = logit > logits[0] ? 0 : logit > logits[1] ? 1 : 2;
          if (place == 0) {
            logits[1] = logits[0];
            ids[1] = ids[0];
          }
          if (place < 2) {
            logits[place] = logit;
            ids[place] = static_cast<std::int32_t>(e);
          }
        }
        routed.weights(t, 0) = 1.0f / (1.0f + Kokkos::exp(logits[1] - logits[0]));
        routed.weights(t, 1) = 1.0f - routed.weights(t, 0);
        routed.ids(t, 0) = ids[0];
        routed.ids(t, 1) = t % 16 == 15 ? -1 : ids[1];
      });
  return routed;
}

/// down(silu(gate(x)) * up(x)) of the experts that each token chose. All scales are in the tcgen layout, that of
/// Blackwell's tensor cores; the portable kernels take any.
template <ms::BlockFormat Format>
class MoeLayer {
 public:
  MoeLayer(const Stack<float>& gate_up, const Stack<float>& down)
      : m_gate_up("app::gate_up", gate_up.extent(0), gate_up.extent(1), gate_up.extent(2), ms::ScaleLayout::tcgen),
        m_down("app::down", down.extent(0), down.extent(1), down.extent(2), ms::ScaleLayout::tcgen) {
    ms::quantize(Exec(), gate_up, m_gate_up);
    ms::quantize(Exec(), down, m_down);
  }

  void operator()(const Exec& exec, const Matrix<float>& x, const Routed& routed, const Matrix<float>& y) const {
    const std::int64_t experts = m_gate_up.batch(), hidden = m_gate_up.cols(), inner = m_down.cols();
    const auto routing = ms::build_expert_offsets(exec, routed.ids, experts, ms::ScaleLayout::tcgen);
    const std::int64_t rows = routing.rows();
    const ms::MatmulOptions hints{.hints = {.estimated_total_m = rows, .active_experts = experts}};

    const Matrix<ms::bf16> sorted("app::sorted", rows, hidden), middle("app::middle", rows, inner),
        out("app::out", rows, hidden);
    const auto a =
        ms::BlockScaledMatrix<Format, Space>::grouped("app::a", rows, hidden, experts, ms::ScaleLayout::tcgen);
    const auto b =
        ms::BlockScaledMatrix<Format, Space>::grouped("app::b", rows, inner, experts, ms::ScaleLayout::tcgen);

    ms::gather(exec, x, routing, sorted);
    ms::grouped_quantize(exec, sorted, a, routing.groups());
    ms::grouped_matmul(exec, a, m_gate_up, middle, routing.groups(),
                       ms::Epilogue{}.gate_silu(ms::GateColumns::interleaved), hints);
    ms::grouped_quantize(exec, middle, b, routing.groups());
    ms::grouped_matmul(exec, b, m_down, out, routing.groups(), ms::Epilogue{}, hints);
    ms::combine(exec, out, routed.weights, routing, y);
    exec.fence("app: buffers are freed");
  }

 private:
  ms::BatchedBlockScaledMatrix<Format, Space> m_gate_up, m_down;
};

/// The layer in float, straight from its definition: one index is one output.
void moe_in_float(const Stack<float>& gate_up, const Stack<float>& down, const Matrix<float>& x, const Routed& routed,
                  const Matrix<float>& y) {
  const Stack<float> inner("app::inner", x.extent(0), 2, down.extent(2));
  Kokkos::parallel_for(
      "app::float_up",
      Kokkos::MDRangePolicy<Exec, Kokkos::Rank<3>>({0, 0, 0}, {inner.extent(0), inner.extent(1), inner.extent(2)}),
      KOKKOS_LAMBDA(std::size_t t, std::size_t j, std::size_t i) {
        const std::int32_t e = routed.ids(t, j);
        float gate = 0, up = 0;
        for (std::size_t k = 0; e >= 0 && k < x.extent(1); ++k) {
          gate += x(t, k) * gate_up(e, 2 * i, k);
          up += x(t, k) * gate_up(e, 2 * i + 1, k);
        }
        inner(t, j, i) = gate / (1.0f + Kokkos::exp(-gate)) * up;
      });
  Kokkos::parallel_for(
      "app::float_down", Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2>>({0, 0}, {y.extent(0), y.extent(1)}),
      KOKKOS_LAMBDA(std::size_t t, std::size_t n) {
        float sum = 0;
        for (std::size_t j = 0; j < 2; ++j) {
          const std::int32_t e = routed.ids(t, j);
          float value = 0;
          for (std::size_t i = 0; e >= 0 && i < inner.extent(2); ++i) value += inner(t, j, i) * down(e, n, i);
          sum += routed.weights(t, j) * value;
        }
        y(t, n) = sum;
      });
}

void run_moe() {
  constexpr std::int64_t tokens = 300, hidden = 256, inner = 128, experts = 8;
  const Matrix<float> x("app::x", tokens, hidden), router("app::router", experts, hidden);
  const Matrix<float> y("app::y", tokens, hidden), exact("app::exact", tokens, hidden);
  const Stack<float> gate_up("app::gate_up", experts, 2 * inner, hidden), down("app::down", experts, hidden, inner);
  fill(x, 20, 1.0f);
  fill(router, 21, 0.2f);
  fill(gate_up, 22, 0.15f);
  fill(down, 23, 0.15f);
  const Routed routed = route(x, router);
  moe_in_float(gate_up, down, x, routed, exact);

  const auto run = [&]<class Format>(double limit) {
    MoeLayer<Format>(gate_up, down)(Exec(), x, routed, y);
    const double error = relative_error(exact, y);
    std::printf("moe: %lld tokens, %lld experts, top 2, %s: %.2f %% from float\n", static_cast<long long>(tokens),
                static_cast<long long>(experts), Format::name, 100 * error);
    require(error < limit, std::string("the mixture of experts is off in ") + Format::name);
  };
  // Each operand is rounded with a relative error of about 2.5 % (E4M3) or 10 % (NVFP4). A product has two of them, a
  // gated one twice as many, and the second product adds its own: 2.5 or 10 % times sqrt(2 * 3), give or take.
  run.template operator()<ms::MXFP8_E4M3>(0.08);
  run.template operator()<ms::NVFP4>(0.30);
}

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  try {
    run_streams();
    run_moe();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kokkos_app: %s\n", error.what());
    return 1;
  }
  return 0;
}
