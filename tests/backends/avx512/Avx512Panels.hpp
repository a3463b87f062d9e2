#ifndef MICROSCALE_TESTS_AVX512PANELS_HPP
#define MICROSCALE_TESTS_AVX512PANELS_HPP

#include <gtest/gtest.h>
#include <Microscale_Avx512_Expand.hpp>
#include <Microscale_Block.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

// What the tests of the AVX-512 panels and paths share: operands with one code a byte, their units, plain matrices.
namespace microscale::Test {

using namespace microscale::MICROSCALE_AVX512_NAMESPACE;

inline constexpr float inf = std::numeric_limits<float>::infinity();

template <class T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{64}); }
  bool operator==(const AlignedAllocator&) const { return true; }
};
template <class T>
using Aligned = std::vector<T, AlignedAllocator<T>>;

inline std::uint32_t bits(float x) { return Bits::from_float(x); }
inline float value_of_bf16(std::uint32_t half) { return Bits::to_float(half << 16); }

/// Equal bits; any NaN equals any other.
inline testing::AssertionResult same(float a, float b) {
  if (bits(a) == bits(b) || (std::isnan(a) && std::isnan(b))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << a << " (" << std::hexfloat << a << ") is not " << b;
}

/// A block-scaled operand of the tests: one code a byte, and one scale byte a block.
struct Scaled {
  int rows, cols, block;
  ScaleType type;
  const ElementTable* table;
  float (*decode)(std::uint8_t);
  int width;  ///< bits of a code in a unit
  std::vector<std::uint8_t> codes, scales;

  int padded_rows() const { return (rows + 15) / 16 * 16; }
  int padded_cols() const { return (cols + 31) / 32 * 32; }
  int blocks() const { return (cols + block - 1) / block; }
  int padded_blocks() const { return (padded_cols() + block - 1) / block; }
  std::uint8_t& code(int r, int k) { return codes[r * cols + k]; }
  std::uint8_t code(int r, int k) const { return codes[r * cols + k]; }
  std::uint8_t& scale(int r, int b) { return scales[r * blocks() + b]; }
  std::uint8_t scale(int r, int b) const { return scales[r * blocks() + b]; }
  float element(int r, int k) const { return decode(code(r, k)); }
  float scale_value(int r, int b) const {
    return type == ScaleType::e8m0 ? E8M0::decode(scale(r, b)) : UE4M3::decode(scale(r, b));
  }
  float value(int r, int k) const { return element(r, k) * scale_value(r, k / block); }

  /// The codes of a group as dwords of its rows, element i of a row in bits [i * width, (i + 1) * width).
  Aligned<std::uint8_t> unit(int group) const {
    const int row_bytes = padded_cols() * width / 8;
    Aligned<std::uint8_t> result(16 * row_bytes);
    for (int i = 0; i < 16 && 16 * group + i < rows; ++i)
      for (int k = 0; k < cols; ++k)
        for (int b = 0; b < width; ++b) {
          const int bit = k * width + b, byte = bit / 8;
          if (code(16 * group + i, k) >> b & 1)
            result[byte / 4 * 64 + 4 * i + byte % 4] |= static_cast<std::uint8_t>(1 << (bit % 8));
        }
    return result;
  }
  Aligned<std::uint8_t> unit_scales(int group) const {
    Aligned<std::uint8_t> result(16 * padded_blocks(), type == ScaleType::e8m0 ? 127 : 0x38);
    for (int i = 0; i < 16 && 16 * group + i < rows; ++i)
      for (int b = 0; b < blocks(); ++b) result[16 * b + i] = scale(16 * group + i, b);
    return result;
  }

  ExponentRange expand(int group, std::uint32_t* panel) const {
    const auto u = unit(group), s = unit_scales(group);
    switch (width) {
      case 4:
        return expand_bf16<4>(*table, type, block, u.data(), s.data(), padded_cols(), panel);
      case 6:
        return expand_bf16<6>(*table, type, block, u.data(), s.data(), padded_cols(), panel);
      default:
        return expand_bf16<8>(*table, type, block, u.data(), s.data(), padded_cols(), panel);
    }
  }
  ExponentRange expand(int group, float* panel, float* panel_scales) const {
    const auto u = unit(group), s = unit_scales(group);
    switch (width) {
      case 4:
        return expand_floats<4>(*table, type, block, u.data(), s.data(), padded_cols(), panel, panel_scales);
      case 6:
        return expand_floats<6>(*table, type, block, u.data(), s.data(), padded_cols(), panel, panel_scales);
      default:
        return expand_floats<8>(*table, type, block, u.data(), s.data(), padded_cols(), panel, panel_scales);
    }
  }
};

template <class Element>
Scaled scaled(int rows, int cols, int block, ScaleType type, int width) {
  Scaled result{
      rows,  cols, block, type, find_element_table(Element::id), [](std::uint8_t c) { return Element::decode(c); },
      width, {},   {}};
  result.codes.assign(rows * cols, 0);
  result.scales.assign(rows * result.blocks(), type == ScaleType::e8m0 ? 127 : 0x38);
  return result;
}

struct Random {
  std::mt19937 engine{7};
  int operator()(int from, int to) { return std::uniform_int_distribution<int>(from, to)(engine); }
};

/// Random finite codes; scales of every block within [from, to].
inline void fill(Scaled& m, Random& random, int from, int to) {
  for (auto& c : m.codes) do {
      c = static_cast<std::uint8_t>(random(0, (1 << m.width) - 1));
    } while (!std::isfinite(m.decode(c)));
  for (auto& s : m.scales) s = static_cast<std::uint8_t>(random(from, to));
}

/// One operand of each element, packing, scale type and block size.
inline std::vector<Scaled> all_kinds(int rows, int cols) {
  return {scaled<E2M1>(rows, cols, 32, ScaleType::e8m0, 4),  scaled<E2M1>(rows, cols, 16, ScaleType::ue4m3, 4),
          scaled<E4M3>(rows, cols, 32, ScaleType::e8m0, 8),  scaled<E5M2>(rows, cols, 32, ScaleType::e8m0, 8),
          scaled<E2M3>(rows, cols, 32, ScaleType::e8m0, 8),  scaled<E3M2>(rows, cols, 32, ScaleType::e8m0, 8),
          scaled<E2M3>(rows, cols, 32, ScaleType::e8m0, 6),  scaled<E3M2>(rows, cols, 32, ScaleType::e8m0, 6),
          scaled<E4M3>(rows, cols, 16, ScaleType::ue4m3, 8), scaled<E2M1>(rows, cols, 32, ScaleType::e8m0, 8)};
}

/// Every code of an element (with whatever bits a byte has above it) in every row and place.
inline void fill_with_all_codes(Scaled& m) {
  for (int r = 0; r < m.rows; ++r)
    for (int k = 0; k < m.cols; ++k) m.code(r, k) = static_cast<std::uint8_t>((k + 37 * r) % (1 << m.width));
}

/// A plain matrix with strides, poison between its elements.
template <class T>
struct Plain {
  int rows, cols;
  std::int64_t row_stride, col_stride;
  std::vector<T> data;

  Plain(int m, int k, std::int64_t rs, std::int64_t cs)
      : rows(m), cols(k), row_stride(rs), col_stride(cs), data((m - 1) * rs + (k - 1) * cs + 1, T(NAN)) {}
  T& at(int r, int k) { return data[r * row_stride + k * col_stride]; }
  float value(int r, int k) const { return static_cast<float>(data[r * row_stride + k * col_stride]); }
  PlainGroup<T> group(int g) const {
    return {data.data() + 16 * g * row_stride, row_stride, col_stride, rows - 16 * g < 16 ? rows - 16 * g : 16};
  }
};

}  // namespace microscale::Test

#endif
