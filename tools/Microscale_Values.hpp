#ifndef MICROSCALE_TOOLS_VALUES_HPP
#define MICROSCALE_TOOLS_VALUES_HPP

#include <Microscale_Rows.hpp>

namespace microscale::tools {

/// The values of one tensor of a checkpoint, whatever way it is stored, some rows at a time.
class TensorValues {
 public:
  /// Throws FileError if the tensor scale is invalid. Keeps references.
  TensorValues(const Checkpoint& checkpoint, const CheckpointTensor& tensor);

  const Checkpoint& checkpoint() const { return m_checkpoint; }
  const CheckpointTensor& tensor() const { return m_tensor; }
  MatrixShape shape() const { return matrix_shape(m_tensor.shape); }
  /// Whether there are values: the tensor is quantized, or plain F64, F32, F16 or BF16.
  bool exist() const;
  /// Rows of a quantized tensor as F32, F16 or BF16 into `result`, aligned.
  void dequantize(std::int64_t first, std::int64_t count, Dtype dtype, std::byte* result) const;
  /// Rows in double: those of a plain tensor as they are, those of a quantized one as F32 would have them.
  void read(std::int64_t first, std::int64_t count, std::vector<double>& result) const;
  /// The largest magnitude that each block of the rows can hold; empty for a tensor without blocks.
  std::vector<double> limits(std::int64_t first, std::int64_t count) const;
  /// Elements in a block; 1 without blocks.
  std::int64_t block_size() const;
  /// The rows' bytes are not needed soon.
  void release(std::int64_t first, std::int64_t count) const;

 private:
  const Checkpoint& m_checkpoint;
  const CheckpointTensor& m_tensor;
  TensorScalePair m_pair;
};

}  // namespace microscale::tools

#endif
