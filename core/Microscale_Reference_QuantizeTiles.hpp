#ifndef MICROSCALE_REFERENCE_QUANTIZETILES_HPP
#define MICROSCALE_REFERENCE_QUANTIZETILES_HPP

#include <Kokkos_Core.hpp>
#include <Microscale_Concepts.hpp>
#include <Microscale_Interface.hpp>
#include <Microscale_MatrixHandle.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

// The quantization kernels of devices. A team converts a tile of a matrix: neighbouring threads read and write
// neighbouring addresses, whichever way blocks and memory run, and what they hold changes hands in team scratch. Bit for
// bit they do what the kernels of the host do.
namespace microscale::Impl {

/// Threads of a team. (On the host, where tests run these kernels, there is no more than one for sure.)
template <class Exec>
inline constexpr int team_threads = is_host<Exec> ? 1 : 256;

template <class Exec>
using Teams = Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<256, 3>>;

/// (Hosts keep 32 KiB at most at level 0.)
template <class Exec>
inline constexpr int scratch_level = is_host<Exec> ? 1 : 0;

template <class Exec>
Teams<Exec> teams(const Exec& exec, std::int64_t count, std::size_t scratch_bytes) {
  return Teams<Exec>(exec, static_cast<int>(count), team_threads<Exec>, 1)
      .set_scratch_size(scratch_level<Exec>, Kokkos::PerTeam(static_cast<int>(scratch_bytes)));
}

/// `count` values of T in the scratch of a team, aligned to 16 bytes.
template <class T, class Team>
KOKKOS_FUNCTION T* scratch_array(const Team& team, int count) {
  return static_cast<T*>(
      team.team_scratch(int{scratch_level<typename Team::execution_space>}).get_shmem_aligned(count * sizeof(T), 16));
}
/// What scratch_array takes at most.
constexpr std::size_t scratch_array_bytes(std::size_t bytes) { return (bytes + 15) / 16 * 16 + 16; }

/// *amax = max(*amax, value), by many threads at once.
KOKKOS_INLINE_FUNCTION void raise_maximum(float* amax, float value) {
  if (Kokkos::atomic_load(amax) < value) Kokkos::atomic_max(amax, value);
}

/// Four values that are loaded and stored together.
template <class T>
struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Four {
  T x[4];
};

/// Fours of a strided matrix, each of neighbours in memory, at equal distances (elements).
template <class T>
struct FoursAlong {
  using value_type = std::remove_const_t<T>;

  T* first;
  std::int64_t stride, step;
  bool together;  ///< contiguous and aligned

  KOKKOS_INLINE_FUNCTION FoursAlong(T* p, std::int64_t stride_in_four, std::int64_t step_to_next)
      : first(p),
        stride(stride_in_four),
        step(step_to_next),
        together(stride == 1 && (reinterpret_cast<std::uintptr_t>(p) | static_cast<std::uintptr_t>(step) * sizeof(T)) %
                                        alignof(Four<value_type>) ==
                                    0) {}

  KOKKOS_INLINE_FUNCTION void load(int i, float* values) const {
    Four<value_type> four;
    if (together)
      four = *reinterpret_cast<const Four<value_type>*>(first + i * step);
    else
      for (int q = 0; q < 4; ++q) four.x[q] = first[i * step + q * stride];
    for (int q = 0; q < 4; ++q) values[q] = static_cast<float>(four.x[q]);
  }
  KOKKOS_INLINE_FUNCTION void store(int i, const float* values) const {
    Four<value_type> four;
    for (int q = 0; q < 4; ++q) four.x[q] = static_cast<T>(values[q]);
    if (together)
      *reinterpret_cast<Four<value_type>*>(first + i * step) = four;
    else
      for (int q = 0; q < 4; ++q) first[i * step + q * stride] = four.x[q];
  }
};

/// A matrix cut into tiles of 64 x 128 elements. 256 items of work, one a thread on devices, share a tile: each has
/// fours of elements that are neighbours in memory, and neighbouring items have neighbouring ones.
struct ElementTiles {
  static constexpr int rows = 64, cols = 128, size = rows * cols;
  static constexpr int items = 256, fours = size / items / 4;  ///< of an item

  struct Tile {
    std::int64_t row, col;
    bool whole;  ///< all of its elements exist
  };

  /// The elements of an item: four i begins at (row + i * row_step, col + i * col_step) and runs along rows or columns.
  template <bool RowsFastest>
  struct Walk {
    static constexpr bool rows_fastest = RowsFastest;
    static constexpr int row_step = RowsFastest ? 0 : items * 4 / cols, col_step = RowsFastest ? items * 4 / rows : 0;
    int row, col;

    KOKKOS_INLINE_FUNCTION explicit Walk(int item)
        : row(RowsFastest ? item % (rows / 4) * 4 : item / (cols / 4)),
          col(RowsFastest ? item / (rows / 4) : item % (cols / 4) * 4) {}
    KOKKOS_INLINE_FUNCTION int row_of(int i, int q) const { return row + i * row_step + (RowsFastest ? q : 0); }
    KOKKOS_INLINE_FUNCTION int col_of(int i, int q) const { return col + i * col_step + (RowsFastest ? 0 : q); }
    /// The item's elements of a strided matrix.
    template <class T>
    KOKKOS_INLINE_FUNCTION FoursAlong<T> fours_of(const StridedMatrix<T>& m, const Tile& tile) const {
      return {&m(tile.row + row, tile.col + col), RowsFastest ? m.row_stride : m.col_stride,
              row_step * m.row_stride + col_step * m.col_stride};
    }
  };

  bool rows_fastest;  ///< in memory
  std::int64_t matrix_rows, matrix_cols;
  std::int64_t down, across;

  ElementTiles(std::int64_t all_rows, std::int64_t all_cols, std::int64_t padded_rows, std::int64_t padded_cols,
               bool rows_are_fastest)
      : rows_fastest(rows_are_fastest),
        matrix_rows(all_rows),
        matrix_cols(all_cols),
        down((padded_rows + rows - 1) / rows),
        across((padded_cols + cols - 1) / cols) {}

  std::int64_t count() const { return down * across; }
  KOKKOS_FUNCTION Tile operator[](int index) const {
    const int d = static_cast<int>(down), a = static_cast<int>(across);  // as their product, which counts teams
    const std::int64_t row = std::int64_t{rows_fastest ? index % d : index / a} * rows;
    const std::int64_t col = std::int64_t{rows_fastest ? index / d : index % a} * cols;
    return {row, col, row + rows <= matrix_rows && col + cols <= matrix_cols};
  }
  KOKKOS_FUNCTION bool exists(const Tile& tile, int row, int col) const {
    return tile.row + row < matrix_rows && tile.col + col < matrix_cols;
  }

  /// Calls f(walk) for each item of a tile.
  template <class Team, class F>
  KOKKOS_INLINE_FUNCTION void for_each_item(const Team& team, const F& f) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, items), [&](int item) {
      if (rows_fastest)
        f(Walk<true>(item));
      else
        f(Walk<false>(item));
    });
  }

  /// Calls f(i, four values) for the fours of an item of a source. Elements that do not exist are zeros.
  template <class Source, class W, class F>
  KOKKOS_INLINE_FUNCTION void read(const Source& source, const Tile& tile, const W& walk, const F& f) const {
    constexpr int batch = 4;  // fours that are on their way from memory at a time
    if constexpr (requires { source.matrix.row_stride; }) {
      if (tile.whole) {
        const auto from = walk.fours_of(source.matrix, tile);
        for (int i = 0; i < fours; i += batch) {
          float values[4 * batch];
          for (int j = 0; j < batch; ++j) from.load(i + j, values + 4 * j);
          for (int j = 0; j < batch; ++j) f(i + j, values + 4 * j);
        }
        return;
      }
    }
    for (int i = 0; i < fours; ++i) {
      float values[4];
      for (int q = 0; q < 4; ++q) {
        const int r = walk.row_of(i, q), c = walk.col_of(i, q);
        values[q] = exists(tile, r, c) ? source(tile.row + r, tile.col + c) : 0.0f;
      }
      f(i, values);
    }
  }
};

/// Largest finite magnitude of a source, as a running maximum in *amax (0 or more beforehand).
template <class Source>
struct AmaxTiles {
  Source source;
  float* amax;
  ElementTiles tiles;

  AmaxTiles(const Source& s, float* result)
      : source(s), amax(result), tiles(s.rows, s.cols, s.rows, s.cols, s.rows_fastest()) {}

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto tile = tiles[team.league_rank()];
    std::int32_t mine = 0, largest = 0;
    tiles.for_each_item(team, [&](const auto& walk) {
      tiles.read(source, tile, walk, [&](int, const float* values) {
        for (int q = 0; q < 4; ++q) {
          const auto mag = static_cast<std::int32_t>(Bits::from_float(values[q]) & Bits::magnitude);
          const std::int32_t finite = mag < static_cast<std::int32_t>(Bits::infinity) ? mag : 0;
          mine = finite > mine ? finite : mine;
        }
      });
    });
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, team.team_size()),
        [&](int, std::int32_t& found) { found = mine > found ? mine : found; }, Kokkos::Max<std::int32_t>(largest));
    Kokkos::single(Kokkos::PerTeam(team),
                   [&] { raise_maximum(amax, Bits::to_float(static_cast<std::uint32_t>(largest))); });
  }
};

/// Codes of a tile in scratch, row by row as they lie in memory, and the way between both.
template <class Format>
struct CodeTile {
  static constexpr int row_bytes = ElementTiles::cols * code_bits<Format> / 8, row_words = row_bytes / 4;
  static constexpr int pitch = row_words + 1;  ///< odd: equal words of neighbouring rows are in different banks
  static constexpr int words = ElementTiles::rows * pitch;

  std::uint32_t* codes;

  /// The code of an element. (The word after the last of a row is there, but no bit of it is used.)
  KOKKOS_FUNCTION std::uint8_t operator()(int row, int col) const {
    constexpr int w = code_bits<Format>;
    const std::uint32_t* word = codes + row * pitch + col * w / 32;
    std::uint32_t bits = *word >> (col * w % 32);
    if constexpr (32 % w != 0)
      if (col * w % 32 + w > 32) bits |= word[1] << (32 - col * w % 32);
    return static_cast<std::uint8_t>(bits & ((1u << w) - 1));
  }

  /// Four codes of a row, from a column that is a multiple of 4.
  KOKKOS_INLINE_FUNCTION void four(int row, int col, std::uint8_t* four_codes) const {
    constexpr int w = code_bits<Format>;
    const std::uint32_t* word = codes + row * pitch + col * w / 32;
    const int shift = col * w % 32;
    std::uint32_t bits = *word >> shift;
    if constexpr (32 % (4 * w) != 0)
      if (shift + 4 * w > 32) bits |= word[1] << (32 - shift);
    for (int q = 0; q < 4; ++q) four_codes[q] = static_cast<std::uint8_t>((bits >> (q * w)) & ((1u << w) - 1));
  }

  /// Calls f(word in scratch, its bytes in the matrix, how many of them exist) for all words of the tile.
  template <class Team, class F>
  KOKKOS_FUNCTION void for_each_word(const Team& team, const MatrixHandle<Format>& m, const ElementTiles::Tile& tile,
                                     const F& f) const {
    const std::int64_t offset = packed_bytes<Format>(tile.col), valid = packed_bytes<Format>(m.cols) - offset;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, ElementTiles::rows * row_words), [&](int i) {
      const int row = i / row_words, word = i % row_words;
      if (tile.row + row >= m.rows || 4 * word >= valid) return;
      f(codes[row * pitch + word], m.row(tile.row + row) + offset + 4 * word,
        4 * word + 4 <= valid ? 4 : static_cast<int>(valid - 4 * word));
    });
  }
  /// Calls f(row, word, bytes) for all groups of 4 words of a tile whose elements and memory are such that 16 bytes are
  /// moved at once; false if they are not.
  template <class Team, class F>
  KOKKOS_FUNCTION static bool for_each_group(const Team& team, const MatrixHandle<Format>& m,
                                             const ElementTiles::Tile& tile, const F& f) {
    std::uint8_t* first = m.row(tile.row) + packed_bytes<Format>(tile.col);
    const std::int64_t row_pitch = m.row_pitch;
    if (!tile.whole || (reinterpret_cast<std::uintptr_t>(first) | static_cast<std::uintptr_t>(row_pitch)) % 16 != 0)
      return false;
    constexpr int groups = row_words / 4;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, ElementTiles::rows * groups), [&](int i) {
      f(i / groups, i % groups * 4, first + i / groups * row_pitch + i % groups * 16);
    });
    return true;
  }
  KOKKOS_FUNCTION static bool is_whole_word(const std::uint8_t* bytes, int count) {
    return count == 4 && reinterpret_cast<std::uintptr_t>(bytes) % 4 == 0;
  }
  template <class Team>
  KOKKOS_FUNCTION void load(const Team& team, const MatrixHandle<Format>& m, const ElementTiles::Tile& tile) const {
    if (for_each_group(team, m, tile, [&](int row, int word, const std::uint8_t* bytes) {
          const auto four = *reinterpret_cast<const Four<std::uint32_t>*>(bytes);
          for (int q = 0; q < 4; ++q) codes[row * pitch + word + q] = four.x[q];
        }))
      return;
    for_each_word(team, m, tile, [](std::uint32_t& word, const std::uint8_t* bytes, int count) {
      word = is_whole_word(bytes, count) ? *reinterpret_cast<const std::uint32_t*>(bytes)
                                         : static_cast<std::uint32_t>(Detail::load_word(bytes, count));
    });
  }
  template <class Team>
  KOKKOS_FUNCTION void store(const Team& team, const MatrixHandle<Format>& m, const ElementTiles::Tile& tile) const {
    for_each_word(team, m, tile, [](std::uint32_t word, std::uint8_t* bytes, int count) {
      if (is_whole_word(bytes, count))
        *reinterpret_cast<std::uint32_t*>(bytes) = word;
      else
        Detail::store_word(word, bytes, count);
    });
  }
};

/// Whether tiles can be cut into whole blocks of a format.
template <class Format>
inline constexpr bool fits_element_tiles = ElementTiles::cols % Format::block_size == 0;

/// Scratch of a tile of values, its codes and scales.
template <class Format>
struct QuantizeTiles {
  // Values lie in scratch as in memory. Pitches are such that fours of neighbouring rows are in different banks.
  static constexpr int row_pitch = ElementTiles::cols + 4, col_pitch = ElementTiles::rows + 4;
  static constexpr int value_count = ElementTiles::cols * col_pitch > ElementTiles::rows* row_pitch
                                         ? ElementTiles::cols* col_pitch
                                         : ElementTiles::rows* row_pitch;
  static constexpr int blocks = ElementTiles::cols / Format::block_size;
  static constexpr int unit = Format::block_size < 32 ? 32 : Format::block_size;  ///< what one item quantizes
  static constexpr std::size_t scratch_bytes = scratch_array_bytes(value_count * sizeof(float)) +
                                               scratch_array_bytes(CodeTile<Format>::words * sizeof(std::uint32_t)) +
                                               scratch_array_bytes(ElementTiles::rows * blocks);
};

/// One team is one tile, padding included (its scales are 0 and it has no codes).
template <class Format, class Source>
struct QuantizeTileKernel : QuantizeTiles<Format> {
  using Base = QuantizeTiles<Format>;
  using Base::blocks, Base::row_pitch, Base::col_pitch, Base::unit;

  Source source;
  MatrixHandle<Format> destination;
  QuantizeData options;
  ElementTiles tiles;

  QuantizeTileKernel(const Source& s, const MatrixHandle<Format>& d, const QuantizeData& o)
      : source(s),
        destination(d),
        options(o),
        tiles(d.rows, d.cols, d.map.tile_rows() * scale_tile(d.map.layout).rows,
              d.map.padded_cols() * Format::block_size, s.rows_fastest()) {}

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto tile = tiles[team.league_rank()];
    float* values = scratch_array<float>(team, Base::value_count);
    const CodeTile<Format> codes{scratch_array<std::uint32_t>(team, CodeTile<Format>::words)};
    std::uint8_t* scales = scratch_array<std::uint8_t>(team, ElementTiles::rows * blocks);

    if (tile.row < destination.rows && tile.col < destination.cols) {
      tiles.for_each_item(team, [&](const auto& walk) {  // short blocks are filled up with zeros, which change nothing
        constexpr bool rows_fastest = std::remove_cvref_t<decltype(walk)>::rows_fastest;
        float* to = values + (rows_fastest ? walk.col * col_pitch + walk.row : walk.row * row_pitch + walk.col);
        constexpr int step = rows_fastest ? std::remove_cvref_t<decltype(walk)>::col_step * col_pitch
                                          : std::remove_cvref_t<decltype(walk)>::row_step * row_pitch;
        tiles.read(source, tile, walk, [&](int i, const float* four) {
          *reinterpret_cast<Four<float>*>(to + i * step) = {{four[0], four[1], four[2], four[3]}};
        });
      });
      team.team_barrier();
      if (tiles.rows_fastest)
        quantize_units<true>(team, values, codes, scales);
      else
        quantize_units<false>(team, values, codes, scales);
      team.team_barrier();
      codes.store(team, destination, tile);
    }
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, ElementTiles::rows * blocks), [&](int i) {
      const std::int64_t r = tile.row + i / blocks, b = tile.col / Format::block_size + i % blocks;
      if (r >= destination.map.tile_rows() * scale_tile(destination.map.layout).rows ||
          b >= destination.map.padded_cols())
        return;
      destination.scale(r, b) = r < destination.rows && b < destination.map.cols ? scales[i] : std::uint8_t{0};
    });
  }

 private:
  template <bool RowsFastest, class Team>
  KOKKOS_INLINE_FUNCTION void quantize_units(const Team& team, const float* values, const CodeTile<Format>& codes,
                                             std::uint8_t* scales) const {
    const TensorScalePair pair = destination.pair();
    const bool strict = options.non_finite == NonFinite::strict;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, ElementTiles::size / unit), [&](int i) {
      const int row = i % ElementTiles::rows, first = i / ElementTiles::rows * unit;
      const float* from = values + (RowsFastest ? first * col_pitch + row : row * row_pitch + first);
      std::uint32_t* to = codes.codes + row * CodeTile<Format>::pitch + first * code_bits<Format> / 32;
      std::uint8_t* scale_bytes = scales + row * blocks + first / Format::block_size;
      if (strict)  // as a constant
        quantize_unit<RowsFastest>(from, to, scale_bytes, {options.scale_rule, NonFinite::strict, pair});
      else
        quantize_unit<RowsFastest>(from, to, scale_bytes, {options.scale_rule, NonFinite::saturate, pair});
    });
  }

  /// The blocks of a unit, which are whole.
  template <bool RowsFastest>
  KOKKOS_INLINE_FUNCTION static void quantize_unit(const float* from, std::uint32_t* to, std::uint8_t* scale_bytes,
                                                   const BlockScaling& scaling) {
    constexpr int size = Format::block_size, w = code_bits<Format>;
    using Word = std::conditional_t<w % 4 == 0, std::uint32_t, std::uint16_t>;  // eight codes are whole ones
    constexpr int word_bits = 8 * sizeof(Word);
    auto* out = reinterpret_cast<Word*>(to);
    for (int b = 0; b < unit / size; ++b) {
      float values[size];
      if constexpr (RowsFastest)
        for (int i = 0; i < size; ++i) values[i] = from[(b * size + i) * col_pitch];
      else
        for (int i = 0; i < size; i += 4) {
          const auto four = *reinterpret_cast<const Four<float>*>(from + b * size + i);
          for (int q = 0; q < 4; ++q) values[i + q] = four.x[q];
        }
      const BlockScale scale = block_scale<Format>(block_amax_bits(values, size, scaling.non_finite), scaling);
      scale_bytes[b] = scale.byte;
      for (int i = 0; i < size; i += 8) {
        std::uint8_t codes[8];
        encode_elements<Format>(values + i, 8, codes, scale, scaling.non_finite);
        std::uint64_t packed = 0;
        for (int j = 0; j < 8; ++j) packed |= static_cast<std::uint64_t>(codes[j]) << (j * w);
        for (int j = 0; j < 8 * w / word_bits; ++j) *out++ = static_cast<Word>(packed >> (j * word_bits));
      }
    }
  }
};

/// One team is one tile.
template <class Format, class T>
struct DequantizeTileKernel {
  static constexpr int blocks = ElementTiles::cols / Format::block_size;
  static constexpr std::size_t scratch_bytes = scratch_array_bytes(CodeTile<Format>::words * sizeof(std::uint32_t)) +
                                               scratch_array_bytes(ElementTiles::rows * blocks * sizeof(float));

  MatrixHandle<Format> source;
  StridedMatrix<T> destination;
  ElementTiles tiles;

  DequantizeTileKernel(const MatrixHandle<Format>& s, const StridedMatrix<T>& d)
      : source(s), destination(d), tiles(s.rows, s.cols, s.rows, s.cols, d.row_stride < d.col_stride) {}

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto tile = tiles[team.league_rank()];
    const CodeTile<Format> codes{scratch_array<std::uint32_t>(team, CodeTile<Format>::words)};
    float* scales = scratch_array<float>(team, ElementTiles::rows * blocks);
    codes.load(team, source, tile);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, ElementTiles::rows * blocks), [&](int i) {
      const std::int64_t r = tile.row + i / blocks, b = tile.col / Format::block_size + i % blocks;
      // Column by column, so that neighbouring rows, which neighbouring threads may take, are in different banks.
      if (r < source.rows && b < source.map.cols)
        scales[i % blocks * ElementTiles::rows + i / blocks] = Format::scale::decode(source.scale(r, b));
    });
    team.team_barrier();
    const float decode = source.pair().decode;
    tiles.for_each_item(team, [&](const auto& walk) {
      constexpr bool rows_fastest = std::remove_cvref_t<decltype(walk)>::rows_fastest;
      const auto to = walk.fours_of(destination, tile);
      for (int i = 0; i < ElementTiles::fours; ++i) {
        const int row = walk.row_of(i, 0), col = walk.col_of(i, 0);
        std::uint8_t four[4];
        float values[4];
        const float* scale = scales + col / Format::block_size * ElementTiles::rows + row;
        if constexpr (rows_fastest)
          for (int q = 0; q < 4; ++q) four[q] = codes(row + q, col);
        else
          codes.four(row, col, four);
        for (int q = 0; q < 4; ++q) values[q] = dequantize_code<Format>(four[q], scale[rows_fastest ? q : 0], decode);
        if (tile.whole)
          to.store(i, values);
        else
          for (int q = 0; q < 4; ++q)
            if (tiles.exists(tile, walk.row_of(i, q), walk.col_of(i, q)))
              destination(tile.row + walk.row_of(i, q), tile.col + walk.col_of(i, q)) = static_cast<T>(values[q]);
      }
    });
  }
};

template <class Exec, class Source>
void find_amax_by_tiles(const std::string& label, const Exec& exec, const Source& source, float* amax) {
  const AmaxTiles<Source> kernel(source, amax);
  Kokkos::parallel_for(label, teams(exec, kernel.tiles.count(), 0), kernel);
}
template <class Format, class Exec, class Source>
void quantize_by_tiles(const std::string& label, const Exec& exec, const Source& source,
                       const MatrixHandle<Format>& destination, const QuantizeData& options) {
  using Kernel = QuantizeTileKernel<Format, Source>;
  const Kernel kernel(source, destination, options);
  Kokkos::parallel_for(label, teams(exec, kernel.tiles.count(), Kernel::scratch_bytes), kernel);
}
template <class Format, class Exec, class T>
void dequantize_by_tiles(const std::string& label, const Exec& exec, const MatrixHandle<Format>& source,
                         const StridedMatrix<T>& destination) {
  using Kernel = DequantizeTileKernel<Format, T>;
  const Kernel kernel(source, destination);
  Kokkos::parallel_for(label, teams(exec, kernel.tiles.count(), Kernel::scratch_bytes), kernel);
}

}  // namespace microscale::Impl

#endif
