#ifndef MICROSCALE_AVX512_DECODEWEIGHTS_HPP
#define MICROSCALE_AVX512_DECODEWEIGHTS_HPP

#include <Microscale_Avx512_DecodeRows.hpp>
#include <stdint.h>

// Groups of 16 rows of B as the kernels read them: dword vectors of codes and 16 scale bytes a block. A prepared B lies
// in memory like that; the rows of any other are interleaved in small chunks, which stay in the first cache.
namespace microscale::MICROSCALE_AVX512_NAMESPACE::Decode {

class Weights {
 public:
  /// b: one matrix.
  explicit Weights(const Operand& b)
      : m_b(b),
        m_bits(bits_per_code(b.format)),
        m_blocks((b.cols + b.format.block_size - 1) / b.format.block_size),
        m_group_bytes((b.cols + 31) / 32 * 32 * m_bits / 8 * group_rows) {}

  bool prepared() const { return m_b.prepared != nullptr; }

  /// Elements of k that can be had at a time.
  int64_t chunk(int64_t length) const { return prepared() ? length : m_bits == 4 ? 2048 : 1024; }

  /// Elements [k, k + length) of the 16 rows from `row` on, in the job; k begins a chunk.
  void load(int64_t row, int64_t k, int64_t length, Job& job) {
    if (prepared()) {
      const auto* codes = static_cast<const uint8_t*>(m_b.prepared);
      const int64_t groups = (m_b.rows + group_rows - 1) / group_rows, g = row / group_rows;
      job.codes = codes + g * m_group_bytes + k / 8 * m_bits * group_rows;
      job.scales = codes + groups * m_group_bytes + (g * m_blocks + k / m_b.format.block_size) * group_rows;
      return;
    }
    interleave_codes(row, k, length);
    interleave_scales(row, k / m_b.format.block_size, (length + m_b.format.block_size - 1) / m_b.format.block_size);
    job.codes = m_codes;
    job.scales = m_scales;
  }

 private:
  void interleave_codes(int64_t row, int64_t k, int64_t length) {
    const int64_t bytes = packed_bytes(m_b.format, length), next = packed_bytes(m_b.format, chunk(0));
    const uint8_t* codes = static_cast<const uint8_t*>(m_b.data) + row * m_b.row_stride + packed_bytes(m_b.format, k);
    for (int64_t i = 0; i < (length + 31) / 32 * 4 * m_bits; i += 64) {
      __m512i x[group_rows];
      for (int r = 0; r < group_rows; ++r) {
        const bool exists = row + r < m_b.rows;
        x[r] = exists ? load_bytes(codes + r * m_b.row_stride + i, bytes - i) : _mm512_setzero_si512();
        if (exists) _mm_prefetch(reinterpret_cast<const char*>(codes) + r * m_b.row_stride + i + next, _MM_HINT_T0);
      }
      transpose(x);
      for (int r = 0; r < group_rows; ++r) _mm512_storeu_si512(m_codes + (i + 4 * r) * group_rows, x[r]);
    }
  }

  void interleave_scales(int64_t row, int64_t block, int64_t count) {
    // Bytes 0, 4, .. 60, then 1, 5, ..
    const __m512i order =
        _mm512_add_epi8(_mm512_set_epi32(0x3c383430, 0x2c282420, 0x1c181410, 0x0c080400, 0x3c383430, 0x2c282420,
                                         0x1c181410, 0x0c080400, 0x3c383430, 0x2c282420, 0x1c181410, 0x0c080400,
                                         0x3c383430, 0x2c282420, 0x1c181410, 0x0c080400),
                        _mm512_set_epi64(0x0303030303030303, 0x0303030303030303, 0x0202020202020202, 0x0202020202020202,
                                         0x0101010101010101, 0x0101010101010101, 0, 0));
    const __m512i one = _mm512_set1_epi8(m_b.format.scale == ScaleType::e8m0 ? 127 : 0x38);
    for (int64_t i = 0; i < count; i += 64) {
      __m512i x[group_rows];
      for (int r = 0; r < group_rows; ++r) {
        if (row + r >= m_b.rows) {
          x[r] = one;
          continue;
        }
        const int64_t left = count - i < 64 ? count - i : 64;
        if (m_b.scale_layout == ScaleLayout::linear) {
          x[r] = load_bytes(m_b.scales + (row + r) * m_b.scale_pitch + block + i, left);
        } else {
          alignas(64) uint8_t bytes[64] = {};
          copy_scales(m_b, row + r, block + i, left, bytes);
          x[r] = _mm512_load_si512(bytes);
        }
      }
      transpose(x);
      for (int d = 0; d < group_rows; ++d)
        _mm512_storeu_si512(m_scales + (i + 4 * d) * group_rows, _mm512_permutexvar_epi8(order, x[d]));
    }
  }

  const Operand& m_b;
  const int m_bits;
  const int64_t m_blocks;       ///< of a row
  const int64_t m_group_bytes;  ///< of the codes of a group that is prepared
  alignas(64) uint8_t m_codes[1024 * group_rows];
  alignas(64) uint8_t m_scales[128 * group_rows];
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE::Decode

#endif
