#include <Microscale_Peers.hpp>

#if defined(MICROSCALE_BENCH_OPENBLAS)

#include <cblas.h>

namespace microscale::bench {

std::function<void()> openblas_f32(const PeerProduct<float>& p) {
  return [p, turn = std::size_t{0}]() mutable {
    turn = (turn + 1) % p.b.size();
    const auto m = static_cast<blasint>(p.m), n = static_cast<blasint>(p.n), k = static_cast<blasint>(p.k);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f, p.a, k, p.b[turn], k, 0.0f, p.c, n);
  };
}

std::string openblas_version() { return openblas_get_config(); }

}  // namespace microscale::bench

#else

namespace microscale::bench {

std::function<void()> openblas_f32(const PeerProduct<float>&) { return {}; }
std::string openblas_version() { return "OpenBLAS is not built in: none was found when this was configured"; }

}  // namespace microscale::bench

#endif
