#include <Microscale_Selection.hpp>
#include <Microscale_Values.hpp>

namespace microscale::tools {

TensorValues::TensorValues(const Checkpoint& checkpoint, const CheckpointTensor& tensor)
    : m_checkpoint(checkpoint), m_tensor(tensor), m_pair(tensor_scale_pair(checkpoint, tensor)) {}

bool TensorValues::exist() const { return m_tensor.is_quantized() || is_quantizable(m_tensor.data->dtype); }

void TensorValues::dequantize(std::int64_t first, std::int64_t count, Dtype dtype, std::byte* result) const {
  if (m_tensor.format)
    dequantize_rows(block_rows(m_checkpoint, m_tensor, m_pair, first, count), dtype, result);
  else
    dequantize_fp8(m_tensor.data->dtype, row_bytes(m_checkpoint, m_tensor, first, count).data(), count * shape().cols,
                   m_pair.decode, dtype, result);
}

void TensorValues::read(std::int64_t first, std::int64_t count, std::vector<double>& result) const {
  result.resize(static_cast<std::size_t>(count * shape().cols));
  if (!m_tensor.is_quantized()) {
    values_of(plain_rows(m_checkpoint, m_tensor, first, count), result.data());
    return;
  }
  std::vector<float> values(result.size());
  auto* const bytes = reinterpret_cast<std::byte*>(values.data());
  dequantize(first, count, Dtype::F32, bytes);
  values_of(PlainRows{Dtype::F32, bytes, count, shape().cols}, result.data());
}

std::vector<double> TensorValues::limits(std::int64_t first, std::int64_t count) const {
  if (!m_tensor.format) return {};
  return block_limits(block_rows(m_checkpoint, m_tensor, m_pair, first, count));
}

std::int64_t TensorValues::block_size() const {
  return m_tensor.format ? traits_of(*m_tensor.format).id.block_size : 1;
}

void TensorValues::release(std::int64_t first, std::int64_t count) const {
  release_pages(row_bytes(m_checkpoint, m_tensor, first, count));
}

}  // namespace microscale::tools
