#ifndef MICROSCALE_MATRIXCOPY_HPP
#define MICROSCALE_MATRIXCOPY_HPP

#include <Microscale_BatchedBlockScaledMatrix.hpp>
#include <Microscale_Interleave.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

// Copies between memory spaces, and to and from plain bytes.
namespace microscale {

/// The scales of a matrix with their layout, sharing its memory. A matrix with grouped scales has no such form and
/// throws.
template <BlockFormat Format, class Space>
ScaleMatrix<Space> scale_matrix(const BlockScaledMatrix<Format, Space>& matrix) {
  Impl::expects(!matrix.has_grouped_scales(), "scale_matrix", "matrix", "has grouped scales",
                "a matrix that is not grouped");
  return {matrix.scales(), matrix.rows(), matrix.blocks(), matrix.scale_layout()};
}

/// Copies codes, scales and tensor scale of matrices of equal extents, asynchronously on exec. Within what exec can
/// access the scale layouts may differ (scales are interleaved on the way); between other memory spaces they must be
/// equal. Throws std::invalid_argument otherwise.
template <ExecutionSpace Exec, BlockFormat Format, class ToSpace, class FromSpace>
void deep_copy(const Exec& exec, const BlockScaledMatrix<Format, ToSpace>& to,
               const BlockScaledMatrix<Format, FromSpace>& from) {
  Impl::expects_extents("deep_copy", "to", to.rows(), to.cols(), from.rows(), from.cols());
  const bool same = to.scale_layout() == from.scale_layout() && to.has_grouped_scales() == from.has_grouped_scales() &&
                    to.scales().extent(0) == from.scales().extent(0);
  constexpr bool can_interleave = Impl::can_access<Exec, ToSpace> && Impl::can_access<Exec, FromSpace>;
  Impl::expects(same || (!to.has_grouped_scales() && !from.has_grouped_scales()), "deep_copy", "to",
                "has other grouped scales than from", "scales that are grouped alike");
  Impl::expects(
      same || can_interleave, "deep_copy", "to",
      [&] { return std::string("has scale layout ") + name(to.scale_layout()); },
      [&] { return std::string(name(from.scale_layout())) + ", as the execution space cannot access both"; });
  Kokkos::deep_copy(exec, to.data(), from.data());
  // An empty matrix without memory has no pair.
  if (to.tensor_scale().data() != nullptr && from.tensor_scale().data() != nullptr)
    Kokkos::deep_copy(exec, to.tensor_scale(), from.tensor_scale());
  if (same) {
    Kokkos::deep_copy(exec, to.scales(), from.scales());
  } else if constexpr (can_interleave) {
    interleave_scales(exec, scale_matrix(from), scale_matrix(to));
  }
}

/// deep_copy on the default instance, with a fence after it (as Kokkos::deep_copy does).
template <BlockFormat Format, class ToSpace, class FromSpace>
void deep_copy(const BlockScaledMatrix<Format, ToSpace>& to, const BlockScaledMatrix<Format, FromSpace>& from) {
  const typename ToSpace::execution_space exec;
  deep_copy(exec, to, from);
  exec.fence("microscale::deep_copy");
}

/// Copies every matrix of a batch.
template <ExecutionSpace Exec, BlockFormat Format, class ToSpace, class FromSpace>
void deep_copy(const Exec& exec, const BatchedBlockScaledMatrix<Format, ToSpace>& to,
               const BatchedBlockScaledMatrix<Format, FromSpace>& from) {
  Impl::expects(
      to.batch() == from.batch(), "deep_copy", "to", [&] { return "has batch " + std::to_string(to.batch()); },
      [&] { return std::to_string(from.batch()); });
  for (std::int64_t e = 0; e < to.batch(); ++e) deep_copy(exec, to.matrix(e), from.matrix(e));
}

/// deep_copy on the default instance, with a fence after it (as Kokkos::deep_copy does).
template <BlockFormat Format, class ToSpace, class FromSpace>
void deep_copy(const BatchedBlockScaledMatrix<Format, ToSpace>& to,
               const BatchedBlockScaledMatrix<Format, FromSpace>& from) {
  const typename ToSpace::execution_space exec;
  deep_copy(exec, to, from);
  exec.fence("microscale::deep_copy");
}

/// A matrix of the same extents, scale layout and groups in another memory space (host by default); allocates.
template <class Space = Kokkos::HostSpace, BlockFormat Format, class FromSpace>
BlockScaledMatrix<Format, Space> create_mirror(const BlockScaledMatrix<Format, FromSpace>& matrix) {
  return BlockScaledMatrix<Format, Space>::like("microscale::mirror", matrix);
}

/// The same for a batch.
template <class Space = Kokkos::HostSpace, BlockFormat Format, class FromSpace>
BatchedBlockScaledMatrix<Format, Space> create_mirror(const BatchedBlockScaledMatrix<Format, FromSpace>& batch) {
  return {"microscale::mirror", batch.batch(), batch.rows(), batch.cols(), batch.scale_layout()};
}

/// create_mirror followed by deep_copy, of a matrix or a batch; synchronizes.
template <class Space = Kokkos::HostSpace, class Matrix>
requires(is_block_scaled_matrix_v<Matrix> ||
         is_batched_block_scaled_matrix_v<Matrix>) auto create_mirror_and_copy(const Matrix& matrix) {
  const auto mirror = create_mirror<Space>(matrix);
  using From = typename Matrix::memory_space;
  if constexpr (std::is_same_v<Space, Kokkos::HostSpace> && !Impl::can_access<Kokkos::DefaultHostExecutionSpace, From>)
    Kokkos::fence("microscale::create_mirror_and_copy");  // kernels of any instance may still be writing the source
  deep_copy(mirror, matrix);
  return mirror;
}

/// Bytes that bytes() gives for a rows x cols matrix.
template <BlockFormat Format>
constexpr std::int64_t serialized_bytes(std::int64_t rows, std::int64_t cols) {
  return rows * (packed_bytes<Format>(cols) + block_count<Format>(cols)) +
         (Format::tensor_scale ? static_cast<std::int64_t>(sizeof(TensorScalePair)) : 0);
}

template <class Format, class Space>
std::vector<std::uint8_t> BlockScaledMatrix<Format, Space>::bytes() const {
  Impl::expects(!m_grouped, "BlockScaledMatrix::bytes", "matrix", "has grouped scales", "a matrix that is not grouped");
  const auto host = create_mirror_and_copy(*this);
  const auto handle = host.handle();
  std::vector<std::uint8_t> bytes;
  bytes.reserve(serialized_bytes<Format>(m_rows, m_cols));
  for (std::int64_t r = 0; r < m_rows; ++r)
    bytes.insert(bytes.end(), handle.row(r), handle.row(r) + packed_bytes<Format>(m_cols));
  for (std::int64_t r = 0; r < m_rows; ++r)
    for (std::int64_t b = 0; b < blocks(); ++b) bytes.push_back(handle.scale(r, b));
  if constexpr (Format::tensor_scale) {
    const float halves[] = {handle.pair().decode, handle.pair().encode};
    for (const float half : halves)
      for (int shift = 0; shift < 32; shift += 8)
        bytes.push_back(static_cast<std::uint8_t>(Bits::from_float(half) >> shift));
  }
  return bytes;
}

/// The inverse of bytes(): a new matrix of the given extents and scale layout. Synchronizes and allocates. Throws
/// std::invalid_argument if there are not exactly serialized_bytes<Format>(rows, cols) bytes.
template <BlockFormat Format, class Space>
BlockScaledMatrix<Format, Space> from_bytes(const std::string& label, std::int64_t rows, std::int64_t cols,
                                            const std::vector<std::uint8_t>& bytes,
                                            ScaleLayout layout = ScaleLayout::linear) {
  const std::int64_t needed = serialized_bytes<Format>(rows, cols);
  Impl::expects(
      static_cast<std::int64_t>(bytes.size()) == needed, "from_bytes", "bytes",
      [&] { return "has size " + std::to_string(bytes.size()); }, [&] { return std::to_string(needed); });

  const BlockScaledMatrix<Format, Space> result(label, rows, cols, layout);
  const auto host = create_mirror<Kokkos::HostSpace>(result);
  const auto handle = host.handle();
  const std::uint8_t* next = bytes.data();
  const std::int64_t row_bytes = packed_bytes<Format>(cols);
  for (std::int64_t r = 0; r < rows; ++r, next += row_bytes)
    if (row_bytes > 0) std::memcpy(handle.row(r), next, row_bytes);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t b = 0; b < host.blocks(); ++b) handle.scale(r, b) = *next++;
  if constexpr (Format::tensor_scale) {
    const auto read = [&] {
      std::uint32_t word = 0;
      for (int shift = 0; shift < 32; shift += 8) word |= static_cast<std::uint32_t>(*next++) << shift;
      return Bits::to_float(word);
    };
    const float decode = read();
    *handle.tensor_scale = {decode, read()};
  }
  deep_copy(result, host);
  return result;
}

}  // namespace microscale

#endif
