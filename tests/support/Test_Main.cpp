#include <BackendUnderTest.hpp>
#include <gtest/gtest.h>
#include <Kokkos_Core.hpp>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);  // first, so that Kokkos sees only its own arguments
  Kokkos::ScopeGuard guard(argc, argv);
  if (const char* backend = std::getenv("MICROSCALE_TEST_BACKEND")) {
    if (const std::string why = microscale::Test::unavailable(backend); !why.empty()) {
      constexpr int skipped = 77;  // as CMake is told
      std::cout << "Skipped: backend " << backend << " cannot run here: " << why << "\n";
      return skipped;
    }
    microscale::Test::use_backend(backend);
  }
  return RUN_ALL_TESTS();
}
