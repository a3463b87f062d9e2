#include <Microscale_Avx512_Decode.hpp>
#include <Microscale_Avx512_DecodeWeights.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {
namespace {

using namespace Decode;
using Kernel = void (*)(const Job&);

template <class Product, int Piece>
Kernel kernel_of(int rows) {
  switch (rows) {
    case 1:
      return multiply<Product, Piece, 1>;
    case 2:
      return multiply<Product, Piece, 2>;
    case 4:
      return multiply<Product, Piece, 4>;
    default:
      return multiply<Product, Piece, 8>;
  }
}
template <class Product>
Kernel kernel_of(int piece, int rows) {
  return piece == 16 ? kernel_of<Product, 16>(rows) : kernel_of<Product, 32>(rows);
}
template <template <class> class Product>
Kernel kernel_for_codes(int bits, int piece, int rows) {
  return bits == 4   ? kernel_of<Product<Fp4Codes>>(piece, rows)
         : bits == 6 ? kernel_of<Product<Fp6Codes>>(piece, rows)
                     : kernel_of<Product<ByteCodes>>(piece, rows);
}
Kernel find_kernel(ProductKind kind, int bits, int piece, int rows) {
  switch (kind) {
    case ProductKind::int4:
      return kernel_of<Int4Product>(piece, rows);
    case ProductKind::bf16:
      return kernel_for_codes<Bf16Product>(bits, piece, rows);
    default:
      return kernel_for_codes<RealProduct>(bits, piece, rows);
  }
}

ProductKind kind_of(FormatId a, FormatId b) {
  if (a == float32_id) return ProductKind::real;
  // The second part of a half is often 0, and 0 times an Inf of B would be a NaN that the product is not.
  if (a == float16_id && b.element == E5M2::id) return ProductKind::real;
  if (a.block_size > 0 && bits_per_code(a) == 4 && bits_per_code(b) == 4) return ProductKind::int4;
  return ProductKind::bf16;
}

/// A tile, slab by slab of k.
class Tile {
 public:
  Tile(const Operand& a, int64_t row, int rows, int64_t a_scale_shift, const Operand& b, int64_t col, int cols)
      : m_a(a),
        m_b(b),
        m_weights(b),
        m_row(row),
        m_scale_shift(a_scale_shift),
        m_col(col),
        m_rows(rows),
        m_groups((cols + group_rows - 1) / group_rows),
        m_kind(kind_of(a.format, b.format)),
        m_parts(PackedRows::parts_of(a, m_kind)),
        m_piece(a.format.block_size == 16 || b.format.block_size == 16 ? 16 : 32),
        m_kernel_rows(kernel_rows(rows * m_parts)) {}

  void run(int64_t k_begin, int64_t k_end, float* out, int64_t pitch) {
    const int width = m_groups * group_rows;
    const int all_rows = (m_rows * m_parts + m_kernel_rows - 1) / m_kernel_rows * m_kernel_rows;
    for (int r = 0; r < all_rows; ++r)
      for (int j = 0; j < width; j += 16) _mm512_store_ps(m_sums + r * decode_cols + j, _mm512_setzero_ps());
    const int64_t slab = row_words(m_kernel_rows) * PackedRows::elements_of(m_kind);
    for (int64_t k = k_begin; k < k_end; k += slab)
      for (int first = 0; first < m_rows; first += m_kernel_rows / m_parts)
        multiply_slab(m_kind, first, k, k_end - k < slab ? k_end - k : slab);
    for (int i = 0; i < m_rows; ++i)
      for (int j = 0; j < width; j += 16) {
        const float* sums = m_sums + i * m_parts * decode_cols + j;
        __m512 sum = _mm512_load_ps(sums);
        if (m_parts == 2) sum = _mm512_add_ps(sum, _mm512_load_ps(sums + decode_cols));
        _mm512_storeu_ps(out + i * pitch + j, sum);
      }
  }

 private:
  static int kernel_rows(int rows) { return rows == 1 ? 1 : rows == 2 ? 2 : rows <= 4 ? 4 : max_rows; }

  /// Rows from `first` on, as many as a kernel takes.
  void multiply_slab(ProductKind kind, int first, int64_t k, int64_t length) {
    const int left = m_rows - first, step = m_kernel_rows / m_parts, rows = left < step ? left : step;
    const int of_kernel = kernel_rows(rows * m_parts);
    if (!m_packed.pack(m_a, kind, bits_per_code(m_b.format) == 4, m_row + first, rows, m_scale_shift, of_kernel, k,
                       length, m_piece)) {
      const int64_t slab = row_words(m_kernel_rows);
      for (int64_t done = 0; done < length; done += slab)
        multiply_slab(ProductKind::real, first, k + done, length - done < slab ? length - done : slab);
      return;
    }
    const Kernel kernel = find_kernel(kind, bits_per_code(m_b.format), m_piece, of_kernel);
    Job job{};
    job.table = find_element_table(m_b.format.element);
    job.pieces_per_scale_log2 = m_b.format.block_size > m_piece ? 1 : 0;
    job.a_e8m0 = m_a.format.scale == ScaleType::e8m0;
    job.sums_pitch = decode_cols;
    const int64_t chunk = m_weights.chunk();
    for (int g = 0; g < m_groups; ++g) {
      job.sums = m_sums + first * m_parts * decode_cols + g * group_rows;
      for (int64_t done = 0; done < length; done += chunk) {
        const int64_t now = length - done < chunk ? length - done : chunk, pieces = done / m_piece;
        m_weights.load(m_col + g * group_rows, k + done, now, m_packed.careful, job);
        job.pieces = (now + m_piece - 1) / m_piece;
        job.words = m_packed.words + done / PackedRows::elements_of(kind);
        job.starts = m_packed.starts + pieces;
        job.a_scales = m_packed.scales + pieces;
        job.a_exponents = m_packed.exponents + pieces;
        kernel(job);
      }
    }
  }

  const Operand& m_a;
  const Operand& m_b;
  Weights m_weights;
  const int64_t m_row, m_scale_shift, m_col;
  const int m_rows, m_groups;
  const ProductKind m_kind;
  const int m_parts, m_piece;
  const int m_kernel_rows;  ///< of the kernels for all rows but, perhaps, the last
  PackedRows m_packed;
  alignas(64) float m_sums[2 * decode_rows * decode_cols];
};

}  // namespace

void decode_tile(const Operand& a, int64_t row, int rows, int64_t a_scale_shift, const Operand& b, int64_t col,
                 int cols, int64_t k_begin, int64_t k_end, float* out, int64_t pitch) {
  Tile(a, row, rows, a_scale_shift, b, col, cols).run(k_begin, k_end, out, pitch);
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
