#ifndef MICROSCALE_PACKING_HPP
#define MICROSCALE_PACKING_HPP

#include <cstdint>
#include <Microscale_BlockFormat.hpp>

namespace microscale::inline MICROSCALE_ISA {

/// Bits that one element of F takes in memory (4, 6 or 8).
template <BlockFormat F>
inline constexpr int code_bits = bits_per_code(format_id<F>);

/// Bytes of `count` elements of F from the start of a row or block: ceil(count * code_bits / 8).
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr std::int64_t packed_bytes(std::int64_t count) {
  return microscale::packed_bytes(format_id<F>, count);
}

/// The code of element i of a packed row. Reads no byte beyond the one in which the element ends.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr std::uint8_t read_code(const std::uint8_t* row, std::int64_t i) {
  constexpr int w = code_bits<F>;
  if constexpr (w == 8) {
    return row[i];
  } else {
    const std::int64_t byte = (i / 8) * w + ((i % 8) * w) / 8;
    const int shift = static_cast<int>((i % 8) * w % 8);
    unsigned bits = row[byte];
    if (shift + w > 8) bits |= static_cast<unsigned>(row[byte + 1]) << 8;
    return static_cast<std::uint8_t>((bits >> shift) & ((1u << w) - 1));
  }
}

/// Packs `count` codes into packed_bytes<F>(count) bytes; the unused bits of the last byte become zero.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr void pack_codes(const std::uint8_t* codes, int count, std::uint8_t* bytes) {
  constexpr int w = code_bits<F>;
  if constexpr (w == 8) {
    for (int i = 0; i < count; ++i) bytes[i] = codes[i];
  } else if constexpr (w == 4) {
    for (int i = 0; i + 1 < count; i += 2) bytes[i / 2] = static_cast<std::uint8_t>(codes[i] | (codes[i + 1] << 4));
    if (count % 2 != 0) bytes[count / 2] = codes[count - 1];
  } else {
    unsigned bits = 0;
    int held = 0;
    for (int i = 0; i < count; ++i) {
      bits |= static_cast<unsigned>(codes[i]) << held;
      for (held += w; held >= 8; held -= 8, bits >>= 8) *bytes++ = static_cast<std::uint8_t>(bits);
    }
    if (held > 0) *bytes = static_cast<std::uint8_t>(bits);
  }
}

/// The inverse of pack_codes.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr void unpack_codes(const std::uint8_t* bytes, int count, std::uint8_t* codes) {
  constexpr int w = code_bits<F>;
  if constexpr (w == 4) {
    for (int i = 0; i + 1 < count; i += 2) {
      codes[i] = bytes[i / 2] & 0x0f;
      codes[i + 1] = static_cast<std::uint8_t>(bytes[i / 2] >> 4);
    }
    if (count % 2 != 0) codes[count - 1] = bytes[count / 2] & 0x0f;
  } else {
    for (int i = 0; i < count; ++i) codes[i] = read_code<F>(bytes, i);
  }
}

}  // namespace microscale::inline MICROSCALE_ISA

#endif
