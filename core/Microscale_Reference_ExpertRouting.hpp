#ifndef MICROSCALE_REFERENCE_EXPERTROUTING_HPP
#define MICROSCALE_REFERENCE_EXPERTROUTING_HPP

#include <Kokkos_Core.hpp>
#include <Microscale_Concepts.hpp>
#include <Microscale_Reference_Quantize.hpp>
#include <Microscale_ScaleLayout.hpp>

#include <cstdint>
#include <type_traits>

// The kernels of expert routing. Sorting is a counting sort over chunks of assignments (assignment i = token * k + j):
// one index is one chunk, so the order within an expert is that of i, whatever the number of threads.
namespace microscale::Impl {

/// Everything that the kernels of build_expert_offsets read and write.
struct RoutingData {
  StridedMatrix<const std::int32_t> topk_ids;  ///< [tokens, k]
  std::int64_t experts;
  std::int64_t chunk, chunks;  ///< assignments in a chunk, chunks in all
  ScaleLayout layout;
  std::int32_t* counts;  ///< [chunks, experts]: of each chunk, then of the chunks before it
  std::int32_t* row_offsets;
  std::int32_t* expert_ids;
  std::int32_t* a_scale_offsets;
  std::int32_t* permutation;
  std::int32_t* inverse;

  KOKKOS_FUNCTION std::int64_t assignments() const { return topk_ids.rows * topk_ids.cols; }
  KOKKOS_FUNCTION std::int64_t chunk_end(std::int64_t c) const {
    const std::int64_t end = (c + 1) * chunk;
    return end < assignments() ? end : assignments();
  }
  /// The expert of an assignment, or -1 if it is dropped.
  KOKKOS_FUNCTION std::int64_t expert(std::int64_t i) const {
    const std::int64_t id = topk_ids(i / topk_ids.cols, i % topk_ids.cols);
    return 0 <= id && id < experts ? id : -1;
  }
};

/// One index is one chunk: counts(chunk, expert) = its assignments to the expert.
struct CountChunk {
  RoutingData routing;
  KOKKOS_FUNCTION void operator()(std::int64_t c) const {
    std::int32_t* counts = routing.counts + c * routing.experts;
    for (std::int64_t e = 0; e < routing.experts; ++e) counts[e] = 0;
    for (std::int64_t i = c * routing.chunk; i < routing.chunk_end(c); ++i) {
      const std::int64_t e = routing.expert(i);
      if (e >= 0) ++counts[e];
    }
  }
};

/// One index is one expert: counts(chunk, expert) = its assignments in the chunks before; row_offsets[expert + 1] =
/// all of them.
struct ScanChunks {
  RoutingData routing;
  KOKKOS_FUNCTION void operator()(std::int64_t e) const {
    std::int32_t sum = 0;
    for (std::int64_t c = 0; c < routing.chunks; ++c) {
      std::int32_t& count = routing.counts[c * routing.experts + e];
      const std::int32_t here = count;
      count = sum;
      sum += here;
    }
    routing.row_offsets[e + 1] = sum;
    routing.expert_ids[e] = static_cast<std::int32_t>(e);
  }
};

/// Once: counts in row_offsets become offsets, and with them the places of the scale tiles.
struct ScanExperts {
  RoutingData routing;
  KOKKOS_FUNCTION void operator()() const {
    const int tile = scale_tile(routing.layout).rows;
    std::int32_t row = 0;
    std::int64_t tiles = 0;
    routing.row_offsets[0] = 0;
    for (std::int64_t e = 0; e < routing.experts; ++e) {
      const std::int32_t count = routing.row_offsets[e + 1];
      routing.a_scale_offsets[e] = static_cast<std::int32_t>(grouped_scale_offset(routing.layout, row, tiles));
      row += count;
      tiles += (count + tile - 1) / tile;
      routing.row_offsets[e + 1] = row;
    }
  }
};

/// One index is one chunk: places its assignments, and marks the unused positions among its own numbers.
struct PlaceChunk {
  RoutingData routing;
  KOKKOS_FUNCTION void operator()(std::int64_t c) const {
    std::int32_t* next = routing.counts + c * routing.experts;
    const std::int64_t used = routing.row_offsets[routing.experts];
    for (std::int64_t i = c * routing.chunk; i < routing.chunk_end(c); ++i) {
      const std::int64_t e = routing.expert(i);
      const std::int32_t position = e < 0 ? -1 : routing.row_offsets[e] + next[e]++;
      routing.inverse[i] = position;
      if (position >= 0) routing.permutation[position] = static_cast<std::int32_t>(i);
      if (i >= used) routing.permutation[i] = -1;
    }
  }
};

template <class Exec>
void build_expert_offsets(const Exec& exec, const RoutingData& routing) {
  const std::string label = "microscale::build_expert_offsets[reference]";
  Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, routing.chunks), CountChunk{routing});
  Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, routing.experts), ScanChunks{routing});
  run_once(label, exec, ScanExperts{routing});
  Kokkos::parallel_for(label, IndexRange<Exec>(exec, 0, routing.chunks), PlaceChunk{routing});
}

/// Columns that one index covers: long runs on the host, neighbouring threads on neighbouring columns on a device.
template <class Exec>
inline constexpr std::int64_t columns_per_index = is_host<Exec> ? 256 : 1;

/// Calls f(row, column) for the columns of one index of a range over rows * ceil(cols / width).
template <class F>
KOKKOS_FUNCTION void for_columns(std::int64_t index, std::int64_t cols, std::int64_t width, const F& f) {
  const std::int64_t pieces = (cols + width - 1) / width;
  const std::int64_t row = index / pieces, begin = index % pieces * width;
  const std::int64_t end = begin + width < cols ? begin + width : cols;
  for (std::int64_t c = begin; c < end; ++c) f(row, c);
}

/// out(p, :) = x(token of position p, :), or 0 for unused positions.
template <class In, class Out>
struct GatherKernel {
  StridedMatrix<const In> x;
  StridedMatrix<Out> out;
  const std::int32_t* permutation;
  std::int64_t k, width;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    for_columns(index, out.cols, width, [this](std::int64_t p, std::int64_t c) {
      const std::int64_t i = permutation[p];
      if constexpr (std::is_same_v<In, Out>)
        out(p, c) = i < 0 ? static_cast<Out>(0.0f) : x(i / k, c);
      else
        out(p, c) = static_cast<Out>(i < 0 ? 0.0f : static_cast<float>(x(i / k, c)));
    });
  }
};

/// out(t, :) = sum over j of weights(t, j) * y(inverse(t, j), :).
template <class In, class Weight, class Out>
struct CombineKernel {
  StridedMatrix<const In> y;
  StridedMatrix<const Weight> weights;
  StridedMatrix<Out> out;
  const std::int32_t* inverse;
  std::int64_t width;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    for_columns(index, out.cols, width, [this](std::int64_t t, std::int64_t c) {
      float sum = 0.0f;
      for (std::int64_t j = 0; j < weights.cols; ++j) {
        const std::int64_t p = inverse[t * weights.cols + j];
        if (p >= 0) sum = Kokkos::fma(static_cast<float>(weights(t, j)), static_cast<float>(y(p, c)), sum);
      }
      out(t, c) = static_cast<Out>(sum);
    });
  }
};

}  // namespace microscale::Impl

#endif
