#ifndef MICROSCALE_TESTS_CORE_TESTMATMUL_HPP
#define MICROSCALE_TESTS_CORE_TESTMATMUL_HPP

#include "TestData.hpp"
#include <Microscale_BatchedBlockScaledMatrix.hpp>
#include <Microscale_Half.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

// A second, plain implementation of the product (one element at a time, by the C library's fmaf and scalbn), and what
// matmul tests compare with it.
namespace microscale::Test {

/// An operand written out: element values, and for each block the two parts of its scale.
struct PlainOperand {
  std::int64_t rows = 0, cols = 0;
  std::int64_t block = 0;      ///< 0: no blocks
  std::vector<float> values;   ///< [rows, cols], without scales
  std::vector<float> factors;  ///< [rows, blocks]: UE4M3 values, else 1; NaN for NaN scales
  std::vector<int> exponents;  ///< [rows, blocks]: E8M0 exponents, else 0
  float decode = 1.0f;

  std::int64_t blocks() const { return block == 0 ? 0 : (cols + block - 1) / block; }
  float value(std::int64_t r, std::int64_t k) const { return values[static_cast<std::size_t>(r * cols + k)]; }
  std::size_t scale_index(std::int64_t r, std::int64_t k) const {
    return static_cast<std::size_t>(r * blocks() + k / block);
  }
  std::int64_t block_end(std::int64_t k) const { return block == 0 ? cols : std::min(cols, (k / block + 1) * block); }
  /// The value with its scales but the tensor scale, exactly.
  double scaled(std::int64_t r, std::int64_t k) const {
    if (block == 0) return value(r, k);
    const std::size_t i = scale_index(r, k);
    return std::ldexp(static_cast<double>(value(r, k)) * factors[i], exponents[i]);
  }
};

/// scale_row(r): the row of the scale buffer of row r.
template <class F, class ScaleRow>
PlainOperand plain(const Impl::MatrixHandle<F>& m, const ScaleRow& scale_row) {
  PlainOperand p;
  p.rows = m.rows;
  p.cols = m.cols;
  p.block = F::block_size;
  for (std::int64_t r = 0; r < m.rows; ++r) {
    for (std::int64_t k = 0; k < m.cols; ++k) p.values.push_back(F::element::decode(read_code<F>(m.row(r), k)));
    for (std::int64_t b = 0; b < p.blocks(); ++b) {
      const std::uint8_t byte = m.scale(scale_row(r), b);
      const bool e8m0 = F::scale::type == ScaleType::e8m0, nan = F::scale::is_nan(byte);
      p.factors.push_back(nan ? std::numeric_limits<float>::quiet_NaN() : e8m0 ? 1.0f : F::scale::decode(byte));
      p.exponents.push_back(e8m0 && !nan ? byte - 127 : 0);
    }
  }
  if (F::tensor_scale) p.decode = m.tensor_scale->decode;
  return p;
}
template <class F, class Space>
PlainOperand plain(const BlockScaledMatrix<F, Space>& m) {
  return plain(m.handle(), [](std::int64_t r) { return r; });
}
template <RealView V>
PlainOperand plain(const V& v) {
  const auto m = Impl::strided(v);
  PlainOperand p;
  p.rows = m.rows;
  p.cols = m.cols;
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t k = 0; k < m.cols; ++k) p.values.push_back(static_cast<float>(m(r, k)));
  return p;
}

/// Sum over k of A(row, k) B(col, k), without tensor scales, over the first `cols` columns.
inline float plain_product(const PlainOperand& a, std::int64_t row, const PlainOperand& b, std::int64_t col,
                           std::int64_t cols) {
  float sum = 0.0f;
  for (std::int64_t k = 0; k < cols;) {
    const std::int64_t end = std::min({a.block_end(k), b.block_end(k), cols});
    float factor = 1.0f;
    int exponent = 0;
    for (const auto& [operand, r] : {std::pair(&a, row), std::pair(&b, col)})
      if (operand->block > 0) {
        factor *= operand->factors[operand->scale_index(r, k)];
        exponent += operand->exponents[operand->scale_index(r, k)];
      }
    float dot = 0.0f;
    for (; k < end; ++k) dot = std::fmaf(a.value(row, k), b.value(col, k), dot);
    sum = sum + std::scalbn(dot * factor, exponent);
  }
  return sum;
}
inline float plain_product(const PlainOperand& a, std::int64_t row, const PlainOperand& b, std::int64_t col) {
  return plain_product(a, row, b, col, a.cols);
}

/// A NaN that was computed here may have any sign and payload.
inline bool same_bits(float x, float y) {
  return Bits::from_float(x) == Bits::from_float(y) || (std::isnan(x) && std::isnan(y));
}

/// Expects that c holds epilogue(product without epilogue, m, n), rounded to its type, bit for bit (any NaN is a NaN).
template <class View, class F>
void expect_product(const PlainOperand& a, const PlainOperand& b, const View& c, const F& epilogue,
                    const std::string& what) {
  const auto m = Impl::strided(c);
  using T = typename decltype(m)::value_type;
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < m.cols; ++j) {
      const auto expected = static_cast<float>(T(epilogue(plain_product(a, i, b, j) * a.decode * b.decode, i, j)));
      ASSERT_TRUE(same_bits(static_cast<float>(m(i, j)), expected))
          << what << ": element (" << i << ", " << j << ") of " << a.rows << " x " << b.rows << " x " << a.cols
          << " is " << static_cast<float>(m(i, j)) << ", expected " << expected;
    }
}
template <class View>
void expect_product(const PlainOperand& a, const PlainOperand& b, const View& c, const std::string& what) {
  expect_product(
      a, b, c, [](float v, std::int64_t, std::int64_t) { return v; }, what);
}

/// How wild the scales are: within a few binades (sums stay finite), or anything, NaN now and then.
///
/// On another backend than the reference, which may sum in another order (tests/support/BackendUnderTest.hpp), values are
/// so few that any order gives the bits of the reference: significands of at most 4 bits and magnitudes in [1/2, 4) make
/// the dot product of a block exact, and moderate scales, in [1/2, 2], sums of up to 170 products: multiples of 2^-10 up
/// to 2^6. Sums that do round are held against the backend's bound (Test_MatmulBound.cpp).
enum class Scales { moderate, extreme };

inline bool sums_must_be_exact() {
  static const bool other_backend = std::getenv("MICROSCALE_TEST_BACKEND") != nullptr;
  return other_backend;
}

template <class F>
std::uint8_t random_scale(Random& random, Scales kind) {
  const std::uint64_t dice = random.below(64);
  if (kind == Scales::extreme && dice == 0) return F::scale::nan_byte;
  const bool exact = kind == Scales::moderate && sums_must_be_exact();
  const int exponent = static_cast<int>(random.below(3)) - 1;
  if constexpr (F::scale::type == ScaleType::e8m0) {
    if (exact) return static_cast<std::uint8_t>(127 + exponent);
    if (kind == Scales::moderate) return static_cast<std::uint8_t>(119 + random.below(17));
    if (dice < 8) return dice % 2 == 0 ? 0 : 254;
    return static_cast<std::uint8_t>(dice < 32 ? random.below(255) : 97 + random.below(61));
  } else {
    if (exact) return F::scale::encode(Bits::pow2(exponent));
    const auto byte = static_cast<std::uint8_t>(random.below(0x7f));
    return kind == Scales::moderate ? byte
                                    : static_cast<std::uint8_t>(byte | random.below(2) << 7);  // bit 7 is ignored
  }
}
/// Any code; NaN and Inf only now and then, and not at all under moderate scales.
template <class F>
std::uint8_t random_code(Random& random, Scales kind) {
  const auto code = static_cast<std::uint8_t>(random.bits() & ((1u << F::element::bits) - 1));
  const float magnitude = std::abs(F::element::decode(code));
  const bool finite = magnitude <= float_max;
  if (finite && sums_must_be_exact())
    return magnitude == 0.0f || (magnitude >= 0.5f && magnitude < 4.0f) ? code : random_code<F>(random, kind);
  return finite || (kind == Scales::extreme && random.below(16) == 0) ? code : 0;
}

/// Fills codes and scales (padding scales with `padding`), each block with its own scale.
template <class F>
void fill(const Impl::MatrixHandle<F>& m, std::uint64_t seed, Scales kind, std::uint8_t padding) {
  Random random(seed);
  const ScaleMap map = m.map;
  for (std::int64_t i = 0; i < m.tile_rows; ++i)
    for (std::int64_t j = 0; j < map.tile_row_bytes(); ++j) m.scales[i * m.scale_pitch + j] = padding;
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t b = 0; b < map.cols; ++b) {
      std::uint8_t codes[F::block_size] = {};
      for (auto& code : codes) code = random_code<F>(random, kind);
      pack_codes<F>(codes, m.block_length(b), m.block(r, b));
      m.scale(r, b) = random_scale<F>(random, kind);
    }
  if (F::tensor_scale) *m.tensor_scale = pair_from_decode(random.unit() + 1.5f);
}

// Functors for epilogues that devices can call. (The bodies of tests are private functions, where CUDA allows no lambda
// for the device.)
struct AddIndices {  ///< v + sign_m * m + sign_n * n
  int sign_m = 1, sign_n = 1;
  KOKKOS_FUNCTION float operator()(std::int64_t m, std::int64_t n, float v) const {
    return v + static_cast<float>(sign_m * m + sign_n * n);
  }
};
struct AddBatchIndices {
  KOKKOS_FUNCTION float operator()(std::int64_t e, std::int64_t m, std::int64_t n, float v) const {
    return v + static_cast<float>(1000 * e + 10 * m + n);
  }
};

/// A matrix whose padding scales are NaN: none of them may have any effect.
template <class F>
BlockScaledMatrix<F, Space> random_operand(std::int64_t rows, std::int64_t cols, ScaleLayout layout, std::uint64_t seed,
                                           Scales kind = Scales::extreme) {
  BlockScaledMatrix<F, Space> m("operand", rows, cols, layout);
  fill(m.handle(), seed, kind, 0xff);
  return m;
}

/// For plain operands: in [-1, 1), with few digits where sums must be exact.
inline float random_number(Random& random) {
  return sums_must_be_exact() ? std::floor(8 * random.unit()) / 8 : random.unit();
}

template <class T, class Layout = Kokkos::LayoutRight>
Kokkos::View<T**, Layout, Space> random_view(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Random random(seed);
  Kokkos::View<T**, Layout, Space> v("view", rows, cols);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) v(i, j) = static_cast<T>(random_number(random));
  return v;
}

template <class V>
void poison_view(const V& v) {
  const auto m = Impl::strided(v);
  using T = typename decltype(m)::value_type;
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < m.cols; ++j) m(i, j) = T(std::numeric_limits<float>::quiet_NaN());
}

}  // namespace microscale::Test

#endif
