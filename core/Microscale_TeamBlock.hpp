#ifndef MICROSCALE_TEAMBLOCK_HPP
#define MICROSCALE_TEAMBLOCK_HPP

#include <Kokkos_Core.hpp>
#include <Microscale_Block.hpp>

#include <cstdint>

// quantize_block and dequantize_block for the threads of a Kokkos team, to be called inside a user's own kernel. The
// one-thread forms, and encode/decode of single elements, are in Microscale_Block.hpp.
namespace microscale {

/// Quantizes one block by the vector lanes of a team thread. load(i) gives value i as float for 0 <= i < count <=
/// F::block_size and is called up to twice an element; packed_bytes<F>(count) bytes are written. Returns the scale byte
/// to every lane; the bytes equal those of the one-thread form. All lanes of the thread must call it; a team barrier
/// (or the end of the kernel) makes the bytes visible to others.
template <BlockFormat F, class TeamMember, class Load>
KOKKOS_FUNCTION std::uint8_t quantize_block(const TeamMember& team, const Load& load, int count, std::uint8_t* bytes,
                                            const BlockScaling& scaling = {}) {
  std::uint32_t amax = 0;
  Kokkos::parallel_reduce(
      Kokkos::ThreadVectorRange(team, count),
      [&](int i, std::uint32_t& largest) {
        const float value = load(i);
        const std::uint32_t bits = block_amax_bits(&value, 1, scaling.non_finite);
        largest = bits > largest ? bits : largest;
      },
      Kokkos::Max<std::uint32_t>(amax));
  const BlockScale scale = block_scale<F>(amax, scaling);
  // Eight elements always fill whole bytes, so each lane packs its own.
  Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, (count + 7) / 8), [&](int group) {
    const int begin = group * 8, length = count - begin < 8 ? count - begin : 8;
    float values[8];
    std::uint8_t codes[8];
    for (int i = 0; i < length; ++i) values[i] = load(begin + i);
    encode_elements<F>(values, length, codes, scale, scaling.non_finite);
    pack_codes<F>(codes, length, bytes + group * code_bits<F>);
  });
  return scale.byte;
}

/// The inverse by the vector lanes of a team thread: store(i, value) is called once for each 0 <= i < count. `decode`
/// is the decode half of the tensor scale.
template <BlockFormat F, class TeamMember, class Store>
KOKKOS_FUNCTION void dequantize_block(const TeamMember& team, const std::uint8_t* bytes, int count,
                                      std::uint8_t scale_byte, const Store& store, float decode = 1.0f) {
  const float scale = F::scale::decode(scale_byte);
  Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, count),
                       [&](int i) { store(i, dequantize_code<F>(read_code<F>(bytes, i), scale, decode)); });
}

}  // namespace microscale

#endif
