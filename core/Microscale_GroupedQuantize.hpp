#ifndef MICROSCALE_GROUPEDQUANTIZE_HPP
#define MICROSCALE_GROUPEDQUANTIZE_HPP

#include <Microscale_Groups.hpp>
#include <Microscale_Quantize.hpp>
#include <Microscale_Reference_GroupedQuantize.hpp>

#include <cstdint>
#include <type_traits>

namespace microscale {

/// Options of grouped_quantize.
template <class MemorySpace>
struct GroupedQuantizeOptions {
  QuantizeOptions quantize{};  ///< axis must be rows
  /// [experts] or empty: one tensor scale an expert, as decode scales (values = codes * block scale * decode; amax/2688
  /// is usual), indexed by expert id. For formats with a tensor scale, and instead of quantize.tensor_scale. An invalid
  /// one (0, negative, NaN, Inf) gives NaN blocks.
  Kokkos::View<const float*, MemorySpace> expert_decode_scales{};
  SkippedRows skipped_rows = SkippedRows::zero;
};

namespace Impl {

/// The arguments of grouped_quantize, checked, as kernels see them.
template <class T>
struct GroupedQuantizeCall {
  StridedMatrix<const T> source;
  GroupData groups;
  QuantizeData quantize;
};

template <class Exec, class Src, BlockFormat Format, class Space>
auto checked_grouped_quantize(const Src& src, const BlockScaledMatrix<Format, Space>& dst, const Groups<Space>& groups,
                              const GroupedQuantizeOptions<Space>& options) {
  constexpr const char* where = "grouped_quantize";
  static_assert(check_conversion_types<Exec, Src, BlockScaledMatrix<Format, Space>>());
  static_assert(Src::rank() == 2, "microscale::grouped_quantize: src must be a View of rank 2");
  const auto source = source_of(src, Axis::rows);
  const bool tiled = dst.scale_layout() != ScaleLayout::linear;
  const bool per_expert = options.expert_decode_scales.data() != nullptr;
  expects_extents(where, "src", source.rows, source.cols, dst.rows(), dst.cols());
  expects(dst.has_grouped_scales() == tiled, where, "dst", "has tiled scales of one matrix",
          "linear scales, or a matrix made by BlockScaledMatrix::grouped");
  expects(options.quantize.axis == Axis::rows, where, "axis", "is columns", "rows: groups are ranges of rows");
  expects_options<Format>(where, options.quantize);
  expects(Format::tensor_scale || !per_expert, where, "expert_decode_scales", "is given",
          "none: this format has no tensor scale");
  expects(!per_expert || options.quantize.tensor_scale.source() == TensorScaleSource::dynamic, where, "tensor_scale",
          "is given beside expert_decode_scales", "one of the two");
  QuantizeData quantize = quantize_data(options.quantize);
  if (per_expert) {
    VectorOperand& scales = quantize.expert_tensor_scale;
    scales.data = options.expert_decode_scales.data();
    scales.type = element_id<float>;
    scales.size = static_cast<std::int64_t>(options.expert_decode_scales.extent(0));
    quantize.source = TensorScaleSource::given;  // the matrix itself has the pair (1, 1)
    quantize.tensor_scale = {};
  }
  return GroupedQuantizeCall<std::remove_const_t<typename decltype(source)::value_type>>{
      source, groups.data(where, options.skipped_rows, tiled), quantize};
}

}  // namespace Impl

namespace reference {

/// microscale::grouped_quantize by the portable kernels, whatever backends are enabled.
template <ExecutionSpace Exec, class Src, BlockFormat Format, class Space>
void grouped_quantize(const Exec& exec, const Src& src, const BlockScaledMatrix<Format, Space>& dst,
                      const Groups<Space>& groups, const GroupedQuantizeOptions<Space>& options = {}) {
  const auto call = Impl::checked_grouped_quantize<Exec>(src, dst, groups, options);
  const auto& scales = call.quantize.expert_tensor_scale;
  const std::int64_t experts = scales.data != nullptr ? scales.size : any_expert;
  const auto handle = dst.handle();
  Impl::grouped_quantize_source<Format>("microscale::grouped_quantize[reference]", exec, Impl::ViewSource(call.source),
                                        handle, call.quantize,
                                        {call.groups, dst.scale_layout(), dst.rows(), handle.tile_rows, experts});
}

}  // namespace reference

/// Quantizes activations whose rows are sorted by expert. src: View [total, K] of float, double (rounded to float
/// first), half or bf16 in any layout and stride. dst: total x K, with linear scales or made by
/// BlockScaledMatrix::grouped(label, total, K, slots, layout); in tiled layouts the scales of slot s begin at row of
/// tiles row_offsets(s) / tile rows + a_scale_offsets(s). Every slot gets the bytes that quantize() gives its rows
/// under the tensor scale that applies:
///  - without expert_decode_scales there is one, stored in dst; a dynamic one is found over all rows that are not
///    skipped;
///  - with them each slot has its expert's, and dst's own becomes (1, 1). A product then lacks this factor: pass the
///    same View to grouped_matmul as the epilogue's expert_scale (which is indexed by expert id too), times any scale
///    of its own.
/// Rows that are skipped (expert id -1 or beyond the list of expert_decode_scales) or in no slot become zero, codes and
/// scales, or stay untouched (options.skipped_rows). All other scale bytes (of partial tiles, of padding columns, of
/// tiles in no slot) become zero always.
///
/// Asynchronous on exec; allocates nothing, reads nothing back; safe from several threads for distinct dst. Arrays in
/// `groups` that contradict themselves or the extents lead to no access out of bounds: a slot whose range or tiles are
/// not within dst is as if it were not there, and what two slots claim goes to the first; validate() finds these.
/// Throws std::invalid_argument for extents, options, a dst of the wrong kind or arrays that are too short, before
/// anything is written. Source: the grouped quantizer of Modular's kernels, with row offsets, expert ids and scale
/// offsets of the same meaning.
template <ExecutionSpace Exec, class Src, BlockFormat Format, class Space>
void grouped_quantize(const Exec& exec, const Src& src, const BlockScaledMatrix<Format, Space>& dst,
                      const Groups<Space>& groups, const GroupedQuantizeOptions<Space>& options = {}) {
  const auto call = Impl::checked_grouped_quantize<Exec>(src, dst, groups, options);
  Problem problem = Impl::problem_on(exec, Operation::grouped_quantize);
  problem.m = dst.rows();
  problem.k = dst.cols();
  problem.a = Impl::operand(call.source);
  problem.c = Impl::operand(dst);
  problem.quantize = call.quantize;
  problem.groups = call.groups;
  if (!Impl::run_by_backend(exec, problem, options.quantize.dispatch))
    reference::grouped_quantize(exec, src, dst, groups, options);
}

/// grouped_quantize on the default instance of src's execution space.
template <class Src, BlockFormat Format, class Space>
requires(Kokkos::is_view_v<Src>) void grouped_quantize(const Src& src, const BlockScaledMatrix<Format, Space>& dst,
                                                       const Groups<Space>& groups,
                                                       const GroupedQuantizeOptions<Space>& options = {}) {
  grouped_quantize(typename Src::execution_space{}, src, dst, groups, options);
}

}  // namespace microscale

#endif
