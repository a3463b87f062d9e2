#ifndef MICROSCALE_TESTS_CORE_TESTDATA_HPP
#define MICROSCALE_TESTS_CORE_TESTDATA_HPP

#include <gtest/gtest.h>
#include <Kokkos_Core.hpp>
#include <Microscale_BlockScaledMatrix.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

// What the tests of core share: the execution spaces, hostile data, poisoned matrices.
namespace microscale::Test {

/// Every execution space of this Kokkos.
using Spaces = testing::Types<Kokkos::DefaultHostExecutionSpace
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
                              ,
                              Kokkos::DefaultExecutionSpace
#endif
#if defined(KOKKOS_ENABLE_SERIAL) && (defined(KOKKOS_ENABLE_OPENMP) || defined(KOKKOS_ENABLE_THREADS))
                              ,
                              Kokkos::Serial
#endif
                              >;

/// Tests that run on one space take the default one. Their memory is such that both it and the test can reach it.
using Exec = Kokkos::DefaultExecutionSpace;
using Space = Kokkos::SharedSpace;

inline constexpr std::array all_layouts = {ScaleLayout::linear, ScaleLayout::tcgen, ScaleLayout::cdna4,
                                           ScaleLayout::tile_8x4};

/// splitmix64: a small generator whose whole state is one number.
class Random {
 public:
  explicit Random(std::uint64_t seed) : m_state(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = (m_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return bits() % n; }
  /// Uniform in [-1, 1).
  float unit() { return static_cast<float>(static_cast<std::int64_t>(bits()) >> 40) * 0x1p-23f; }

 private:
  std::uint64_t m_state;
};

/// rows x cols values whose magnitude changes from block to block by many binades, with zeros of both signs,
/// subnormals, blocks of zeros and (if asked) NaN and Inf here and there.
inline std::vector<float> hostile_values(std::int64_t rows, std::int64_t cols, std::uint64_t seed, bool non_finite) {
  Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(rows * cols));
  float scale = 1.0f;
  bool zeros = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 8 == 0) {
      const std::uint64_t kind = random.below(16);
      zeros = kind == 0;
      scale = kind == 1 ? 0x1p-140f : kind == 2 ? 0x1p120f : Bits::pow2(static_cast<int>(random.below(24)) - 12);
    }
    const std::uint64_t kind = random.below(64);
    values[i] = zeros       ? (kind % 2 == 0 ? 0.0f : -0.0f)
                : kind == 0 ? -0.0f
                : kind == 1 ? 0x1p-149f
                : kind == 2 ? 6.0f * scale
                : kind == 3 ? -1.75f * scale
                            : random.unit() * scale;
    if (non_finite && random.below(300) == 0)
      values[i] = Bits::to_float(random.below(2) == 0 ? Bits::quiet_nan : Bits::infinity | Bits::sign);
  }
  return values;
}

/// Fills all memory of a matrix with a byte pattern.
template <class Matrix>
void poison(const Matrix& matrix, int byte) {
  const auto fill = [&](const auto& view) {
    for (std::size_t i = 0; i < view.extent(0); ++i)
      if (view.extent(1) > 0) std::memset(&view(i, 0), byte, view.extent(1));
  };
  fill(matrix.data());
  fill(matrix.scales());
  if (matrix.tensor_scale().data() != nullptr)
    std::memset(static_cast<void*>(matrix.tensor_scale().data()), byte, sizeof(TensorScalePair));
}

/// All bytes of a matrix as they lie in memory: codes, scales with their padding, tensor scale.
template <class Matrix>
std::vector<std::uint8_t> raw_bytes(const Matrix& matrix) {
  std::vector<std::uint8_t> bytes;
  const auto append = [&](const auto& view) {
    for (std::size_t i = 0; i < view.extent(0); ++i)
      for (std::size_t j = 0; j < view.extent(1); ++j) bytes.push_back(view(i, j));
  };
  append(matrix.data());
  append(matrix.scales());
  if (matrix.tensor_scale().data() != nullptr) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(matrix.tensor_scale().data());
    bytes.insert(bytes.end(), p, p + sizeof(TensorScalePair));
  }
  return bytes;
}

/// A quantized matrix written out plainly, one block after the other, by the block functions (which have golden tests).
struct Plain {
  std::vector<std::uint8_t> codes;   ///< [rows, packed bytes]
  std::vector<std::uint8_t> scales;  ///< [rows, blocks]
  TensorScalePair pair;
};

template <class Format>
TensorScalePair dynamic_pair(const std::vector<float>& values) {
  float amax = 0.0f;
  for (const float x : values)
    if (std::abs(x) <= float_max) amax = std::max(amax, std::abs(x));
  return pair_from_amax<Format>(amax);
}

template <class Format>
Plain quantize_plainly(const std::vector<float>& values, std::int64_t rows, std::int64_t cols, BlockScaling scaling) {
  Plain result{
      std::vector<std::uint8_t>(static_cast<std::size_t>(rows * packed_bytes<Format>(cols))), {}, scaling.tensor_scale};
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; c += Format::block_size) {
      const int count = static_cast<int>(std::min<std::int64_t>(Format::block_size, cols - c));
      result.scales.push_back(quantize_block<Format>(
          &values[static_cast<std::size_t>(r * cols + c)], count,
          &result.codes[static_cast<std::size_t>(r * packed_bytes<Format>(cols) + packed_bytes<Format>(c))], scaling));
    }
  return result;
}

/// Expects that `matrix` holds exactly `plain`, with zero scales in all padding.
template <class Format, class Space>
void expect_holds(const BlockScaledMatrix<Format, Space>& matrix, const Plain& plain, const std::string& what) {
  const auto bytes = packed_bytes<Format>(matrix.cols());
  for (std::int64_t r = 0; r < matrix.rows(); ++r)
    for (std::int64_t j = 0; j < bytes; ++j)
      ASSERT_EQ(matrix.data()(r, j), plain.codes[static_cast<std::size_t>(r * bytes + j)])
          << what << ": codes, row " << r << ", byte " << j;
  const ScaleMap map = matrix.scale_map();
  for (std::int64_t i = 0; i < map.tile_rows(); ++i)
    for (std::int64_t j = 0; j < map.tile_row_bytes(); ++j) {
      const ScalePosition p = map.position(i * map.tile_row_bytes() + j);
      const bool real = p.row < map.rows && p.col < map.cols;
      ASSERT_EQ(matrix.scales()(i, j), real ? plain.scales[static_cast<std::size_t>(p.row * map.cols + p.col)] : 0)
          << what << ": scale of row " << p.row << ", block " << p.col;
    }
  if constexpr (Format::tensor_scale) {
    ASSERT_EQ(Bits::from_float(matrix.tensor_scale()().decode), Bits::from_float(plain.pair.decode)) << what;
    ASSERT_EQ(Bits::from_float(matrix.tensor_scale()().encode), Bits::from_float(plain.pair.encode)) << what;
  }
}

/// A View [rows, cols] of T in the given layout, filled from row-major values.
template <class T, class Layout>
auto view_of(const std::vector<float>& values, std::int64_t rows, std::int64_t cols) {
  Kokkos::View<T**, Layout, Space> view("values", rows, cols);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c) view(r, c) = static_cast<T>(values[static_cast<std::size_t>(r * cols + c)]);
  return view;
}

/// Calls f with each block format.
template <class F>
void for_each_format(const F& f) {
  f(NVFP4{});
  f(MXFP4{});
  f(MXFP8_E4M3{});
  f(MXFP8_E5M2{});
  f(MXFP6_E2M3{});
  f(MXFP6_E3M2{});
  f(MXFP6_E2M3_Bytes{});
  f(MXFP6_E3M2_Bytes{});
}

/// Expects std::invalid_argument whose text has all the parts.
template <class F>
void expect_refused(const F& f, std::initializer_list<const char*> parts) {
  try {
    f();
    ADD_FAILURE() << "not refused: " << *parts.begin();
  } catch (const std::invalid_argument& error) {
    for (const char* part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << " lacks " << part;
  }
}

}  // namespace microscale::Test

#endif
