// A small program that stands for a user's, with a main() and Kokkos of its own.
#include <Kokkos_Core.hpp>
#include <Microscale_Config.hpp>
#include <Microscale_Element.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  Kokkos::ScopeGuard guard(argc, argv);
  int sum = 0;
  Kokkos::parallel_reduce(
      "consumer", 100, KOKKOS_LAMBDA(int i, int& update) { update += i; }, sum);
  std::printf("Microscale %s\n", MICROSCALE_VERSION_STRING);
  return sum == 4950 ? 0 : 1;
}
