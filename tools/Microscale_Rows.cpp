#include <Microscale_Errors.hpp>
#include <Microscale_Report.hpp>
#include <Microscale_Rows.hpp>

#include <algorithm>

namespace microscale::tools {

MatrixShape matrix_shape(const std::vector<std::uint64_t>& shape) {
  MatrixShape matrix{1, 1};
  if (!shape.empty()) matrix.cols = static_cast<std::int64_t>(shape.back());
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) matrix.rows *= static_cast<std::int64_t>(shape[i]);
  return matrix;
}

std::int64_t rows_at_once(std::int64_t cols) {
  constexpr std::int64_t elements = std::int64_t{1} << 22;
  return std::max<std::int64_t>(1, elements / cols);
}

TensorScalePair tensor_scale_pair(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  if (tensor.half == TensorScaleHalf::none) return {};
  const float value = checkpoint.tensor_scale(tensor);
  const TensorScalePair pair =
      tensor.half == TensorScaleHalf::decode ? pair_from_decode(value) : pair_from_encode(value);
  if (!is_valid(pair))
    throw FileError(checkpoint.shards()[tensor.shard].path(),
                    "tensor \"" + printable(tensor.tensor_scale->name) + "\" is " + number_text(value, 9) +
                        ", and a tensor scale must be positive and finite, with a finite reciprocal");
  return pair;
}

std::span<const std::byte> row_bytes(const Checkpoint& checkpoint, const CheckpointTensor& tensor, std::int64_t first,
                                     std::int64_t count) {
  const auto bytes = checkpoint.bytes(*tensor.data);
  const auto rows = static_cast<std::size_t>(matrix_shape(tensor.shape).rows);
  if (rows == 0) return {};
  const std::size_t pitch = bytes.size() / rows;
  return bytes.subspan(static_cast<std::size_t>(first) * pitch, static_cast<std::size_t>(count) * pitch);
}

PlainRows plain_rows(const Checkpoint& checkpoint, const CheckpointTensor& tensor, std::int64_t first,
                     std::int64_t count) {
  return {tensor.data->dtype, row_bytes(checkpoint, tensor, first, count).data(), count,
          matrix_shape(tensor.shape).cols};
}

BlockRows block_rows(const Checkpoint& checkpoint, const CheckpointTensor& tensor, TensorScalePair pair,
                     std::int64_t first, std::int64_t count) {
  const std::int64_t cols = matrix_shape(tensor.shape).cols;
  const auto pitch = static_cast<std::int64_t>(traits_of(*tensor.format).scale_cols(static_cast<std::uint64_t>(cols)));
  return {*tensor.format,
          row_bytes(checkpoint, tensor, first, count).data(),
          checkpoint.bytes(*tensor.scale).data() + first * pitch,
          pair,
          count,
          cols};
}

}  // namespace microscale::tools
