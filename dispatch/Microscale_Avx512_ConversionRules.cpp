#include <Microscale_Avx512_Rules.hpp>
#include <Microscale_ProblemTraits.hpp>

#include <algorithm>

namespace microscale::Impl {
namespace {

bool is_converted(FormatId format) { return is_plain(format) || format == float64_id; }

constexpr Support no_kernel_for_type{false, "only float, double, half and bf16 values"};
constexpr Support no_kernel_for_format{false, "no kernel for this block format"};

double elements(const Operand& operand) {
  return static_cast<double>(operand.rows) * static_cast<double>(operand.cols);
}

/// Bytes of the plain side of a conversion.
double plain_bytes(const Operand& operand) { return elements(operand) * bits_per_code(operand.format) / 8; }

/// How much longer a core takes where the elements that are neighbours in a row are none in memory: 16 rows are then
/// transposed, if those are neighbours, or elements are taken one by one.
double detour(const Operand& plain) { return plain.col_stride == 1 ? 1.0 : (plain.row_stride == 1 ? 2.0 : 8.0); }

}  // namespace

Support avx512_conversion_supports(const Problem& problem) {
  switch (problem.operation) {
    case Operation::quantize:
    case Operation::grouped_quantize:
      if (!is_converted(problem.a.format)) return no_kernel_for_type;
      return avx512_has_kernels_for(problem.c.format) ? Support{true} : no_kernel_for_format;
    case Operation::dequantize:
      if (!is_converted(problem.c.format)) return no_kernel_for_type;
      return avx512_has_kernels_for(problem.a.format) ? Support{true} : no_kernel_for_format;
    case Operation::interleave_scales:
      return {true};
    default:
      return {false, "no kernel does this operation"};
  }
}

double avx512_conversion_cost(const Problem& problem) {
  // Rates of one core of a server; of the plain side where there is one.
  constexpr double start = 2e-6, quantized = 12e9, searched = 15e9, dequantized = 12e9, copied = 2e9;
  const double cores = std::max(problem.concurrency, 1);
  switch (problem.operation) {
    case Operation::quantize:
    case Operation::grouped_quantize: {
      const bool dynamic = problem.c.format.tensor_scale && problem.quantize.source == TensorScaleSource::dynamic;
      const double seconds = plain_bytes(problem.a) * (1 / quantized + (dynamic ? 1 / searched : 0.0));
      return start + seconds * detour(problem.a) / cores;
    }
    case Operation::dequantize:
      return start + plain_bytes(problem.c) * detour(problem.c) / dequantized / cores;
    default:
      return start + elements(problem.c) / copied / cores;
  }
}

}  // namespace microscale::Impl
