#ifndef MICROSCALE_TESTS_AVX512OPERANDS_HPP
#define MICROSCALE_TESTS_AVX512OPERANDS_HPP

#include <Microscale_BlockFormat.hpp>
#include <Microscale_Half.hpp>
#include <Microscale_Interface.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <vector>

// Operands without Kokkos for tests of the AVX-512 kernels, and the product as docs/numerics.md, section 8, has it, one
// element at a time and bit by bit.
namespace microscale::Test {

struct Dice {
  std::mt19937_64 engine;
  std::uint64_t below(std::uint64_t n) { return engine() % n; }
};

/// How wild values and scales are: within a few binades, or anything, NaN now and then.
enum class Wildness { moderate, extreme };

inline float element_value(ElementId id, std::uint8_t code) {
  if (id == E2M1::id) return E2M1::decode(code);
  if (id == E2M3::id) return E2M3::decode(code);
  if (id == E3M2::id) return E3M2::decode(code);
  if (id == E4M3::id) return E4M3::decode(code);
  return E5M2::decode(code);
}

/// Memory aligned to 64, as prepared forms are.
struct AlignedBytes {
  struct Free {
    void operator()(std::uint8_t* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<std::uint8_t[], Free> bytes;
  explicit AlignedBytes(std::int64_t n)
      : bytes(static_cast<std::uint8_t*>(::operator new (static_cast<std::size_t>(n), std::align_val_t{64}))) {}
};

/// One matrix and its memory. Between rows, and in scales that belong to no row, there is noise.
class TestOperand {
 public:
  /// Block formats.
  TestOperand(FormatId format, std::int64_t rows, std::int64_t cols, ScaleLayout layout, Wildness wildness, Dice& dice)
      : blocks((cols + format.block_size - 1) / format.block_size) {
    const std::int64_t spare = static_cast<std::int64_t>(dice.below(9));
    operand.format = format;
    operand.rows = rows;
    operand.cols = cols;
    operand.row_stride = packed_bytes(format, cols) + spare;
    const ScaleMap map{layout, rows, blocks};
    operand.scale_layout = layout;
    operand.scale_pitch = map.tile_row_bytes() + 4 * spare;
    operand.scale_tile_rows = map.tile_rows();
    m_data.assign(static_cast<std::size_t>(rows * operand.row_stride), 0xa5);
    m_scales.assign(static_cast<std::size_t>(operand.scale_tile_rows * operand.scale_pitch), 0xff);
    operand.data = m_data.data();
    operand.scales = m_scales.data();
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memset(row(r), 0, static_cast<std::size_t>(packed_bytes(format, cols)));
      for (std::int64_t b = 0; b < blocks; ++b) fill_block(r, b, wildness, dice);
    }
  }
  /// Plain types, rows or columns being contiguous.
  TestOperand(FormatId format, std::int64_t rows, std::int64_t cols, bool columns_contiguous, Wildness wildness,
              Dice& dice)
      : blocks(0) {
    operand.format = format;
    operand.rows = rows;
    operand.cols = cols;
    operand.row_stride = columns_contiguous ? 1 : cols + 3;
    operand.col_stride = columns_contiguous ? rows + 1 : 1;
    m_data.assign(static_cast<std::size_t>((rows + 1) * (cols + 3)) * (format == float32_id ? 4 : 2), 0xff);
    operand.data = m_data.data();
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t k = 0; k < cols; ++k) set(r, k, random_value(wildness, dice));
  }

  float value(std::int64_t r, std::int64_t k) const {
    const FormatId f = operand.format;
    if (f.block_size > 0) return element_value(f.element, code(r, k));
    const std::int64_t i = r * operand.row_stride + k * operand.col_stride;
    if (f == float32_id) return static_cast<const float*>(operand.data)[i];
    if (f == float16_id) return static_cast<float>(static_cast<const half*>(operand.data)[i]);
    return static_cast<float>(static_cast<const bf16*>(operand.data)[i]);
  }
  void set(std::int64_t r, std::int64_t k, float x) {
    const std::int64_t i = r * operand.row_stride + k * operand.col_stride;
    if (operand.format == float32_id)
      static_cast<float*>(operand.data)[i] = x;
    else if (operand.format == float16_id)
      static_cast<half*>(operand.data)[i] = half(x);
    else
      static_cast<bf16*>(operand.data)[i] = bf16(x);
  }
  std::uint8_t& scale(std::int64_t r, std::int64_t block) {
    const ScaleMap map{operand.scale_layout, operand.rows, blocks};
    return m_scales[static_cast<std::size_t>(tile_row(operand.scale_layout, r) * operand.scale_pitch +
                                             map.offset_in_tile_row(r, block))];
  }
  std::uint8_t scale(std::int64_t r, std::int64_t block) const {
    return const_cast<TestOperand*>(this)->scale(r, block);
  }

  /// The operand in the interleaved form only: groups of 16 rows, dword by dword, then their scales, block by block.
  Operand prepared() {
    const FormatId f = operand.format;
    const std::int64_t groups = (operand.rows + 15) / 16, real = packed_bytes(f, operand.cols);
    const std::int64_t padded = (operand.cols + 31) / 32 * 32 * bits_per_code(f) / 8;
    m_prepared = AlignedBytes(std::max<std::int64_t>(64, groups * 16 * (padded + blocks)));
    std::uint8_t* bytes = m_prepared.bytes.get();
    for (std::int64_t i = 0; i < groups * 16; ++i) {
      const bool exists = i < operand.rows;
      for (std::int64_t j = 0; j < padded; ++j)
        bytes[i / 16 * padded * 16 + j / 4 * 64 + i % 16 * 4 + j % 4] = exists && j < real ? row(i)[j] : 0;
      for (std::int64_t b = 0; b < blocks; ++b)
        bytes[groups * padded * 16 + (i / 16 * blocks + b) * 16 + i % 16] = exists                       ? scale(i, b)
                                                                            : f.scale == ScaleType::e8m0 ? 127
                                                                                                         : 0x38;
    }
    Operand result = operand;
    result.data = nullptr;
    result.scales = nullptr;
    result.prepared = bytes;
    return result;
  }

  Operand operand{};
  std::int64_t blocks;

 private:
  std::uint8_t* row(std::int64_t r) { return m_data.data() + r * operand.row_stride; }
  std::uint8_t code(std::int64_t r, std::int64_t k) const {
    const std::uint8_t* bytes = m_data.data() + r * operand.row_stride;
    const int width = bits_per_code(operand.format);
    unsigned result = 0;
    for (int i = 0; i < width; ++i) {
      const std::int64_t bit = k * width + i;
      result |= (bytes[bit / 8] >> (bit % 8) & 1u) << i;
    }
    return static_cast<std::uint8_t>(result);
  }
  void fill_block(std::int64_t r, std::int64_t b, Wildness wildness, Dice& dice) {
    const FormatId f = operand.format;
    const int width = bits_per_code(f), bits = 1 + f.element.exponent_bits + f.element.mantissa_bits;
    const bool zeros = dice.below(16) == 0, wild = wildness == Wildness::extreme;
    for (std::int64_t k = b * f.block_size; k < std::min<std::int64_t>(operand.cols, (b + 1) * f.block_size); ++k) {
      auto code = static_cast<std::uint8_t>(zeros ? 0 : dice.below(std::uint64_t{1} << bits));
      if (!std::isfinite(element_value(f.element, code)) && !(wild && dice.below(64) == 0)) code = 0;
      for (int i = 0; i < width; ++i) {
        const std::int64_t bit = k * width + i;
        row(r)[bit / 8] = static_cast<std::uint8_t>(row(r)[bit / 8] | (code >> i & 1) << (bit % 8));
      }
    }
    std::uint64_t byte = 0;
    if (f.scale == ScaleType::ue4m3) {
      byte = wild && dice.below(300) == 0 ? 0x7f : dice.below(0x7f);
      if (wild) byte |= dice.below(2) << 7;  // is ignored
    } else {
      const std::uint64_t throw_ = wild ? dice.below(64) : 64;
      byte = throw_ == 0 ? 0 : throw_ == 1 ? 254 : throw_ < 16 ? dice.below(255) : 119 + dice.below(17);
      if (throw_ == 16 && dice.below(8) == 0) byte = 255;
    }
    scale(r, b) = static_cast<std::uint8_t>(zeros && dice.below(2) == 0 ? 0 : byte);
  }
  static float random_value(Wildness wildness, Dice& dice) {
    const float x = static_cast<float>(dice.below(1 << 24)) * 0x1p-22f - 2.0f;
    if (wildness == Wildness::moderate) return x;
    switch (dice.below(64)) {
      case 0:
        return x * 0x1p-120f;
      case 1:
        return x * 0x1p100f;
      case 2:
        return static_cast<float>(dice.below(1000)) * 0x1p-149f;
      case 3:
        return dice.below(16) == 0 ? std::numeric_limits<float>::infinity() : 0.0f;
      case 4:
        return dice.below(16) == 0 ? std::numeric_limits<float>::quiet_NaN() : -0.0f;
      case 5:
        return x * 0x1p-15f;
      case 6:
        return x * 0x1p-24f;
      default:
        return x;
    }
  }

  std::vector<std::uint8_t> m_data, m_scales;
  AlignedBytes m_prepared{64};
};

/// An element of A B^T without tensor scales: as the reference rounds it, and exactly, with the sum of magnitudes.
struct ExpectedElement {
  float reference = 0.0f;
  double exact = 0.0, magnitude = 0.0;
};

inline ExpectedElement expected_element(const TestOperand& a, std::int64_t row, const TestOperand& b,
                                        std::int64_t col) {
  ExpectedElement result;
  for (std::int64_t k = 0; k < a.operand.cols;) {
    std::int64_t end = a.operand.cols;
    float factor = 1.0f;
    int exponent = 0;
    for (const auto& [m, r] : {std::pair(&a, row), std::pair(&b, col)}) {
      const FormatId f = m->operand.format;
      if (f.block_size == 0) continue;
      end = std::min<std::int64_t>(end, (k / f.block_size + 1) * f.block_size);
      const std::uint8_t byte = m->scale(r, k / f.block_size);
      if (f.scale == ScaleType::ue4m3)
        factor *= E4M3::decode(byte & 0x7f);
      else if (byte == 255)
        factor = std::numeric_limits<float>::quiet_NaN();
      else
        exponent += byte - 127;
    }
    float dot = 0.0f;
    for (; k < end; ++k) {
      const float x = a.value(row, k), y = b.value(col, k);
      dot = std::fmaf(x, y, dot);
      const double product = std::ldexp(static_cast<double>(x) * y * factor, exponent);
      result.exact += product;
      result.magnitude += std::abs(product);
    }
    result.reference = result.reference + std::scalbn(dot * factor, exponent);
  }
  return result;
}

/// The same bits, any NaN being any other.
inline bool same_bits(float x, float y) {
  return std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
}

}  // namespace microscale::Test

#endif
