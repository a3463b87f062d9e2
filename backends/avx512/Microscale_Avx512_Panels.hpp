#ifndef MICROSCALE_AVX512_PANELS_HPP
#define MICROSCALE_AVX512_PANELS_HPP

#include <Microscale_Avx512_Expand.hpp>
#include <Microscale_Avx512_Layout.hpp>
#include <Microscale_Avx512_ScaleRows.hpp>
#include <stdint.h>

// Panels of any operand: plain rows of any strides, block-scaled rows in any scale layout, and the prepared form.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

inline constexpr int max_stretch = 512;  ///< columns of K that are made at a time

/// Dwords of `bytes` bytes of codes of `rows` rows, then zeros: a transposed copy. `made` bytes a row, rounded up to 64, are
/// written. Those that are `ahead` bytes further on in each row, if that is not 0, are asked for.
inline void interleave_codes(const uint8_t* codes, int64_t pitch, int rows, int bytes, int made, int ahead,
                             uint8_t* unit) {
  for (int i = 0; i < made; i += 64, unit += 64 * group_rows) {
    const int left = bytes - i;
    const uint64_t exist = left <= 0 ? 0 : left < 64 ? ~(~uint64_t{0} << left) : ~uint64_t{0};
    __m512i x[group_rows];
    for (int r = 0; r < group_rows; ++r) {
      x[r] = r < rows ? _mm512_maskz_loadu_epi8(exist, codes + r * pitch + i) : _mm512_setzero_si512();
      if (ahead != 0 && r < rows)
        _mm_prefetch(reinterpret_cast<const char*>(codes) + r * pitch + i + ahead, _MM_HINT_T0);
    }
    transpose(x);
    for (int d = 0; d < group_rows; ++d) _mm512_store_si512(unit + 64 * d, x[d]);
  }
}

/// Scale bytes of `rows` rows from row `row` of the scale buffer on, 16 a block; those of rows that do not exist are 1.
/// `to` has room for `blocks` rounded up to 4.
inline void interleave_scales(const Operand& m, int64_t row, int rows, int64_t block, int blocks, uint8_t* to) {
  const ScaleRows scales(m);
  const __m512i one = _mm512_set1_epi8(m.format.scale == ScaleType::e8m0 ? 127 : 0x38);
  // Byte j of all lanes, for j = 0, 1, 2, 3.
  const __m512i order = _mm512_add_epi32(
      _mm512_set_epi32(0x3c383430, 0x2c282420, 0x1c181410, 0x0c080400, 0x3c383430, 0x2c282420, 0x1c181410, 0x0c080400,
                       0x3c383430, 0x2c282420, 0x1c181410, 0x0c080400, 0x3c383430, 0x2c282420, 0x1c181410, 0x0c080400),
      _mm512_set_epi32(0x03030303, 0x03030303, 0x03030303, 0x03030303, 0x02020202, 0x02020202, 0x02020202, 0x02020202,
                       0x01010101, 0x01010101, 0x01010101, 0x01010101, 0, 0, 0, 0));
  for (int b = 0; b < blocks; b += 64) {
    const int count = blocks - b < 64 ? blocks - b : 64;
    __m512i x[group_rows];
    for (int r = 0; r < group_rows; ++r) {
      if (r >= rows) {
        x[r] = one;
      } else if (m.scale_layout == ScaleLayout::linear) {
        x[r] = _mm512_maskz_loadu_epi8(~uint64_t{0} >> (64 - count), m.scales + (row + r) * m.scale_pitch + block + b);
      } else {
        alignas(64) uint8_t bytes[64] = {};
        scales.read(row + r, block + b, bytes, count);
        x[r] = _mm512_load_si512(bytes);
      }
    }
    transpose(x);
    for (int d = 0; 4 * d < count; ++d)
      _mm512_store_si512(to + (b + 4 * d) * group_rows, _mm512_permutexvar_epi8(order, x[d]));
  }
}

/// Groups of rows of one matrix, of which panels are made stretch by stretch of K. A stretch begins with a whole block
/// and at a multiple of 32, and has at most max_stretch columns. Panels have room for whole multiples of 32 columns.
class PanelSource {
 public:
  /// m: the first matrix of a batch. scale_shift: what is added to a row to get its row in the scale buffer.
  explicit PanelSource(const Operand& m, int64_t scale_shift = 0)
      : m_operand(m), m_scale_shift(scale_shift), m_table(find_element_table(m.format.element)) {}

  int block() const { return m_operand.format.block_size; }  ///< 0: plain
  bool fp4() const { return block() != 0 && bits_per_code(m_operand.format) == 4; }
  ScaleType scale_type() const { return m_operand.format.scale; }
  /// Whether bf16_pairs can be called.
  bool fits_bf16() const { return block() != 0 || m_operand.format == bfloat16_id; }

  /// bf16 pairs of columns [k, k + count) of the group that begins at `row`, of which `rows` rows are wanted. Not for float
  /// and half.
  ExponentRange bf16_pairs(int64_t row, int rows, int64_t k, int count, uint32_t* panel) const {
    if (block() == 0) return pack_bf16(plain_group<bf16>(row, rows, k), count, panel);
    return with_codes(row, rows, k, count, [&]<int Width>(const uint8_t* codes, const uint8_t* scales) {
      return expand_bf16<Width>(*m_table, m_operand.format.scale, m_operand.format.block_size, codes, scales, count,
                                panel);
    });
  }

  /// Floats, and beside them the block scales of a block format, whose range is returned.
  ExponentRange floats(int64_t row, int rows, int64_t k, int count, float* panel, float* panel_scales) const {
    if (m_operand.format == float32_id)
      return pack_floats(plain_group<float>(row, rows, k), count, panel), ExponentRange{};
    if (m_operand.format == float16_id)
      return pack_floats(plain_group<half>(row, rows, k), count, panel), ExponentRange{};
    if (m_operand.format == bfloat16_id)
      return pack_floats(plain_group<bf16>(row, rows, k), count, panel), ExponentRange{};
    return with_codes(row, rows, k, count, [&]<int Width>(const uint8_t* codes, const uint8_t* scales) {
      return expand_floats<Width>(*m_table, m_operand.format.scale, m_operand.format.block_size, codes, scales, count,
                                  panel, panel_scales);
    });
  }

  /// Calls expand(codes, scales) with the dwords of the group's FP4 codes and its scale bytes, 16 a block.
  template <class Expand>
  ExponentRange fp4_codes(int64_t row, int rows, int64_t k, int count, const Expand& expand) const {
    return with_codes(row, rows, k, count, [&]<int Width>(const uint8_t* codes, const uint8_t* scales) {
      if constexpr (Width == 4)
        return expand(codes, scales);
      else
        return ExponentRange{};
    });
  }

 private:
  template <class T>
  PlainGroup<T> plain_group(int64_t row, int rows, int64_t k) const {
    const T* data = static_cast<const T*>(m_operand.data) + row * m_operand.row_stride + k * m_operand.col_stride;
    return {data, m_operand.row_stride, m_operand.col_stride, rows};
  }

  template <class Expand>
  ExponentRange with_codes(int64_t row, int rows, int64_t k, int count, const Expand& expand) const {
    const int bits = bits_per_code(m_operand.format), block = m_operand.format.block_size;
    const int blocks = (count + block - 1) / block;
    if (m_operand.prepared != nullptr) {
      const avx512_layout::InterleavedForm form(m_operand.format, m_operand.rows, m_operand.cols);
      const auto* all = static_cast<const uint8_t*>(m_operand.prepared);
      const int64_t group = row / group_rows;
      return with_width(bits, all + form.codes_at(group) + k / 8 * bits * group_rows,
                        all + form.scales_at(group) + k / block * group_rows, expand);
    }
    alignas(64) uint8_t codes[max_stretch * group_rows], scales[max_stretch / 8 * group_rows];
    const uint8_t* data = static_cast<const uint8_t*>(m_operand.data) + row * m_operand.row_stride;
    const int bytes = static_cast<int>(packed_bytes(m_operand.format, count));
    interleave_codes(data + packed_bytes(m_operand.format, k), m_operand.row_stride, rows, bytes, bytes, 0, codes);
    interleave_scales(m_operand, row + m_scale_shift, rows, k / block, blocks, scales);
    return with_width(bits, codes, scales, expand);
  }

  template <class Expand>
  static ExponentRange with_width(int bits, const uint8_t* codes, const uint8_t* scales, const Expand& expand) {
    switch (bits) {
      case 4:
        return expand.template operator()<4>(codes, scales);
      case 6:
        return expand.template operator()<6>(codes, scales);
      default:
        return expand.template operator()<8>(codes, scales);
    }
  }

  Operand m_operand;
  int64_t m_scale_shift;
  const ElementTable* m_table;
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
