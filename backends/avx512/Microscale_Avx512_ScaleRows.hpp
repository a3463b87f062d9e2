#ifndef MICROSCALE_AVX512_SCALEROWS_HPP
#define MICROSCALE_AVX512_SCALEROWS_HPP

#include <Microscale_Avx512_Kernels.hpp>
#include <stdint.h>
#include <string.h>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// The scale bytes of a matrix, a row of the buffer at a time.
class ScaleRows {
 public:
  explicit ScaleRows(const Operand& operand)
      : m_bytes(operand.scales), m_pitch(operand.scale_pitch), m_layout(operand.scale_layout) {}

  bool tiled() const { return m_layout != ScaleLayout::linear; }
  int tile_rows() const { return scale_tile(m_layout).rows; }
  /// `cols` up to whole tiles.
  int64_t padded(int64_t cols) const { return ScaleMap{m_layout, 0, cols}.padded_cols(); }

  /// `count` bytes from column `first` on.
  void write(int64_t row, int64_t first, const uint8_t* bytes, int64_t count) const {
    for_runs(row, first, count, [&](uint8_t* to, int64_t i, auto n) { memcpy(to, bytes + i, static_cast<size_t>(n)); });
  }
  void read(int64_t row, int64_t first, uint8_t* bytes, int64_t count) const {
    for_runs(row, first, count,
             [&](const uint8_t* from, int64_t i, auto n) { memcpy(bytes + i, from, static_cast<size_t>(n)); });
  }
  /// Zeroes columns [first, end).
  void clear(int64_t row, int64_t first, int64_t end) const {
    constexpr uint8_t zeros[64] = {};
    for (; first < end; first += 64) write(row, first, zeros, first + 64 < end ? 64 : end - first);
  }

 private:
  // Lengths of runs that are known beforehand, so that a copy is one instruction.
  template <int N>
  struct Constant {
    constexpr operator int() const { return N; }
  };

  /// f(address, i, n) for runs of n bytes, together in memory, of the i-th column and on.
  template <class F>
  void for_runs(int64_t row, int64_t first, int64_t count, F f) const {
    uint8_t* bytes = m_bytes + tile_row(m_layout, row) * m_pitch;
    switch (m_layout) {
      case ScaleLayout::linear:
        f(bytes + first, 0, count);
        break;
      case ScaleLayout::tcgen:
        in_tiles<ScaleLayout::tcgen, 4>(bytes, row, first, count, f);
        break;
      case ScaleLayout::cdna4:
        in_tiles<ScaleLayout::cdna4, 1>(bytes, row, first, count, f);
        break;
      case ScaleLayout::tile_8x4:
        in_tiles<ScaleLayout::tile_8x4, 4>(bytes, row, first, count, f);
        break;
    }
  }
  template <ScaleLayout Layout, int Together, class F>
  static void in_tiles(uint8_t* bytes, int64_t row, int64_t first, int64_t count, F f) {
    constexpr ScaleTile tile = scale_tile(Layout);
    // Unsigned numbers are divided by shifts alone.
    const int r = static_cast<int>(static_cast<uint64_t>(row) % tile.rows);
    const auto address = [&](int64_t col) {
      const auto c = static_cast<uint64_t>(col);
      return bytes + c / tile.cols * (tile.rows * tile.cols) +
             offset_in_tile(Layout, r, static_cast<int>(c % tile.cols));
    };
    int64_t i = 0;
    if (first % Together == 0)
      for (; i + Together <= count; i += Together) f(address(first + i), i, Constant<Together>{});
    for (; i < count; ++i) f(address(first + i), i, Constant<1>{});
  }

  uint8_t* m_bytes;
  int64_t m_pitch;
  ScaleLayout m_layout;
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
