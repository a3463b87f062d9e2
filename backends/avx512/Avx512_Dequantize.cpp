#include <Microscale_Avx512_Encode.hpp>
#include <Microscale_Avx512_PlainMatrix.hpp>
#include <Microscale_Avx512_ScaleRows.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {
namespace {

/// Codes of 16 bits with sign and magnitude where binary16 has them: their value over 2^(15 - bias). NaN becomes 7e00,
/// with its sign.
template <class Element>
__m256i codes_as_halves(__m256i codes) {
  constexpr int to_sign = 16 - Element::bits, to_magnitude = 10 - Element::mantissa_bits;
  const __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi16(Element::sign_bit - 1));
  const __m256i sign = _mm256_and_si256(_mm256_slli_epi16(codes, to_sign), _mm256_set1_epi16(-0x8000));
  const __m256i value = _mm256_or_si256(_mm256_slli_epi16(magnitude, to_magnitude), sign);
  if constexpr (Element::specials == Specials::none) return value;
  constexpr int last_number = Element::max_code + (Element::specials == Specials::ieee ? 1 : 0);
  const __mmask16 nan = _mm256_cmpgt_epu16_mask(magnitude, _mm256_set1_epi16(last_number));
  return _mm256_mask_mov_epi16(value, nan, _mm256_or_si256(sign, _mm256_set1_epi16(0x7e00)));
}

/// The values of `count` codes, at most 16, the first of which starts a byte. Reads no byte beyond the last of them.
template <class Format>
__m512 decode_codes(const uint8_t* bytes, int64_t count) {
  using Element = typename Format::element;
  constexpr int width = code_bits<Format>;
  __m128i packed;
  if (count < 16 || width == 6)
    packed = _mm_maskz_loadu_epi8(first_lanes((count * width + 7) / 8), bytes);
  else if constexpr (width == 4)
    packed = _mm_loadu_si64(bytes);
  else
    packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  if constexpr (width == 4) {
    // The nibble that a lane wants comes down to the lowest bits of it, and the table looks at no others.
    alignas(64) static constexpr int shifts[16] = {0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60};
    static_assert(Element::id == E2M1::id);
    alignas(64) static constexpr float table[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                                    -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
    const __m512i nibbles = _mm512_multishift_epi64_epi8(_mm512_load_si512(shifts), _mm512_broadcastq_epi64(packed));
    return _mm512_permutexvar_ps(nibbles, _mm512_load_ps(table));
  } else {
    __m256i codes;
    if constexpr (width == 8) {
      codes = _mm256_cvtepu8_epi16(packed);
    } else {
      // The two bytes that a lane's code is in, then down to its first bit.
      alignas(32) static constexpr uint8_t places[32] = {0, 1, 0, 1, 1, 2, 2, 3, 3, 4,  3, 4,  4,  5,  5,  6,
                                                         6, 7, 6, 7, 7, 8, 8, 9, 9, 10, 9, 10, 10, 11, 11, 12};
      alignas(32) static constexpr uint16_t shifts[16] = {0, 6, 4, 2, 0, 6, 4, 2, 0, 6, 4, 2, 0, 6, 4, 2};
      const __m256i pairs = _mm256_permutexvar_epi8(_mm256_load_si256(reinterpret_cast<const __m256i*>(places)),
                                                    _mm256_castsi128_si256(packed));
      codes = _mm256_srlv_epi16(pairs, _mm256_load_si256(reinterpret_cast<const __m256i*>(shifts)));
    }
    const __m512 value = _mm512_cvtph_ps(codes_as_halves<Element>(codes));
    return _mm512_mul_ps(value, _mm512_set1_ps(Bits::pow2(15 - Element::bias)));
  }
}

/// The values of 16 scale bytes.
template <class Scale>
__m512 decode_scales(const uint8_t* bytes) {
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  if constexpr (Scale::type == ScaleType::ue4m3) {
    const __m256i codes = _mm256_and_si256(_mm256_cvtepu8_epi16(packed), _mm256_set1_epi16(0x7f));
    return _mm512_mul_ps(_mm512_cvtph_ps(codes_as_halves<E4M3>(codes)), _mm512_set1_ps(Bits::pow2(15 - E4M3::bias)));
  } else {
    const __m512i byte = _mm512_cvtepu8_epi32(packed);
    __m512i value = _mm512_slli_epi32(byte, 23);
    value = _mm512_mask_mov_epi32(value, _mm512_cmpeq_epi32_mask(byte, integers(0)), integers(0x00400000));
    value = _mm512_mask_mov_epi32(value, _mm512_cmpeq_epi32_mask(byte, integers(E8M0::nan_byte)), integers(0x7fc00000));
    return floats_of(value);
  }
}

template <class Format, class Type>
class RowDequantizer {
 public:
  static constexpr int size = Format::block_size, together = 16;  // blocks whose scales are decoded at once

  RowDequantizer(const Operand& source, const Operand& destination)
      : m_data(static_cast<const uint8_t*>(source.data)),
        m_pitch(source.row_stride),
        m_cols(source.cols),
        m_scales(source),
        m_decode(Format::tensor_scale && source.tensor_scale != nullptr ? source.tensor_scale->decode : 1.0f),
        m_destination(destination) {}

  /// Blocks [block, block + count), at most 16, of `rows` rows.
  void operator()(int64_t row, int rows, int64_t block, int64_t count) const {
    const int64_t begin = block * size, cols = smaller(m_cols - begin, count * size);
    if (m_destination.col_stride == 1) {
      for (int r = 0; r < rows; ++r)
        decode(row + r, block, count, cols, Direct{m_destination.template at<Type>(row + r, begin)});
      return;
    }
    for (int64_t b = 0; b < count; ++b) {  // by way of 16 rows that can be transposed
      alignas(64) float values[16 * size];
      const int64_t here = smaller(cols - b * size, size);
      for (int r = 0; r < rows; ++r) decode(row + r, block + b, 1, here, Buffered{values + r * size});
      m_destination.template store<Type>(row, rows, begin + b * size, here, values, size);
    }
  }

 private:
  // Where 16 floats go: to the destination, as many as there are left, or to a buffer.
  struct Direct {
    typename Type::type* to;
    void operator()(int64_t i, int64_t left, __m512 v) const {
      if (left >= 16)
        Type::store(to + i, v);
      else
        Type::store(to + i, first_lanes(left), v);
    }
  };
  struct Buffered {
    float* to;
    void operator()(int64_t i, int64_t, __m512 v) const { _mm512_storeu_ps(to + i, v); }
  };

  template <class Output>
  void decode(int64_t row, int64_t block, int64_t count, int64_t cols, Output output) const {
    alignas(64) uint8_t bytes[together] = {};
    alignas(64) float scales[together];
    m_scales.read(row, block, bytes, count);
    _mm512_store_ps(scales, decode_scales<typename Format::scale>(bytes));
    const uint8_t* codes = m_data + row * m_pitch + block * packed_bytes<Format>(size);
    for (int64_t i = 0; i < cols; i += 16) {
      const __m512 code = decode_codes<Format>(codes + packed_bytes<Format>(i), smaller(cols - i, 16));
      __m512 value = _mm512_mul_ps(code, _mm512_set1_ps(scales[i / size]));
      if constexpr (Format::tensor_scale) value = _mm512_mul_ps(value, _mm512_set1_ps(m_decode));
      output(i, cols - i, value);
    }
  }

  const uint8_t* m_data;
  int64_t m_pitch, m_cols;
  ScaleRows m_scales;
  float m_decode;
  PlainMatrix m_destination;
};

template <class Format, class Type>
void run(const Problem& problem, const Native& native) {
  using Rows = RowDequantizer<Format, Type>;
  const Rows dequantize_rows(problem.a, problem.c);
  const int64_t rows = problem.a.rows, blocks = (problem.a.cols + Format::block_size - 1) / Format::block_size;
  const BlockTasks tasks(rows, blocks, native.concurrency);
  parallel_for(native, tasks.count(), [&](int64_t task) {
    const BlockTasks::Part part = tasks[task];
    // Along what is contiguous: a row, or rows next to one another.
    const bool along_rows = problem.c.col_stride == 1;
    const int64_t rows_at_once = along_rows ? 1 : 16, blocks_at_once = along_rows ? Rows::together : 1;
    const int64_t row_steps = (part.row_end - part.row_begin + rows_at_once - 1) / rows_at_once;
    const int64_t block_steps = (part.block_end - part.block_begin + blocks_at_once - 1) / blocks_at_once;
    for (int64_t i = 0; i < row_steps * block_steps; ++i) {
      const int64_t row = part.row_begin + (along_rows ? i / block_steps : i % row_steps) * rows_at_once;
      const int64_t block = part.block_begin + (along_rows ? i % block_steps : i / row_steps) * blocks_at_once;
      dequantize_rows(row, static_cast<int>(smaller(rows_at_once, part.row_end - row)), block,
                      smaller(blocks_at_once, part.block_end - block));
    }
  });
}

}  // namespace

Status dequantize(const Problem& problem, const Config&, void*, const Native& native) {
  with_format(problem.a.format, [&](auto format) {
    with_type(problem.c.format,
              [&](auto type) { run<typename decltype(format)::type, decltype(type)>(problem, native); });
  });
  return {};
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
