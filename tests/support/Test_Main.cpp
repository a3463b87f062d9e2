#include <gtest/gtest.h>
#include <Kokkos_Core.hpp>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);  // first, so that Kokkos sees only its own arguments
  Kokkos::ScopeGuard guard(argc, argv);
  return RUN_ALL_TESTS();
}
