#ifndef MICROSCALE_TOOLS_ROWS_HPP
#define MICROSCALE_TOOLS_ROWS_HPP

#include <Microscale_Checkpoint.hpp>
#include <Microscale_Convert.hpp>

// A checkpoint's tensors as rows of a matrix, some rows at a time, so that memory does not grow with the tensors.
namespace microscale::tools {

/// The leading dimensions are rows, the last one is columns; a scalar is 1 x 1.
struct MatrixShape {
  std::int64_t rows;
  std::int64_t cols;
};
MatrixShape matrix_shape(const std::vector<std::uint64_t>& shape);

/// How many rows are worked on at once: about 4 million elements, at least one row.
std::int64_t rows_at_once(std::int64_t cols);

/// Calls function(first, count) for all rows in order, rows_at_once of them at a time.
template <class Function>
void for_rows(MatrixShape shape, Function&& function) {
  if (shape.rows == 0 || shape.cols == 0) return;
  const std::int64_t step = rows_at_once(shape.cols);
  for (std::int64_t first = 0; first < shape.rows; first += step) function(first, std::min(step, shape.rows - first));
}

/// The tensor-scale pair that a file's tensor scale stands for; (1, 1) without one. Throws FileError if it is 0,
/// negative, NaN or Inf or has no finite reciprocal.
TensorScalePair tensor_scale_pair(const Checkpoint& checkpoint, const CheckpointTensor& tensor);

/// `count` rows of a plain tensor of a quantizable dtype, and of a block-scaled one.
PlainRows plain_rows(const Checkpoint& checkpoint, const CheckpointTensor& tensor, std::int64_t first,
                     std::int64_t count);
BlockRows block_rows(const Checkpoint& checkpoint, const CheckpointTensor& tensor, TensorScalePair pair,
                     std::int64_t first, std::int64_t count);

/// The bytes that those rows take in the file, for release_pages.
std::span<const std::byte> row_bytes(const Checkpoint& checkpoint, const CheckpointTensor& tensor, std::int64_t first,
                                     std::int64_t count);

}  // namespace microscale::tools

#endif
