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
    const int64_t whole = (smaller(part.block_end * Encoder::size, m_cols) / Encoder::size - part.block_begin) /
                          Encoder::blocks * Encoder::blocks;
    const int64_t left = blocks - whole;
    encode_whole(encoder, part.row_begin, rows, part.block_begin, whole, scale_row);
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

  /// Blocks [block, block + count), a multiple of 16 and all of them full, of `rows` rows.
  void encode_whole(const Encoder& encoder, int64_t row, int64_t rows, int64_t block, int64_t count,
                    int64_t scale_row) const {
    typename Encoder::Scaled scaled[2];
    alignas(64) float converted[2][Encoder::value_count];
    // The scales of one step before the codes of the step before.
    const int64_t steps = count / Encoder::blocks * rows;
    int64_t r = 0, b = 0, last_r = 0, last_b = 0;
    for (int64_t i = 0; i <= steps; ++i) {
      if (i < steps) encoder.find_scales(load(row + r, (block + b) * Encoder::size, converted[i % 2]), scaled[i % 2]);
      if (i > 0) {
        const typename Encoder::Scaled& last = scaled[(i - 1) % 2];
        encoder.encode(last, codes_of(row + last_r, block + last_b));
        write_scales(scale_row + last_r, block + last_b, last.scales, Encoder::blocks);
      }
      last_r = r;
      last_b = b;
      b += Encoder::blocks;
      if (b == count) {
        b = 0;
        ++r;
      }
    }
  }

  /// The values of 16 blocks of a row: where they are, or in `buffer`.
  const float* load(int64_t row, int64_t col, float* buffer) const {
    constexpr int64_t count = Encoder::value_count;
    if (m_source.col_stride == 1) {
      m_source.template prefetch<Type>(row, col + 2 * count, count);
      if constexpr (Type::is_float) return m_source.template at<Type>(row, col);
    }
    m_source.template load<Type>(row, 1, col, count, buffer, count);
    return buffer;
  }

  /// Blocks [block, block + count) of `rows` rows, at most 16 in all, some of them perhaps short.
  void encode(const Encoder& encoder, int64_t row, int rows, int64_t block, int64_t count, int64_t scale_row) const {
    const int64_t begin = block * Encoder::size, pitch = count * Encoder::size;
    const int64_t cols = smaller(m_cols - begin, pitch);
    alignas(64) float values[Encoder::value_count];
    alignas(64) uint8_t codes[Encoder::bytes];
    typename Encoder::Scaled scaled;
    m_source.template load<Type>(row, rows, begin, cols, values, pitch);
    for (int64_t i = rows * pitch; i < Encoder::value_count; i += 16) _mm512_storeu_ps(values + i, _mm512_setzero_ps());
    encoder.find_scales(values, scaled);
    encoder.encode(scaled, codes);
    for (int r = 0; r < rows; ++r) {
      memcpy(codes_of(row + r, block), codes + r * count * Encoder::block_bytes,
             static_cast<size_t>(packed_bytes(Encoder::id, cols)));
      write_scales(scale_row + r, block, scaled.scales + r * count, count);
    }
  }

  /// And zeroes the padding after the last of a row.
  void write_scales(int64_t scale_row, int64_t block, const uint8_t* scales, int64_t count) const {
    m_scales.write(scale_row, block, scales, count);
    if (block + count == m_blocks) m_scales.clear(scale_row, m_blocks, m_scales.padded(m_blocks));
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
