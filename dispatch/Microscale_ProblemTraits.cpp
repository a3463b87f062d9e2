#include <Microscale_BlockFormat.hpp>
#include <Microscale_ProblemTraits.hpp>

namespace microscale::Impl {

bool is_product(Operation operation) {
  return operation == Operation::matmul || operation == Operation::batched_matmul ||
         operation == Operation::grouped_matmul;
}

bool is_plain(FormatId f) { return f == float32_id || f == float16_id || f == bfloat16_id; }
bool is_mxfp8(FormatId f) { return f == format_id<MXFP8_E4M3> || f == format_id<MXFP8_E5M2>; }
bool is_mxfp6(FormatId f) { return f == format_id<MXFP6_E2M3> || f == format_id<MXFP6_E3M2>; }

GroupEstimate estimate_of(const Problem& problem) {
  return {problem.hints.estimated_total_m > 0 ? problem.hints.estimated_total_m : problem.m,
          problem.hints.active_experts > 0 ? problem.hints.active_experts : problem.groups.slots};
}

}  // namespace microscale::Impl
