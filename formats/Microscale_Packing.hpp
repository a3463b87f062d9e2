#ifndef MICROSCALE_PACKING_HPP
#define MICROSCALE_PACKING_HPP

#include <Microscale_BlockFormat.hpp>

#include <bit>
#include <cstdint>

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

// Not Impl: that one lies outside of the inline namespace, in core and dispatch, and opening both would confuse them.
namespace Detail {

/// Bits that hold the lowest `bits` bits of the even ones among the 64 / lane lanes of a word.
MICROSCALE_FUNCTION constexpr std::uint64_t even_lanes(int lane, int bits) {
  std::uint64_t mask = 0;
  for (int i = 0; i < 64; i += 2 * lane) mask |= ((std::uint64_t{1} << bits) - 1) << i;
  return mask;
}

/// Moves each odd lane down against the codes in the even lane below it, for codes of W bits, one a byte to start with.
template <int W, int Lane>
MICROSCALE_FUNCTION constexpr std::uint64_t close_lanes(std::uint64_t x) {
  constexpr int held = W * Lane / 8;
  constexpr std::uint64_t even = even_lanes(Lane, held);
  return (x & even) | ((x >> (Lane - held)) & (even << held));
}

/// The inverse of close_lanes.
template <int W, int Lane>
MICROSCALE_FUNCTION constexpr std::uint64_t open_lanes(std::uint64_t x) {
  constexpr int held = W * Lane / 8;
  constexpr std::uint64_t even = even_lanes(Lane, held);
  return (x & even) | ((x & (even << held)) << (Lane - held));
}

/// Eight codes of W bits, one in each byte, side by side.
template <int W>
MICROSCALE_FUNCTION constexpr std::uint64_t close_codes(std::uint64_t x) {
  return close_lanes<W, 32>(close_lanes<W, 16>(close_lanes<W, 8>(x)));
}
template <int W>
MICROSCALE_FUNCTION constexpr std::uint64_t open_codes(std::uint64_t x) {
  return open_lanes<W, 8>(open_lanes<W, 16>(open_lanes<W, 32>(x)));
}

/// Bytes as a word, the first one lowest.
MICROSCALE_FUNCTION constexpr std::uint64_t load_word(const std::uint8_t* bytes, int count) {
  if constexpr (std::endian::native == std::endian::little) {
    struct Eight {
      std::uint8_t bytes[8];
    };
    if (count == 8)  // one load, where the compiler would make eight of the loop below
      return __builtin_bit_cast(
          std::uint64_t, Eight{{bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]}});
  }
  std::uint64_t word = 0;
  for (int i = 0; i < count; ++i) word |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  return word;
}
MICROSCALE_FUNCTION constexpr void store_word(std::uint64_t word, std::uint8_t* bytes, int count) {
  for (int i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(word >> (8 * i));
}

}  // namespace Detail

/// Packs `count` codes into packed_bytes<F>(count) bytes; the unused bits of the last byte become zero.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr void pack_codes(const std::uint8_t* codes, int count, std::uint8_t* bytes) {
  constexpr int w = code_bits<F>;
  if constexpr (w == 8) {
    for (int i = 0; i < count; ++i) bytes[i] = codes[i];
  } else {
    const int groups = count / 8, left = count % 8;
    for (int group = 0; group < groups; ++group)
      Detail::store_word(Detail::close_codes<w>(Detail::load_word(codes + 8 * group, 8)), bytes + w * group, w);
    Detail::store_word(Detail::close_codes<w>(Detail::load_word(codes + 8 * groups, left)), bytes + w * groups,
                       static_cast<int>(packed_bytes<F>(left)));
  }
}

/// The inverse of pack_codes.
template <BlockFormat F>
MICROSCALE_FUNCTION constexpr void unpack_codes(const std::uint8_t* bytes, int count, std::uint8_t* codes) {
  constexpr int w = code_bits<F>;
  if constexpr (w == 8) {
    for (int i = 0; i < count; ++i) codes[i] = bytes[i];
  } else {
    const int groups = count / 8, left = count % 8;
    for (int group = 0; group < groups; ++group)
      Detail::store_word(Detail::open_codes<w>(Detail::load_word(bytes + w * group, w)), codes + 8 * group, 8);
    const std::uint64_t rest = Detail::load_word(bytes + w * groups, static_cast<int>(packed_bytes<F>(left)));
    Detail::store_word(Detail::open_codes<w>(rest), codes + 8 * groups, left);
  }
}

}  // namespace microscale::inline MICROSCALE_ISA

#endif
