#include <Kokkos_Core.hpp>
#include <Microscale.hpp>
namespace ms = microscale;
int main(int argc, char** argv) {
  Kokkos::ScopeGuard guard(argc, argv);
  using Exec = Kokkos::DefaultExecutionSpace;
  using Space = Exec::memory_space;
  Kokkos::View<float**, Kokkos::LayoutRight, Exec> a("a", 100, 200), b("b", 300, 200), c("c", 100, 300);
  ms::BlockScaledMatrix<ms::NVFP4, Space> qa("qa", 100, 200), qb("qb", 300, 200);
  Exec exec;
  ms::quantize(exec, a, qa);                                                    // tensor scale found on the device
  ms::quantize(exec, b, qb, {.tensor_scale = ms::TensorScale::decode(0.01f)});  // options are an aggregate
  ms::matmul(exec, qa, qb, c, ms::Epilogue{}.alpha(0.5f).relu());               // C = relu(0.5 A B^T)
  ms::dequantize(exec, qa, a);
  exec.fence();
}
