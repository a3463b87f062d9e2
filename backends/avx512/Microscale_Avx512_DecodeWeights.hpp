#ifndef MICROSCALE_AVX512_DECODEWEIGHTS_HPP
#define MICROSCALE_AVX512_DECODEWEIGHTS_HPP

#include <Microscale_Avx512_DecodeRows.hpp>
#include <Microscale_Avx512_Layout.hpp>
#include <Microscale_Avx512_Panels.hpp>
#include <stdint.h>

// Groups of 16 rows of B as the kernels read them: dword vectors of codes and 16 scale bytes a block. A prepared B lies
// in memory like that; the rows of any other are interleaved in small chunks, which stay in the first cache.
namespace microscale::MICROSCALE_AVX512_NAMESPACE::Decode {

class Weights {
 public:
  /// b: one matrix.
  explicit Weights(const Operand& b) : m_b(b), m_bits(bits_per_code(b.format)), m_form(b.format, b.rows, b.cols) {}

  bool prepared() const { return m_b.prepared != nullptr; }

  /// Elements of k that can be had at a time.
  int64_t chunk() const { return prepared() ? max_blocks * m_b.format.block_size : 1024; }

  /// Elements [k, k + length) of the 16 rows from `row` on, in the job; k begins a chunk. With `careful` scales are given
  /// as factors and exponents, as they are wherever one is not ordinary.
  void load(int64_t row, int64_t k, int64_t length, bool careful, Job& job) {
    const int64_t block = k / m_b.format.block_size;
    const int blocks = static_cast<int>((length + m_b.format.block_size - 1) / m_b.format.block_size);
    const uint8_t* scales = m_scales;
    if (prepared()) {
      const auto* codes = static_cast<const uint8_t*>(m_b.prepared);
      job.codes = codes + m_form.codes_at(row / group_rows) + k / 8 * m_bits * group_rows;
      scales = codes + m_form.scales_at(row / group_rows) + block * group_rows;
      for (int i = 0; i < blocks * group_rows; i += 64)
        _mm_prefetch(reinterpret_cast<const char*>(scales) + i + max_blocks * group_rows, _MM_HINT_T0);
    } else {
      const auto bytes = [&](int64_t elements) { return static_cast<int>(packed_bytes(m_b.format, elements)); };
      const uint8_t* codes = static_cast<const uint8_t*>(m_b.data) + row * m_b.row_stride + packed_bytes(m_b.format, k);
      const int rows = static_cast<int>(m_b.rows - row < group_rows ? m_b.rows - row : group_rows);
      interleave_codes(codes, m_b.row_stride, rows, bytes(length), bytes((length + 31) / 32 * 32), bytes(chunk()),
                       m_codes);
      interleave_scales(m_b, row, rows, block, blocks, m_scales);
      job.codes = m_codes;
    }
    const bool e8m0 = m_b.format.scale == ScaleType::e8m0;
    const bool ordinary = e8m0 ? expand_e8m0(scales, blocks) : expand_ue4m3(scales, blocks);
    job.b_scales = m_values;
    job.careful = careful || !ordinary;
    if (!job.careful) return;
    for (int i = 0; i < blocks * group_rows; i += group_rows) {
      const __m512 one = _mm512_set1_ps(1.0f), exponents = e8m0_exponents(scale_bytes(scales + i));
      _mm512_store_ps(m_factors + i, e8m0 ? one : _mm512_load_ps(m_values + i));
      _mm512_store_ps(m_exponents + i, e8m0 ? exponents : _mm512_setzero_ps());
    }
    job.b_factors = m_factors;
    job.b_exponents = m_exponents;
  }

 private:
  /// Sets m_values, if all are ordinary; whether they are.
  bool expand_e8m0(const uint8_t* bytes, int blocks) {
    const __m512i first = _mm512_set1_epi8(first_ordinary), count = _mm512_set1_epi8(ordinary_bytes);
    __mmask64 others = 0;
    for (int64_t i = 0, left = int64_t{blocks} * group_rows; left > 0; i += 64, left -= 64) {
      const __m512i x = _mm512_sub_epi8(load_bytes(bytes + i, left), first);
      others |= _mm512_mask_cmpge_epu8_mask(first_bits(left), x, count);
    }
    if (others != 0) return false;
    for (int i = 0; i < blocks * group_rows; i += group_rows)
      _mm512_store_ps(m_values + i, _mm512_castsi512_ps(_mm512_slli_epi32(scale_bytes(bytes + i), 23)));
    return true;
  }

  /// Sets m_values: the positive half of E4M3's table, bit 7 being ignored.
  bool expand_ue4m3(const uint8_t* bytes, int blocks) {
    const ElementTable& t = element_table<E4M3>;
    const __m512i low0 = _mm512_loadu_si512(t.low), low1 = _mm512_loadu_si512(t.low + 64);
    const __m512i high0 = _mm512_loadu_si512(t.high), high1 = _mm512_loadu_si512(t.high + 64);
    // The upper half of lane i: byte i of the first source, byte i of the second.
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i first =
        _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(0x01010000)), _mm512_set1_epi32(0x40000000));
    for (int i = 0; i < blocks * group_rows; i += 64) {
      const __m512i x = load_bytes(bytes + i, blocks * group_rows - i);
      const __m512i low = _mm512_permutex2var_epi8(low0, x, low1), high = _mm512_permutex2var_epi8(high0, x, high1);
      for (int j = 0; j < 64; j += group_rows) {
        const __m512i where = _mm512_add_epi32(first, _mm512_set1_epi32(j * 0x01010000));
        _mm512_store_ps(m_values + i + j,
                        _mm512_castsi512_ps(_mm512_maskz_permutex2var_epi8(0xccccccccccccccccu, low, where, high)));
      }
    }
    return true;
  }

  static constexpr int max_blocks = 64;  ///< of a row in a chunk

  const Operand& m_b;
  const int m_bits;
  const avx512_layout::InterleavedForm m_form;
  alignas(64) uint8_t m_codes[1024 * group_rows];
  alignas(64) uint8_t m_scales[max_blocks * group_rows];
  alignas(64) float m_values[max_blocks * group_rows];
  alignas(64) float m_factors[max_blocks * group_rows];
  alignas(64) float m_exponents[max_blocks * group_rows];
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE::Decode

#endif
