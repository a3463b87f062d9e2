#ifndef MICROSCALE_INTERLEAVE_HPP
#define MICROSCALE_INTERLEAVE_HPP

#include <Microscale_Reference_Quantize.hpp>
#include <Microscale_RunBackend.hpp>
#include <Microscale_ScaleMatrix.hpp>

namespace microscale {

namespace Impl {

/// One index is up to `chunk` neighbouring scales of a row of the destination, padding included.
struct InterleaveKernel {
  static constexpr int chunk = 64;

  const std::uint8_t* from;
  std::int64_t from_pitch;
  ScaleMap from_map;
  std::uint8_t* to;
  std::int64_t to_pitch;
  ScaleMap to_map;

  KOKKOS_FUNCTION std::int64_t chunks() const { return (to_map.padded_cols() + chunk - 1) / chunk; }
  KOKKOS_FUNCTION std::int64_t padded_rows() const { return to_map.tile_rows() * scale_tile(to_map.layout).rows; }

  KOKKOS_FUNCTION static std::int64_t offset(const ScaleMap& map, std::int64_t pitch, std::int64_t r, std::int64_t c) {
    return tile_row(map.layout, r) * pitch + map.offset_in_tile_row(r, c);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t r = index / chunks(), begin = index % chunks() * chunk;
    const std::int64_t end = begin + chunk < to_map.padded_cols() ? begin + chunk : to_map.padded_cols();
    for (std::int64_t c = begin; c < end; ++c)
      to[offset(to_map, to_pitch, r, c)] =
          r < to_map.rows && c < to_map.cols ? from[offset(from_map, from_pitch, r, c)] : std::uint8_t{0};
  }
};

}  // namespace Impl

namespace Impl {

template <class Exec, class FromSpace, class ToSpace>
void check_interleave(const ScaleMatrix<FromSpace>& from, const ScaleMatrix<ToSpace>& to) {
  static_assert(can_access<Exec, FromSpace> && can_access<Exec, ToSpace>,
                "microscale::interleave_scales: the execution space must be able to access both scale matrices");
  expects_extents("interleave_scales", "to", to.rows(), to.blocks(), from.rows(), from.blocks());
  expects(to.map().bytes() == 0 || to.view().data() != from.view().data(), "interleave_scales", "to",
          "is the memory of from", "memory of its own");
}

/// Scales alone as an operand: cols counts block columns, there is no data.
template <class Space>
Operand operand(const ScaleMatrix<Space>& m) {
  Operand result;
  result.rows = m.rows();
  result.cols = m.blocks();
  result.scales = m.view().data();
  result.scale_layout = m.layout();
  result.scale_pitch = static_cast<std::int64_t>(m.view().stride(0));
  return result;
}

}  // namespace Impl

namespace reference {

/// microscale::interleave_scales by the portable kernel, whatever backends are enabled.
template <ExecutionSpace Exec, class FromSpace, class ToSpace>
void interleave_scales(const Exec& exec, const ScaleMatrix<FromSpace>& from, const ScaleMatrix<ToSpace>& to) {
  Impl::check_interleave<Exec>(from, to);
  const Impl::InterleaveKernel kernel{from.view().data(), static_cast<std::int64_t>(from.view().stride(0)), from.map(),
                                      to.view().data(),   static_cast<std::int64_t>(to.view().stride(0)),   to.map()};
  Kokkos::parallel_for("microscale::interleave_scales[reference]",
                       Impl::IndexRange<Exec>(exec, 0, kernel.padded_rows() * kernel.chunks()), kernel);
}

}  // namespace reference

/// Copies scales from any layout to any other, zeroing the padding of `to`. The two have the same rows and blocks and
/// do not overlap. Asynchronous on exec; allocates nothing; safe to call from several threads for distinct `to`. Throws
/// std::invalid_argument if the extents differ.
template <ExecutionSpace Exec, class FromSpace, class ToSpace>
void interleave_scales(const Exec& exec, const ScaleMatrix<FromSpace>& from, const ScaleMatrix<ToSpace>& to,
                       const DispatchOptions& options = {}) {
  Impl::check_interleave<Exec>(from, to);
  Problem problem = Impl::problem_on(exec, Operation::interleave_scales);
  problem.m = from.rows();
  problem.k = from.blocks();
  problem.a = Impl::operand(from);
  problem.c = Impl::operand(to);
  if (!Impl::run_by_backend(exec, problem, options)) reference::interleave_scales(exec, from, to);
}

/// interleave_scales on the default instance of the destination's space.
template <class FromSpace, class ToSpace>
void interleave_scales(const ScaleMatrix<FromSpace>& from, const ScaleMatrix<ToSpace>& to) {
  interleave_scales(typename ToSpace::execution_space{}, from, to);
}

/// interleave_scales into the linear layout [rows, blocks]; throws std::invalid_argument if `to` has another one.
template <ExecutionSpace Exec, class FromSpace, class ToSpace>
void deinterleave_scales(const Exec& exec, const ScaleMatrix<FromSpace>& from, const ScaleMatrix<ToSpace>& to) {
  Impl::expects(
      to.layout() == ScaleLayout::linear, "deinterleave_scales", "to",
      [&] { return std::string("has layout ") + name(to.layout()); }, [] { return "layout linear"; });
  interleave_scales(exec, from, to);
}

/// deinterleave_scales on the default instance of the destination's space.
template <class FromSpace, class ToSpace>
void deinterleave_scales(const ScaleMatrix<FromSpace>& from, const ScaleMatrix<ToSpace>& to) {
  deinterleave_scales(typename ToSpace::execution_space{}, from, to);
}

}  // namespace microscale

#endif
