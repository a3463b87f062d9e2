#ifndef MICROSCALE_PEERS_HPP
#define MICROSCALE_PEERS_HPP

#include <Microscale_Half.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Other libraries that multiply matrices on this machine. No Kokkos.
namespace microscale::bench {

/// C [m, n] = A [m, k] B [n, k]^T, all row after row without gaps. Calls take the Bs in turn.
template <class T>
struct PeerProduct {
  std::int64_t m, n, k;
  const T* a;
  std::vector<const T*> b;
  float* c;
};

/// How oneDNN gets B: repacked once beforehand into the layout that it likes best, or as it lies at each call.
enum class PeerWeights : std::uint8_t { packed, plain };

/// A function that makes one call; empty if the library is not built in or cannot do it on this processor.
std::function<void()> onednn_bf16(const PeerProduct<bf16>& product, PeerWeights weights);
std::function<void()> openblas_f32(const PeerProduct<float>& product);

/// Name and version, or why there is none.
std::string onednn_version();
std::string openblas_version();

}  // namespace microscale::bench

#endif
