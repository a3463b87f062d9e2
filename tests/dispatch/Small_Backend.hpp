#ifndef SMALL_BACKEND_HPP
#define SMALL_BACKEND_HPP

#include <Microscale_Interface.hpp>

// A whole backend in one file, for the tests: MXFP4 x MXFP4 -> float on the host. It is compiled with flags of its own,
// knows no Kokkos, and works on the caller's threads. Every block's dot product is exact, and blocks are added in
// ascending k, so that it gives the reference's bits.
namespace microscale::backend_small {

const Backend& backend();

}  // namespace microscale::backend_small

#endif
