#include <Microscale_RunBackend.hpp>
#include <Microscale_SampleData.hpp>

#include <cstring>
#include <new>
#include <random>

namespace microscale::tools {
namespace {

std::mt19937& random_bits() {
  static std::mt19937 generator(1);
  return generator;
}

/// Rows of an operand, `bytes` a row.
std::vector<std::uint8_t> random_codes(const Operand& o, std::int64_t row_bytes) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(o.batch * o.rows * row_bytes));
  for (auto& byte : result) byte = static_cast<std::uint8_t>(random_bits()());
  const int bits = bits_per_code(o.format);
  // One code a byte leaves the upper bits zero; codes of 8 bits stay below the exponents of NaN and Inf; bits past the
  // last element are zero.
  const int code_bits = 1 + o.format.element.exponent_bits + o.format.element.mantissa_bits;
  const int mask = code_bits == 8 ? 0xbf : bits == 8 ? (1 << code_bits) - 1 : 0xff;
  for (auto& byte : result) byte = static_cast<std::uint8_t>(byte & mask);
  const std::int64_t tail = o.cols * bits % 8;
  if (tail != 0)
    for (std::size_t end = static_cast<std::size_t>(row_bytes); end <= result.size();
         end += static_cast<std::size_t>(row_bytes))
      result[end - 1] &= static_cast<std::uint8_t>((1 << tail) - 1);
  return result;
}

/// Values from 0.5 to 1 of either sign, of a plain type of 16 or 32 bits.
std::vector<std::uint8_t> random_values(const Operand& o) {
  const int mantissa_bits = o.format.element.mantissa_bits, exponent_bits = o.format.element.exponent_bits;
  const int bits = 1 + exponent_bits + mantissa_bits, bytes = bits / 8;
  const std::uint32_t mantissa = (std::uint32_t{1} << mantissa_bits) - 1, sign = std::uint32_t{1} << (bits - 1);
  const std::uint32_t half = ((std::uint32_t{1} << (exponent_bits - 1)) - 2) << mantissa_bits;  // 0.5
  std::vector<std::uint8_t> result(static_cast<std::size_t>(o.batch * o.rows * o.cols * bytes));
  for (std::size_t at = 0; at < result.size(); at += static_cast<std::size_t>(bytes)) {
    const std::uint32_t value = half | (static_cast<std::uint32_t>(random_bits()()) & (mantissa | sign));
    for (int i = 0; i < bytes; ++i)
      result[at + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  return result;
}

template <class T>
std::vector<std::uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

void* SampleData::keep(const std::vector<std::uint8_t>& bytes) {
  Bytes memory(Kokkos::view_alloc("microscale::tune", Kokkos::WithoutInitializing), bytes.size());
  Kokkos::deep_copy(memory, Kokkos::View<const std::uint8_t*, Kokkos::HostSpace>(bytes.data(), bytes.size()));
  m_memory.push_back(memory);
  return memory.data();
}

void SampleData::fill(Operand& o) {
  if (o.format.block_size == 0) {
    o.data = keep(random_values(o));
    return;
  }
  o.data = keep(random_codes(o, packed_bytes(o.format, o.cols)));
  std::vector<std::uint8_t> scales(static_cast<std::size_t>(o.batch * o.scale_tile_rows * o.scale_pitch));
  const std::uint8_t one = o.format.scale == ScaleType::ue4m3 ? 0x38 : 0x7f;
  for (auto& scale : scales) scale = static_cast<std::uint8_t>(one - 4 + static_cast<int>(random_bits()() % 8));
  o.scales = static_cast<std::uint8_t*>(keep(scales));
  if (o.tensor_scale != nullptr)
    o.tensor_scale =
        static_cast<TensorScalePair*>(keep(bytes_of(std::vector<TensorScalePair>(static_cast<std::size_t>(o.batch)))));
}

SampleData::SampleData(const Shape& shape) : m_problem(shaped_problem(shape)) {
  const Problem here = Impl::problem_on(Exec(), shape.operation);
  m_problem.execution = here.execution;
  m_problem.device = here.device;
  m_problem.concurrency = here.concurrency;

  // Beyond any machine, and products of these extents are beyond 64 bits soon after.
  constexpr double most_elements = 0x1p46;
  for (const Operand* o : {&m_problem.a, &m_problem.b, &m_problem.c})
    if (static_cast<double>(o->batch) * static_cast<double>(o->rows) * static_cast<double>(o->cols) > most_elements)
      throw std::bad_alloc();
  for (Operand* o : {&m_problem.a, &m_problem.b, &m_problem.c}) fill(*o);

  if (shape.operation == Operation::grouped_matmul) {
    GroupData& groups = m_problem.groups;
    std::vector<std::int32_t> offsets{0}, ids, scale_offsets;
    const ScaleLayout layout = m_problem.a.grouped_scales ? m_problem.a.scale_layout : m_problem.c.scale_layout;
    std::int64_t tile = 0;
    for (std::int64_t g = 0; g < shape.groups; ++g) {
      const std::int64_t begin = offsets.back(), end = shape.m * (g + 1) / shape.groups;
      offsets.push_back(static_cast<std::int32_t>(end));
      ids.push_back(static_cast<std::int32_t>(g));
      scale_offsets.push_back(static_cast<std::int32_t>(grouped_scale_offset(layout, begin, tile)));
      tile += ScaleMap{layout, end - begin, 1}.tile_rows();
    }
    groups.row_offsets = static_cast<const std::int32_t*>(keep(bytes_of(offsets)));
    groups.expert_ids = static_cast<const std::int32_t*>(keep(bytes_of(ids)));
    if (groups.a_scale_offsets != nullptr)
      groups.a_scale_offsets = static_cast<const std::int32_t*>(keep(bytes_of(scale_offsets)));
  }
}

void* SampleData::workspace(std::int64_t bytes) {
  if (bytes > static_cast<std::int64_t>(m_workspace.extent(0)))
    m_workspace =
        Bytes(Kokkos::view_alloc("microscale::tune", Kokkos::WithoutInitializing), static_cast<std::size_t>(bytes));
  return bytes > 0 ? m_workspace.data() : nullptr;
}

}  // namespace microscale::tools
