#ifndef MICROSCALE_AVX512_SCALEROWS_HPP
#define MICROSCALE_AVX512_SCALEROWS_HPP

#include <Microscale_Avx512_Kernels.hpp>
#include <stdint.h>
#include <string.h>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// The scale bytes of a matrix, a row of the buffer at a time. Four neighbours whose first column is a multiple of four
/// lie together in all layouts but cdna4.
class ScaleRows {
 public:
  explicit ScaleRows(const Operand& operand)
      : m_bytes(operand.scales), m_pitch(operand.scale_pitch), m_layout(operand.scale_layout) {}

  bool tiled() const { return m_layout != ScaleLayout::linear; }
  int tile_rows() const { return scale_tile(m_layout).rows; }
  /// `cols` up to whole tiles.
  int64_t padded(int64_t cols) const { return ScaleMap{m_layout, 0, cols}.padded_cols(); }

  uint8_t& at(int64_t row, int64_t col) const {
    return m_bytes[tile_row(m_layout, row) * m_pitch + ScaleMap{m_layout, 0, 0}.offset_in_tile_row(row, col)];
  }
  /// `count` bytes from column `first` on.
  void write(int64_t row, int64_t first, const uint8_t* bytes, int64_t count) const {
    if (m_layout == ScaleLayout::linear) {
      memcpy(m_bytes + row * m_pitch + first, bytes, static_cast<size_t>(count));
      return;
    }
    int64_t i = 0;
    if (first % 4 == 0 && m_layout != ScaleLayout::cdna4) {
      const int64_t next = 4 * tile_rows();
      uint8_t* to = &at(row, first);
      for (; i + 4 <= count; i += 4, to += next) memcpy(to, bytes + i, 4);
    }
    for (; i < count; ++i) at(row, first + i) = bytes[i];
  }
  void read(int64_t row, int64_t first, uint8_t* bytes, int64_t count) const {
    if (m_layout == ScaleLayout::linear) {
      memcpy(bytes, m_bytes + row * m_pitch + first, static_cast<size_t>(count));
      return;
    }
    int64_t i = 0;
    if (first % 4 == 0 && m_layout != ScaleLayout::cdna4) {
      const int64_t next = 4 * tile_rows();
      const uint8_t* from = &at(row, first);
      for (; i + 4 <= count; i += 4, from += next) memcpy(bytes + i, from, 4);
    }
    for (; i < count; ++i) bytes[i] = at(row, first + i);
  }
  /// Zeroes columns [first, end).
  void clear(int64_t row, int64_t first, int64_t end) const {
    constexpr uint8_t zeros[64] = {};
    for (; first < end; first += 64) write(row, first, zeros, first + 64 < end ? 64 : end - first);
  }

 private:
  uint8_t* m_bytes;
  int64_t m_pitch;
  ScaleLayout m_layout;
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
