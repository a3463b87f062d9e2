#ifndef MICROSCALE_REFERENCE_PRODUCTTILE_HPP
#define MICROSCALE_REFERENCE_PRODUCTTILE_HPP

#include <Microscale_Reference_Product.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

// Tiles of A B^T on the host: bit for bit what product_element gives, much faster. Each block is decoded once a tile,
// into small panels on the stack, and multiplied four rows by eight columns at a time.
namespace microscale::Impl {

/// The values of all codes of an element. Bits above the element's own are ignored, as by decode().
template <class Element>
inline constexpr std::array<float, 256> element_values = [] {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) values[code] = Element::decode(static_cast<std::uint8_t>(code));
  return values;
}();

/// The values of the two 4-bit codes in a byte.
template <class Element>
inline constexpr std::array<std::array<float, 2>, 256> element_pairs = [] {
  std::array<std::array<float, 2>, 256> pairs{};
  for (int byte = 0; byte < 256; ++byte)
    pairs[byte] = {Element::decode(static_cast<std::uint8_t>(byte & 15)),
                   Element::decode(static_cast<std::uint8_t>(byte >> 4))};
  return pairs;
}();

// A fused multiply-add is slow: a library call where the compiler's flags have no FMA instructions, and no vector
// operation elsewhere. It is not needed where the product is exact in binary32, since then multiplying and adding rounds
// once as well. So it is for elements of at most 12 significant bits that are multiples of 2^-50 below 2^60 (all
// minifloats): their products have at most 24 bits and lie far from underflow and overflow. The same holds for half, and
// for bf16 (8 bits) from 2^-90 to 2^60. Inf and NaN are no matter: there is nothing to round.
constexpr bool has_exact_products(float x) {
  const std::uint32_t mag = Bits::from_float(x) & Bits::magnitude;
  const int exponent = static_cast<int>(mag >> 23) - 127;
  return mag == 0 || mag >= Bits::infinity || ((mag & 0xfffu) == 0 && exponent >= -39 && exponent < 60);
}
template <class Element>
inline constexpr bool elements_have_exact_products = std::all_of(element_values<Element>.begin(),
                                                                 element_values<Element>.end(), has_exact_products);

#if defined(__GNUC__)
using Float4 = float __attribute__((vector_size(16), may_alias));
#else
struct alignas(16) Float4 {
  float x[4];
  float& operator[](int i) { return x[i]; }
  float operator[](int i) const { return x[i]; }
};
inline Float4 operator+(Float4 a, Float4 b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]}; }
inline Float4 operator*(Float4 a, Float4 b) { return {a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]}; }
#endif

/// A tile of A B^T, accumulated block by block.
template <class A, class B>
class ProductTile {
 public:
  static constexpr int max_rows = 64;
  static constexpr int max_cols = 128;

  /// Writes rows [row, row + rows) x columns [col, col + cols) of A B^T to out[i * pitch + j]; out has room for whole
  /// groups of 4 rows and 8 columns and is aligned to 16 bytes, as is the pitch. scale_shift: what is added to a row of
  /// A to get its row in A's scale buffer.
  static void compute(const A& a, std::int64_t row, int rows, std::int64_t scale_shift, const B& b, std::int64_t col,
                      int cols, float* out, int pitch) {
    ProductTile tile;
    const int padded_rows = (rows + 3) / 4 * 4, padded_cols = (cols + 7) / 8 * 8;
    for (int i = 0; i < padded_rows; ++i) std::fill_n(out + i * pitch, padded_cols, 0.0f);
    for (std::int64_t k = 0; k < a.cols;) {
      const std::int64_t end = std::min(block_end(a, k), block_end(b, k));
      const int length = static_cast<int>(end - k);
      const bool exact = tile.load_a(a, row, rows, scale_shift, k, length);
      tile.load_b(b, col, cols, k, length);
      if (exact)
        tile.multiply<true>(length, rows, cols, out, pitch);
      else
        tile.multiply<false>(length, rows, cols, out, pitch);
      k = end;
    }
  }

 private:
  using TraitsA = OperandTraits<A>;
  using FormatB = typename OperandTraits<B>::format;
  static constexpr int depth = [] {
    if constexpr (TraitsA::scaled)
      return std::min(TraitsA::format::block_size, FormatB::block_size);
    else
      return FormatB::block_size;
  }();
  static constexpr bool both_e8m0 = [] {
    if constexpr (TraitsA::scaled)
      return TraitsA::e8m0 && OperandTraits<B>::e8m0;
    else
      return false;
  }();

  ProductTile() {
    // Rows and columns that only fill up a group are multiplied too; their values are never used.
    std::fill_n(&m_a[0][0], max_rows * depth, 0.0f);
    std::fill_n(&m_b[0][0], depth * max_cols, 0.0f);
  }

  /// Loads a block of A; returns whether its products with elements of B are exact.
  bool load_a(const A& a, std::int64_t row, int rows, std::int64_t scale_shift, std::int64_t k, int length) {
    if constexpr (TraitsA::scaled) {
      using F = typename TraitsA::format;
      for (int i = 0; i < rows; ++i) {
        decode_codes(a, row + i, k, length, m_a[i], 1);
        m_a_bytes[i] = a.scale(row + i + scale_shift, k / F::block_size);
        m_a_scales[i] = F::scale::decode(m_a_bytes[i]);
      }
      return elements_have_exact_products<typename F::element> &&
             elements_have_exact_products<typename FormatB::element>;
    } else {
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < length; ++j) m_a[i][j] = element(a, row + i, k + j);
      using T = std::remove_const_t<typename A::value_type>;
      if constexpr (!elements_have_exact_products<typename FormatB::element> || std::is_same_v<T, float>) return false;
      if constexpr (std::is_same_v<T, bf16>) {
        constexpr std::uint32_t low = Bits::from_float(0x1p-90f), high = Bits::from_float(0x1p60f);
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < length; ++j) {
            const std::uint32_t mag = Bits::from_float(m_a[i][j]) & Bits::magnitude;
            if (mag != 0 && (mag < low || (mag >= high && mag < Bits::infinity))) return false;
          }
      }
      return true;
    }
  }

  void load_b(const B& b, std::int64_t col, int cols, std::int64_t k, int length) {
    for (int j = 0; j < cols; ++j) {
      decode_codes(b, col + j, k, length, &m_b[0][j], max_cols);
      m_b_bytes[j] = b.scale(col + j, k / FormatB::block_size);
      m_b_scales[j] = FormatB::scale::decode(m_b_bytes[j]);
    }
  }

  template <class F>
  static void decode_codes(const MatrixHandle<F>& m, std::int64_t row, std::int64_t k, int length, float* out,
                           int stride) {
    const std::uint8_t* bytes = m.row(row) + packed_bytes<F>(k);  // blocks start at whole bytes
    using Element = typename F::element;
    if constexpr (code_bits<F> == 4) {
      for (int i = 0; i < length / 2; ++i) {
        const auto& pair = element_pairs<Element>[bytes[i]];
        out[2 * i * stride] = pair[0];
        out[(2 * i + 1) * stride] = pair[1];
      }
      if (length % 2 != 0) out[(length - 1) * stride] = element_pairs<Element>[bytes[length / 2]][0];
    } else {
      std::uint8_t codes[F::block_size] = {};
      unpack_codes<F>(bytes, length, codes);
      for (int i = 0; i < length; ++i) out[i * stride] = element_values<Element>[codes[i]];
    }
  }

  /// Whether 2 to any sum of two E8M0 exponents that meet here is a normal binary32 value: then multiplying by it is
  /// what scale_by_pow2 does. (NaN scales are right either way.)
  bool exponents_fit(int rows, int cols) const {
    const auto range = [](const std::uint8_t* bytes, int n) {
      int low = 254, high = 0;
      for (int i = 0; i < n; ++i) {
        low = std::min<int>(low, bytes[i]);
        high = std::max<int>(high, bytes[i] == E8M0::nan_byte ? 0 : bytes[i]);
      }
      return std::array{low, high};
    };
    const auto a = range(m_a_bytes, rows), b = range(m_b_bytes, cols);
    return a[0] + b[0] >= 2 * E8M0::bias - 126 && a[1] + b[1] <= 2 * E8M0::bias + 127;
  }

  template <bool Exact>
  void multiply(int length, int rows, int cols, float* out, int pitch) const {
    const bool fits = !both_e8m0 || exponents_fit(rows, cols);
    for (int j = 0; j < cols; j += 8)
      for (int i = 0; i < rows; i += 4)
        if (i + 1 < rows)
          multiply_group<Exact, 4>(length, i, j, fits, out + i * pitch + j, pitch);
        else
          multiply_group<Exact, 1>(length, i, j, fits, out + i * pitch + j, pitch);
  }

  /// One block of Rows rows and 8 columns.
  template <bool Exact, int Rows>
  void multiply_group(int length, int i, int j, bool fits, float* out, int pitch) const {
    Float4 dots[Rows][2] = {};
    if constexpr (Exact) {
      for (int k = 0; k < length; ++k) {
        const Float4 b0 = load(&m_b[k][j]), b1 = load(&m_b[k][j + 4]);
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC unroll 4
#endif
        for (int r = 0; r < Rows; ++r) {
          const Float4 x = broadcast(m_a[i + r][k]);
          dots[r][0] = dots[r][0] + x * b0;
          dots[r][1] = dots[r][1] + x * b1;
        }
      }
    } else {
      for (int r = 0; r < Rows; ++r) {
        float dot[8] = {};
        for (int k = 0; k < length; ++k)
          for (int c = 0; c < 8; ++c) dot[c] = fused_multiply_add(m_a[i + r][k], m_b[k][j + c], dot[c]);
        for (int c = 0; c < 8; ++c) dots[r][c / 4][c % 4] = dot[c];
      }
    }
    for (int r = 0; r < Rows; ++r)
      for (int h = 0; h < 2; ++h) {
        float* sums = out + r * pitch + 4 * h;
        if (fits)
          store(sums, load(sums) + scaled(dots[r][h], broadcast(m_a_scales[i + r]), load(&m_b_scales[j + 4 * h])));
        else
          for (int c = 0; c < 4; ++c)
            sums[c] += scaled_by_exponents(dots[r][h][c], m_a_bytes[i + r], m_b_bytes[j + 4 * h + c]);
      }
  }

  /// The scales as factors; the product of two is exact.
  static Float4 scaled(Float4 dot, Float4 scale_a, Float4 scale_b) {
    if constexpr (!TraitsA::scaled)
      return dot * scale_b;
    else if constexpr (TraitsA::e8m0 == OperandTraits<B>::e8m0)
      return dot * (scale_a * scale_b);
    else if constexpr (TraitsA::e8m0)
      return dot * scale_b * scale_a;
    else
      return dot * scale_a * scale_b;
  }

  static float scaled_by_exponents(float dot, std::uint8_t a, std::uint8_t b) {
    ScaleProduct scale;
    scale.multiply<E8M0>(a);
    scale.multiply<E8M0>(b);
    return scale.apply(dot);
  }

  static Float4 load(const float* p) { return *reinterpret_cast<const Float4*>(p); }
  static void store(float* p, Float4 x) { *reinterpret_cast<Float4*>(p) = x; }
  static Float4 broadcast(float x) { return Float4{x, x, x, x}; }

  alignas(64) float m_a[max_rows][depth];
  alignas(64) float m_b[depth][max_cols];
  alignas(64) float m_a_scales[max_rows] = {};
  alignas(64) float m_b_scales[max_cols] = {};
  std::uint8_t m_a_bytes[max_rows] = {};
  std::uint8_t m_b_bytes[max_cols] = {};
};

}  // namespace microscale::Impl

#endif
