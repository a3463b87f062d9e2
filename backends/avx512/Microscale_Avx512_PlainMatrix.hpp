#ifndef MICROSCALE_AVX512_PLAINMATRIX_HPP
#define MICROSCALE_AVX512_PLAINMATRIX_HPP

#include <Microscale_Avx512_Parallel.hpp>
#include <Microscale_Avx512_Transpose.hpp>
#include <Microscale_Avx512_Vector.hpp>
#include <Microscale_Half.hpp>
#include <stdint.h>
#include <string.h>

// Strided matrices of float, double, half and bf16, read and written as floats, 16 at a time where rows or columns are
// contiguous.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

inline __mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1); }

// How 16 neighbours of each type, or those of a mask, are read and written as floats; other lanes are read as zero.
struct FloatType {
  using type = float;
  static constexpr bool is_float = true;
  static __m512 load(const void* p) { return _mm512_loadu_ps(p); }
  static __m512 load(__mmask16 k, const void* p) { return _mm512_maskz_loadu_ps(k, p); }
  static void store(void* p, __m512 v) { _mm512_storeu_ps(p, v); }
  static void store(void* p, __mmask16 k, __m512 v) { _mm512_mask_storeu_ps(p, k, v); }
};
struct Bf16Type {
  using type = bf16;
  static constexpr bool is_float = false;
  static __m512 load(const void* p) { return widened(_mm256_loadu_epi16(p)); }
  static __m512 load(__mmask16 k, const void* p) { return widened(_mm256_maskz_loadu_epi16(k, p)); }
  static void store(void* p, __m512 v) { _mm256_storeu_epi16(p, rounded(v)); }
  static void store(void* p, __mmask16 k, __m512 v) { _mm256_mask_storeu_epi16(p, k, rounded(v)); }

 private:
  static __m512 widened(__m256i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }
  /// To nearest even; the processor's own conversion would flush subnormals.
  static __m256i rounded(__m512 v) {
    const __m512i bits = _mm512_castps_si512(v), top = _mm512_srli_epi32(bits, 16);
    const __m512i half_less = _mm512_add_epi32(_mm512_and_si512(top, _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7fff));
    const __m512i number = _mm512_srli_epi32(_mm512_add_epi32(bits, half_less), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(number, nan, top, _mm512_set1_epi32(0x40)));
  }
};
struct HalfType {
  using type = half;
  static constexpr bool is_float = false;
  static __m512 load(const void* p) { return _mm512_cvtph_ps(_mm256_loadu_epi16(p)); }
  static __m512 load(__mmask16 k, const void* p) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(k, p)); }
  static void store(void* p, __m512 v) { _mm256_storeu_epi16(p, rounded(v)); }
  static void store(void* p, __mmask16 k, __m512 v) { _mm256_mask_storeu_epi16(p, k, rounded(v)); }

 private:
  static __m256i rounded(__m512 v) { return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
};
/// Rounded to float when read.
struct DoubleType {
  using type = double;
  static constexpr bool is_float = false;
  static __m512 load(const void* p) { return load(0xffff, p); }
  static __m512 load(__mmask16 k, const void* p) {
    const __m512d low = _mm512_maskz_loadu_pd(static_cast<__mmask8>(k), p);
    const __m512d high = _mm512_maskz_loadu_pd(static_cast<__mmask8>(k >> 8), static_cast<const double*>(p) + 8);
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
  }
  static void store(void* p, __m512 v) { store(p, 0xffff, v); }
  static void store(void* p, __mmask16 k, __m512 v) {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>(k), _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
    _mm512_mask_storeu_pd(static_cast<double*>(p) + 8, static_cast<__mmask8>(k >> 8),
                          _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
  }
};

/// Calls f with the one of the types above that a plain format is.
template <class F>
void with_type(FormatId format, F f) {
  if (format == float32_id) f(FloatType{});
  if (format == bfloat16_id) f(Bf16Type{});
  if (format == float16_id) f(HalfType{});
  if (format == float64_id) f(DoubleType{});
}

/// A matrix of which tiles are read and written as floats.
struct PlainMatrix {
  char* data;
  int64_t row_stride, col_stride;

  explicit PlainMatrix(const Operand& operand)
      : data(static_cast<char*>(operand.data)), row_stride(operand.row_stride), col_stride(operand.col_stride) {}

  template <class Type>
  typename Type::type* at(int64_t row, int64_t col) const {
    return reinterpret_cast<typename Type::type*>(data) + row * row_stride + col * col_stride;
  }
  /// Columns are nearer together in memory than rows are.
  bool columns_contiguous() const { return row_stride == 1 && col_stride != 1; }

  /// Asks for `cols` columns of a row that will be read soon, as far as memory has them, before the processor would notice.
  template <class Type>
  void prefetch(int64_t row, int64_t col, int64_t cols) const {
    const auto* from = reinterpret_cast<const char*>(at<Type>(row, col));
    const auto bytes = cols * static_cast<int64_t>(sizeof(typename Type::type));
    for (int64_t i = 0; i < bytes; i += 64) _mm_prefetch(from + i, _MM_HINT_T0);
  }

  /// Rows [row, row + rows), at most 16, and columns [col, col + cols) to `values` with `pitch`, a multiple of 16; what
  /// is past `cols` up to the pitch becomes zero.
  template <class Type>
  void load(int64_t row, int rows, int64_t col, int64_t cols, float* values, int64_t pitch) const {
    if (col_stride == 1)
      for (int r = 0; r < rows; ++r) load_row<Type>(at<Type>(row + r, col), cols, values + r * pitch, pitch);
    else if (row_stride == 1)
      for (int64_t c = 0; c < pitch; c += 16) load_transposed<Type>(row, rows, col + c, cols - c, values + c, pitch);
    else
      for (int r = 0; r < rows; ++r)
        for (int64_t c = 0; c < pitch; ++c)
          values[r * pitch + c] = c < cols ? static_cast<float>(*at<Type>(row + r, col + c)) : 0.0f;
  }

  /// The inverse: `values` into the matrix, of `cols` columns.
  template <class Type>
  void store(int64_t row, int rows, int64_t col, int64_t cols, const float* values, int64_t pitch) const {
    if (col_stride == 1)
      for (int r = 0; r < rows; ++r) {
        auto* to = at<Type>(row + r, col);
        int64_t c = 0;
        for (; c + 16 <= cols; c += 16) Type::store(to + c, _mm512_loadu_ps(values + r * pitch + c));
        if (c < cols) Type::store(to + c, first_lanes(cols - c), _mm512_loadu_ps(values + r * pitch + c));
      }
    else if (row_stride == 1)
      for (int64_t c = 0; c < cols; c += 16) store_transposed<Type>(row, rows, col + c, cols - c, values + c, pitch);
    else
      for (int r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c)
          *at<Type>(row + r, col + c) = static_cast<typename Type::type>(values[r * pitch + c]);
  }

 private:
  template <class Type>
  static void load_row(const typename Type::type* from, int64_t cols, float* values, int64_t pitch) {
    int64_t c = 0;
    for (; c + 16 <= cols; c += 16) _mm512_storeu_ps(values + c, Type::load(from + c));
    for (; c < pitch; c += 16)
      _mm512_storeu_ps(values + c, c < cols ? Type::load(first_lanes(cols - c), from + c) : _mm512_setzero_ps());
  }
  template <class Type>
  void load_transposed(int64_t row, int rows, int64_t col, int64_t cols, float* values, int64_t pitch) const {
    __m512 v[16];
    for (int c = 0; c < 16; ++c) {
      v[c] = c < cols ? Type::load(first_lanes(rows), at<Type>(row, col + c)) : _mm512_setzero_ps();
      prefetch<Type>(row + 32, col + c, 1);
    }
    transpose(v);
    for (int r = 0; r < rows; ++r) _mm512_storeu_ps(values + r * pitch, v[r]);
  }
  template <class Type>
  void store_transposed(int64_t row, int rows, int64_t col, int64_t cols, const float* values, int64_t pitch) const {
    __m512 v[16];
    for (int r = 0; r < 16; ++r) v[r] = r < rows ? _mm512_loadu_ps(values + r * pitch) : _mm512_setzero_ps();
    transpose(v);
    for (int c = 0; c < smaller(cols, 16); ++c) Type::store(at<Type>(row, col + c), first_lanes(rows), v[c]);
  }
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
