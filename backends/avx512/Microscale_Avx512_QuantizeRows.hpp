#ifndef MICROSCALE_AVX512_QUANTIZEROWS_HPP
#define MICROSCALE_AVX512_QUANTIZEROWS_HPP

#include <Microscale_Avx512_Encode.hpp>
#include <Microscale_Avx512_PlainMatrix.hpp>
#include <Microscale_Avx512_ScaleRows.hpp>
#include <stdint.h>
#include <string.h>

// What quantize and grouped_quantize share: a range of rows and blocks of a plain matrix into a quantized one.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// Quantizes rows [row_begin, row_end) and blocks [block_begin, block_end) of a source; block_begin is a multiple of 16.
/// The scales go to row scale_row (of row_begin) and on. The last block of a row brings the padding after it.
template <class Type, class Encoder>
class RowQuantizer {
 public:
  RowQuantizer(const Operand& source, const Operand& destination)
      : m_source(source),
        m_data(static_cast<uint8_t*>(destination.data)),
        m_pitch(destination.row_stride),
        m_cols(destination.cols),
        m_blocks((destination.cols + Encoder::size - 1) / Encoder::size),
        m_scales(destination) {}

  int64_t blocks() const { return m_blocks; }
  const ScaleRows& scales() const { return m_scales; }

  void operator()(const Encoder& encoder, const BlockTasks::Part& part, int64_t scale_row) const {
    const int64_t rows = part.row_end - part.row_begin, blocks = part.block_end - part.block_begin;
    if (m_source.columns_contiguous()) {
      // 16 rows are neighbours in memory.
      for (int64_t b = 0; b < blocks; ++b)
        for (int64_t r = 0; r < rows; r += Encoder::blocks)
          encode(encoder, part.row_begin + r, static_cast<int>(smaller(rows - r, Encoder::blocks)),
                 part.block_begin + b, 1, scale_row + r);
      return;
    }
    const int64_t whole = blocks / Encoder::blocks * Encoder::blocks, left = blocks - whole;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t b = 0; b < whole; b += Encoder::blocks)
        encode(encoder, part.row_begin + r, 1, part.block_begin + b, Encoder::blocks, scale_row + r);
    if (left == 0) return;
    // The ends of several rows together.
    const int64_t together = Encoder::blocks / left;
    for (int64_t r = 0; r < rows; r += together)
      encode(encoder, part.row_begin + r, static_cast<int>(smaller(rows - r, together)), part.block_begin + whole, left,
             scale_row + r);
  }

  /// Zeroes the codes of a row among these blocks.
  void clear_codes(const BlockTasks::Part& part, int64_t row) const {
    const int64_t begin = part.block_begin * Encoder::size, end = smaller(part.block_end * Encoder::size, m_cols);
    memset(codes_of(row, part.block_begin), 0, static_cast<size_t>(packed_bytes(Encoder::id, end - begin)));
  }
  /// Zeroes the scales from block `first` on, and the padding if these blocks are the last ones of a row.
  void clear_scales(const BlockTasks::Part& part, int64_t scale_row, int64_t first) const {
    m_scales.clear(scale_row, first, part.block_end == m_blocks ? m_scales.padded(m_blocks) : part.block_end);
  }

 private:
  uint8_t* codes_of(int64_t row, int64_t block) const { return m_data + row * m_pitch + block * Encoder::block_bytes; }

  /// Blocks [block, block + count) of `rows` rows, at most 16 in all.
  void encode(const Encoder& encoder, int64_t row, int rows, int64_t block, int64_t count, int64_t scale_row) const {
    const int64_t begin = block * Encoder::size, pitch = count * Encoder::size;
    const int64_t cols = smaller(m_cols - begin, pitch);
    alignas(64) uint8_t scales[Encoder::blocks];
    if (count == Encoder::blocks && cols == pitch) {
      alignas(64) float converted[Encoder::values];
      const float* values = converted;
      if (m_source.col_stride == 1) m_source.template prefetch<Type>(row, begin + 2 * pitch, pitch);
      if constexpr (Type::is_float) {
        if (m_source.col_stride == 1) values = m_source.template at<Type>(row, begin);
      }
      if (values == converted) m_source.template load<Type>(row, 1, begin, cols, converted, pitch);
      encoder(values, codes_of(row, block), scales);
      m_scales.write(scale_row, block, scales, Encoder::blocks);
      if (block + count == m_blocks) m_scales.clear(scale_row, m_blocks, m_scales.padded(m_blocks));
      return;
    }
    alignas(64) float values[Encoder::values];
    alignas(64) uint8_t codes[Encoder::bytes];
    m_source.template load<Type>(row, rows, begin, cols, values, pitch);
    for (int64_t i = rows * pitch; i < Encoder::values; i += 16) _mm512_storeu_ps(values + i, _mm512_setzero_ps());
    encoder(values, codes, scales);
    for (int r = 0; r < rows; ++r) {
      memcpy(codes_of(row + r, block), codes + r * count * Encoder::block_bytes,
             static_cast<size_t>(packed_bytes(Encoder::id, cols)));
      m_scales.write(scale_row + r, block, scales + r * count, count);
      if (block + count == m_blocks) m_scales.clear(scale_row + r, m_blocks, m_scales.padded(m_blocks));
    }
  }

  PlainMatrix m_source;
  uint8_t* m_data;
  int64_t m_pitch, m_cols, m_blocks;
  ScaleRows m_scales;
};

/// Calls f with a Tag of the BlockEncoder of a format (with_format) and a policy.
template <class F>
void with_encoder(FormatId id, NonFinite non_finite, F f) {
  with_format(id, [&](auto format) {
    using Format = typename decltype(format)::type;
    if (non_finite == NonFinite::strict)
      f(Tag<BlockEncoder<Format, false>>{});
    else
      f(Tag<BlockEncoder<Format, true>>{});
  });
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
