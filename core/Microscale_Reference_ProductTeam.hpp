#ifndef MICROSCALE_REFERENCE_PRODUCTTEAM_HPP
#define MICROSCALE_REFERENCE_PRODUCTTEAM_HPP

#include <Microscale_Reference_Product.hpp>

#include <cstdint>
#include <type_traits>

// Tiles of A B^T by the teams of a device: bit for bit what product_element gives. A stage of at most 32 columns of both
// operands is decoded into team scratch, each row by one thread, while the next is on its way from memory; each thread
// keeps the dot products and sums of its part of the tile in registers.
namespace microscale::Impl {

#if MICROSCALE_DEVICE_CODE
#define MICROSCALE_UNROLL _Pragma("unroll")
#else
#define MICROSCALE_UNROLL
#endif

/// A tile: a grid of threads, each with `part_rows` x `part_cols` sums, in groups of 4 that interleave with those of its
/// neighbours.
template <int ThreadRows, int ThreadCols, int PartRows, int PartCols>
struct TeamShape {
  static constexpr int threads = ThreadRows * ThreadCols;
  static constexpr int part_rows = PartRows, part_cols = PartCols;
  static constexpr int row_groups = PartRows / 4, col_groups = PartCols / 4;
  static constexpr int rows = ThreadRows * PartRows, cols = ThreadCols * PartCols;
  static constexpr int group_rows = ThreadRows * 4, group_cols = ThreadCols * 4;
  static constexpr int lines = (rows + cols) / threads;  ///< rows of operands that a thread decodes
  static_assert((rows + cols) % threads == 0);

  /// First row and column of a thread's first group. 32 neighbouring threads form a patch of 4 x 8, so that they share
  /// what they read from scratch.
  KOKKOS_FUNCTION static int first_row(int thread) {
    return ThreadRows == 1 ? 0 : (thread / 8 % 4 + thread / 64 * 4) * 4;
  }
  KOKKOS_FUNCTION static int first_col(int thread) {
    return ThreadCols == 1 ? 0 : (thread % 8 + thread / 32 % 2 * 8) * 4;
  }
  /// Row and column in the tile of sum (i, j) of a thread.
  KOKKOS_FUNCTION static int row(int thread, int i) { return first_row(thread) + i / 4 * group_rows + i % 4; }
  KOKKOS_FUNCTION static int col(int thread, int j) { return first_col(thread) + j / 4 * group_cols + j % 4; }
};

/// 256 threads with 8 x 8 sums each; and, for tests, as wide a tile of one thread on the host.
template <class Exec>
using TeamShapeOf = std::conditional_t<is_host<Exec>, TeamShape<1, 1, 8, 128>, TeamShape<16, 16, 8, 8>>;

/// Four values that are loaded and stored together.
struct alignas(16) Quad {
  float x[4];
};

/// A stretch of at most Depth elements of a row of an operand, as it lies in memory. Its other elements are zeros.
template <class M, int Depth>
struct Stretch {  // of a StridedMatrix
  using value_type = std::remove_const_t<typename M::value_type>;
  value_type values[Depth];

  KOKKOS_INLINE_FUNCTION void clear() {
    MICROSCALE_UNROLL
    for (int i = 0; i < Depth; ++i) values[i] = value_type(0.0f);
  }
  KOKKOS_INLINE_FUNCTION void fetch(const M& m, std::int64_t row, std::int64_t, std::int64_t k, int length) {
    MICROSCALE_UNROLL
    for (int i = 0; i < Depth; ++i) values[i] = i < length ? m(row, k + i) : value_type(0.0f);
  }
  KOKKOS_INLINE_FUNCTION float operator[](int i) const { return static_cast<float>(values[i]); }
  KOKKOS_INLINE_FUNCTION float scale() const { return 1.0f; }
};

template <class F, int Depth>
struct Stretch<MatrixHandle<F>, Depth> {
  static constexpr int w = code_bits<F>, bytes = Depth * w / 8, words = (bytes + 3) / 4;
  // The widest loads that it can be cut into.
  static constexpr int load_words = words % 4 == 0 ? 4 : words % 2 == 0 ? 2 : 1;
  struct alignas(4 * load_words) Load {
    std::uint32_t words[load_words];
  };

  std::uint32_t codes[words];
  std::uint8_t scale_byte;
  bool exists;

  KOKKOS_INLINE_FUNCTION void clear() {
    exists = false;
    scale_byte = 0;
    MICROSCALE_UNROLL
    for (int i = 0; i < words; ++i) codes[i] = 0;
  }
  KOKKOS_INLINE_FUNCTION void fetch(const MatrixHandle<F>& m, std::int64_t row, std::int64_t scale_row, std::int64_t k,
                                    int length) {
    const std::uint8_t* from = m.row(row) + packed_bytes<F>(k);  // k is a multiple of 8: at a whole byte
    if (bytes % 4 == 0 && length == Depth && reinterpret_cast<std::uintptr_t>(from) % sizeof(Load) == 0) {
      MICROSCALE_UNROLL
      for (int i = 0; i < words / load_words; ++i) {
        const Load load = reinterpret_cast<const Load*>(from)[i];
        MICROSCALE_UNROLL
        for (int j = 0; j < load_words; ++j) codes[i * load_words + j] = load.words[j];
      }
    } else {
      const int used = static_cast<int>(packed_bytes<F>(length));
      MICROSCALE_UNROLL
      for (int i = 0; i < words; ++i) {
        codes[i] = 0;
        MICROSCALE_UNROLL
        for (int j = 0; j < 4; ++j)
          if (4 * i + j < used) codes[i] |= static_cast<std::uint32_t>(from[4 * i + j]) << (8 * j);
      }
    }
    scale_byte = m.scale(scale_row, k / F::block_size);
    exists = true;
  }
  KOKKOS_INLINE_FUNCTION float operator[](int i) const {
    const int word = i * w / 32, bit = i * w % 32;
    std::uint32_t bits = codes[word] >> bit;
    if constexpr (32 % w != 0)
      if (bit + w > 32) bits |= codes[word + 1] << (32 - bit);
    return F::element::decode(static_cast<std::uint8_t>(bits & ((1u << w) - 1)));
  }
  /// 1 for rows that do not exist, which keeps their exponents from mattering.
  KOKKOS_INLINE_FUNCTION float scale() const { return exists ? F::scale::decode(scale_byte) : 1.0f; }
};

template <class M>
constexpr int longest_piece() {
  if constexpr (OperandTraits<M>::scaled)
    return OperandTraits<M>::format::block_size < 32 ? OperandTraits<M>::format::block_size : 32;
  else
    return 32;
}

/// A tile of A B^T, accumulated stage by stage, as its threads see it.
template <class A, class B, class Shape>
class TeamProduct {
 public:
  static constexpr int depth = longest_piece<A>() < longest_piece<B>() ? longest_piece<A>() : longest_piece<B>();
  static constexpr int panel_values = depth * (Shape::rows + Shape::cols);
  static constexpr int out_pitch = Shape::cols + 4, out_values = Shape::group_rows * out_pitch;
  static constexpr int scratch_values =
      (panel_values > out_values ? panel_values : out_values) + Shape::rows + Shape::cols;

  /// Rows [first, last) of a tile whose row 0 is row `row` of A; column j of it is row column(j) of B, or does not exist
  /// where that is negative. scale_shift: what is added to a row of A to get its row in A's scale buffer.
  template <class Team, class Column>
  KOKKOS_INLINE_FUNCTION void multiply(const Team& team, float* scratch, const A& a, std::int64_t row, int first,
                                       int last, std::int64_t scale_shift, const B& b, const Column& column) {
    const int thread = team.team_rank();
    float* scales = scratch + scratch_values - Shape::rows - Shape::cols;
    MICROSCALE_UNROLL
    for (int i = 0; i < Shape::part_rows; ++i) MICROSCALE_UNROLL
    for (int j = 0; j < Shape::part_cols; ++j) m_sums[i][j] = m_dots[i][j] = 0.0f;
    bool active = false;
    MICROSCALE_UNROLL
    for (int i = 0; i < Shape::part_rows; i += 4) {
      const int begin = Shape::row(thread, i);
      active = active || (begin < last && begin + 4 > first);
    }

    Stretch<A, depth> lines_a[Shape::lines];
    Stretch<B, depth> lines_b[Shape::lines];
    const auto fetch = [&](std::int64_t k, int length) {
      MICROSCALE_UNROLL
      for (int l = 0; l < Shape::lines; ++l) {
        const int line = thread + l * Shape::threads;
        if (line < Shape::rows) {
          if (first <= line && line < last)
            lines_a[l].fetch(a, row + line, row + line + scale_shift, k, length);
          else
            lines_a[l].clear();
        } else {
          const std::int64_t col = column(line - Shape::rows);
          if (col >= 0)
            lines_b[l].fetch(b, col, col, k, length);
          else
            lines_b[l].clear();
        }
      }
    };
    const auto store = [&] {
      MICROSCALE_UNROLL
      for (int l = 0; l < Shape::lines; ++l) {
        const int line = thread + l * Shape::threads;
        const auto put = [&](const auto& stretch, float* to, int pitch) {
          MICROSCALE_UNROLL
          for (int i = 0; i < depth; ++i) to[i * pitch] = stretch[i];
          scales[line] = stretch.scale();
        };
        if (line < Shape::rows)
          put(lines_a[l], scratch + line, Shape::rows);
        else
          put(lines_b[l], scratch + depth * Shape::rows + line - Shape::rows, Shape::cols);
      }
    };

    Stage stage = stage_at(a, b, 0);
    if (stage.length > 0) fetch(0, stage.length);
    for (std::int64_t k = 0; k < a.cols;) {
      store();
      team.team_barrier();
      const bool piece_ends = stage.piece_ends;
      k += stage.length;
      stage = stage_at(a, b, k);
      if (k < a.cols) fetch(k, stage.length);
      if (active) {
        multiply_stage(scratch + Shape::first_row(thread), scratch + depth * Shape::rows + Shape::first_col(thread));
        if (piece_ends) add_piece(scales + Shape::first_row(thread), scales + Shape::rows + Shape::first_col(thread));
      }
      team.team_barrier();
    }
  }

  /// Calls f(first row of the tile, rows, sums in scratch with out_pitch) for one group of rows after the other, by all
  /// threads.
  template <class Team, class F>
  KOKKOS_INLINE_FUNCTION void for_each_row_group(const Team& team, float* scratch, const F& f) const {
    const int thread = team.team_rank();
    MICROSCALE_UNROLL
    for (int group = 0; group < Shape::row_groups; ++group) {
      MICROSCALE_UNROLL
      for (int i = 0; i < 4; ++i) MICROSCALE_UNROLL
      for (int j = 0; j < Shape::part_cols; j += 4) {
        const float* s = &m_sums[group * 4 + i][j];
        *reinterpret_cast<Quad*>(scratch + (Shape::first_row(thread) + i) * out_pitch + Shape::col(thread, j)) =
            Quad{{s[0], s[1], s[2], s[3]}};
      }
      team.team_barrier();
      f(group * Shape::group_rows, scratch);
      team.team_barrier();
    }
  }

 private:
  /// A stretch of columns that lies within a block of A and a block of B, and whether it is the last of them.
  struct Stage {
    int length;
    bool piece_ends;
  };
  KOKKOS_INLINE_FUNCTION static Stage stage_at(const A& a, const B& b, std::int64_t k) {
    if (k >= a.cols) return {0, false};
    const std::int64_t end_a = block_end(a, k), end_b = block_end(b, k), left = (end_a < end_b ? end_a : end_b) - k;
    return left <= depth ? Stage{static_cast<int>(left), true} : Stage{depth, false};
  }

  /// Products of zeros past the end of a stage are added too: they change no dot product but the sign of a zero, which
  /// the sum, that starts at +0, does not feel.
  KOKKOS_INLINE_FUNCTION void multiply_stage(const float* a, const float* b) {
    for (int k = 0; k < depth; ++k, a += Shape::rows, b += Shape::cols) {
      float x[Shape::part_rows], y[Shape::part_cols];
      load<Shape::row_groups, Shape::group_rows>(a, x);
      load<Shape::col_groups, Shape::group_cols>(b, y);
      MICROSCALE_UNROLL
      for (int i = 0; i < Shape::part_rows; ++i) MICROSCALE_UNROLL
      for (int j = 0; j < Shape::part_cols; ++j) m_dots[i][j] = fused_multiply_add(x[i], y[j], m_dots[i][j]);
    }
  }

  KOKKOS_INLINE_FUNCTION void add_piece(const float* a, const float* b) {
    float x[Shape::part_rows], y[Shape::part_cols];
    load<Shape::row_groups, Shape::group_rows>(a, x);
    load<Shape::col_groups, Shape::group_cols>(b, y);
    if (exponents_fit(x, y))
      add_scaled(
          [](float dot, float scale_a, float scale_b) {
            if constexpr (!OperandTraits<A>::scaled)
              return mul(dot, scale_b);
            else if constexpr (OperandTraits<A>::e8m0 == OperandTraits<B>::e8m0)
              return mul(dot, mul(scale_a, scale_b));  // the product is exact
            else if constexpr (OperandTraits<A>::e8m0)
              return mul(mul(dot, scale_b), scale_a);
            else
              return mul(mul(dot, scale_a), scale_b);
          },
          x, y);
    else
      add_scaled(
          [](float dot, float scale_a, float scale_b) {
            ScaleProduct scale;
            scale.multiply<E8M0>(e8m0_byte(scale_a));
            scale.multiply<E8M0>(e8m0_byte(scale_b));
            return scale.apply(dot);
          },
          x, y);
  }
  template <class Scaled>
  KOKKOS_INLINE_FUNCTION void add_scaled(const Scaled& scaled, const float* x, const float* y) {
    MICROSCALE_UNROLL
    for (int i = 0; i < Shape::part_rows; ++i) MICROSCALE_UNROLL
    for (int j = 0; j < Shape::part_cols; ++j) {
      m_sums[i][j] = add(m_sums[i][j], scaled(m_dots[i][j], x[i], y[j]));
      m_dots[i][j] = 0.0f;
    }
  }

  /// The byte of the value of an E8M0 scale.
  KOKKOS_INLINE_FUNCTION static std::uint8_t e8m0_byte(float scale) {
    return static_cast<std::uint8_t>(Bits::from_float(scale) >> 23);  // 0 of 2^-127, and FF of NaN
  }
  /// Whether 2 to any sum of two E8M0 exponents that meet here is a normal binary32 value: then multiplying by it is
  /// what scale_by_pow2 does. (NaN scales are right either way.)
  KOKKOS_INLINE_FUNCTION static bool exponents_fit(const float* x, const float* y) {
    if constexpr (!OperandTraits<A>::scaled) {
      return true;
    } else if constexpr (OperandTraits<A>::e8m0 && OperandTraits<B>::e8m0) {
      int low[2] = {255, 255}, high[2] = {0, 0};
      const auto widen = [&](int side, float scale) {
        const int byte = e8m0_byte(scale);
        low[side] = byte < low[side] ? byte : low[side];
        high[side] = byte > high[side] ? byte : high[side];
      };
      MICROSCALE_UNROLL
      for (int i = 0; i < Shape::part_rows; ++i) widen(0, x[i]);
      MICROSCALE_UNROLL
      for (int j = 0; j < Shape::part_cols; ++j) widen(1, y[j]);
      return low[0] + low[1] >= 2 * E8M0::bias - 126 && high[0] + high[1] <= 2 * E8M0::bias + 127;
    } else {
      return true;
    }
  }

  template <int Groups, int Distance>
  KOKKOS_INLINE_FUNCTION static void load(const float* from, float* values) {
    MICROSCALE_UNROLL
    for (int g = 0; g < Groups; ++g) {
      const Quad quad = *reinterpret_cast<const Quad*>(from + g * Distance);
      MICROSCALE_UNROLL
      for (int i = 0; i < 4; ++i) values[g * 4 + i] = quad.x[i];
    }
  }

  float m_sums[Shape::part_rows][Shape::part_cols];
  float m_dots[Shape::part_rows][Shape::part_cols];
};

}  // namespace microscale::Impl

#endif
