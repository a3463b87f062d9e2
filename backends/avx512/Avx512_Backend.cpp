// Compiled without the flags of the kernels: this runs before anybody knows whether the processor has AVX-512.
#include <Microscale_Avx512_Kernels.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {
namespace {

Status launch(const Problem& problem, const Config& config, void* workspace, const Native& native) {
  switch (problem.operation) {
    case Operation::quantize:
      return quantize(problem, config, workspace, native);
    case Operation::dequantize:
      return dequantize(problem, config, workspace, native);
    case Operation::interleave_scales:
      return interleave_scales(problem, config, workspace, native);
    case Operation::grouped_quantize:
      return grouped_quantize(problem, config, workspace, native);
    case Operation::matmul:
    case Operation::batched_matmul:
      return matmul(problem, config, workspace, native);
    case Operation::grouped_matmul:
      return grouped_matmul(problem, config, workspace, native);
    case Operation::requantize:
      break;
  }
  return {false, "no kernel does this operation"};
}

}  // namespace

const Kernels& kernels() {
  static constexpr Kernels table{cpu_support, prepare, launch};
  return table;
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
