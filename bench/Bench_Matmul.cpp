#include <Microscale_Bench.hpp>
#include <Microscale_BenchProduct.hpp>
#include <Microscale_Peers.hpp>

// matmul with B prepared and (B:plain) as it was quantized, beside what other libraries do in bfloat16 and binary32 with
// matrices of the same extents.
namespace microscale::bench {
namespace {

/// With few rows the weights come from memory, as they do when a model is run.
std::size_t weight_turns(const Product& p, double bytes) { return p.m <= 16 ? turns(bytes) : 1; }

/// An A operand: quantized, or a plain matrix.
template <class T>
auto activations(std::int64_t rows, std::int64_t cols) {
  if constexpr (BlockFormat<T>) {
    const BlockScaledMatrix<T, Space> result("a", rows, cols);
    quantize(random_matrix<float>(rows, cols), result);
    return result;
  } else {
    return random_matrix<T>(rows, cols);
  }
}

/// A call that keeps its operands; empty if it is.
template <class Operands>
std::function<void()> owning(const Operands& operands, const std::function<void()>& call) {
  if (!call) return {};
  return [operands, call] { call(); };
}

/// What a peer multiplies, and the memory of it.
template <class T>
struct PeerOperands {
  Matrix<T> a;
  std::vector<Matrix<T>> b;
  Matrix<float> c;

  PeerOperands(const Product& p, std::size_t count) : a(random_matrix<T>(p.m, p.k)), c("c", p.m, p.n) {
    while (b.size() < count) b.push_back(b.empty() ? random_matrix<T>(p.n, p.k) : copy_of(b.front()));
  }
  PeerProduct<T> product(const Product& p) const {
    PeerProduct<T> result{p.m, p.n, p.k, a.data(), {}, c.data()};
    for (const Matrix<T>& m : b) result.b.push_back(m.data());
    return result;
  }
};

template <class A, class Weights>
void add_peers(Trial& trial, const Product& p, Turns<Weights> weights) {
  if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, Space>::accessible) {
    trial.peers.push_back({"onednn_bf16", [p] {
                             const PeerOperands<bf16> operands(p, weight_turns(p, bytes<bf16>(p.n, p.k)));
                             return owning(operands, onednn_bf16(operands.product(p), PeerWeights::packed));
                           }});
    if constexpr (std::is_same_v<A, bf16>)
      trial.peers.push_back({"dequantize_onednn_bf16", [p, weights] {
                               const PeerOperands<bf16> scratch(p, 1);
                               const auto multiply = onednn_bf16(scratch.product(p), PeerWeights::plain);
                               if (!multiply) return multiply;
                               return waited([=](const Exec& exec) mutable {
                                 dequantize(exec, weights.next(), scratch.b[0], {.backend = measured_backend()});
                                 exec.fence();
                                 multiply();
                               });
                             }});
    trial.peers.push_back({"openblas_f32", [p] {
                             const PeerOperands<float> operands(p, weight_turns(p, bytes<float>(p.n, p.k)));
                             return owning(operands, openblas_f32(operands.product(p)));
                           }});
  }
}

template <class A, class B>
Trial make_trial(const Product& p, bool prepared) {
  const auto a = activations<A>(p.m, p.k);
  const BlockScaledMatrix<B, Space> first("b", p.n, p.k);
  quantize(random_matrix<float>(p.n, p.k), first);
  auto weights = repeat(weight_turns(p, bytes<B>(p.n, p.k)), [&] { return copy_of(first); });
  const Matrix<float> c("c", p.m, p.n);
  Trial trial;
  const auto with = [&](auto operands) {
    const auto workspace = workspace_for(matmul_problem(Exec(), a, operands.next(), c));
    trial.ours = waited(
        [=](const Exec& exec) mutable { matmul(exec, a, operands.next(), c, Epilogue{}, options_with(workspace)); });
  };
  if (prepared)
    with(weights.map([&](const auto& b) { return prepare(Exec(), b, prepare_options<A>(p.m)); }));
  else
    with(weights);
  add_reference(trial, waited([=](const Exec& exec) mutable { reference::matmul(exec, a, weights.next(), c); }));
  add_peers<A>(trial, p, weights);
  return trial;
}

template <class A, class B>
void add_product(std::vector<Case>& cases, const Product& p, bool prepared) {
  const double operations = 2.0 * static_cast<double>(p.m * p.n * p.k);
  if (too_slow(operations)) return;
  cases.push_back({"matmul/" + pair_name<A, B>() + extent("M", p.m) + extent("N", p.n) + extent("K", p.k) +
                       (prepared ? "" : "/B:plain") + backend_and_threads(),
                   p.m <= decode_rows ? Ceiling::read : instruction<A, B>(), operations,
                   bytes<A>(p.m, p.k) + bytes<B>(p.n, p.k) + bytes<float>(p.m, p.n),
                   [=] { return make_trial<A, B>(p, prepared); }});
}

template <class A, class B>
void add_pair(std::vector<Case>& cases, std::type_identity<Pair<A, B>>) {
  for (const Product& p : products) {
    add_product<A, B>(cases, p, true);
    if (p.plain_too) add_product<A, B>(cases, p, false);
  }
}

}  // namespace

void add_products(std::vector<Case>& cases) {
  for_each_type(ProductFormats(), [&](auto pair) { add_pair(cases, pair); });
}

}  // namespace microscale::bench
