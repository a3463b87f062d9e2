#include <Microscale_PlannedProblem.hpp>

#include <algorithm>
#include <array>
#include <bit>

namespace microscale::Impl {
namespace {

constexpr std::uintptr_t largest_alignment = 256;

std::uintptr_t alignment(std::uintptr_t address) {
  return std::min(address & (~address + 1), largest_alignment);  // the lowest set bit
}

// One pass over everything in a Problem, in two uses: planning changes members, collecting words reads them. The
// structured bindings do not compile when a struct gains a member, so that none is forgotten.
template <class Visitor>
struct Walk {
  Visitor visit;

  void operator()(ElementId& x) {
    auto& [exponent_bits, mantissa_bits, specials] = x;
    visit.values(exponent_bits, mantissa_bits, specials);
  }
  void operator()(FormatId& x) {
    auto& [element, block_size, scale, tensor_scale, packing] = x;
    (*this)(element);
    visit.values(block_size, scale, tensor_scale, packing);
  }
  void operator()(Operand& x) {
    auto& [format, rows, cols, batch, data, row_stride, col_stride, batch_stride, scales, scale_layout, scale_pitch,
           scale_tile_rows, scale_batch_stride, grouped_scales, tensor_scale, prepared_by, prepared_form, prepared,
           original_dropped] = x;
    auto& [bytes, tag] = prepared_form;
    (*this)(format);
    visit.values(rows, cols, batch, row_stride, col_stride, batch_stride, scale_layout, scale_pitch, scale_tile_rows,
                 scale_batch_stride, grouped_scales, bytes, tag, original_dropped);
    visit.pointers(data, scales, tensor_scale, prepared);
    visit.identity(prepared_by);
  }
  void operator()(VectorOperand& x) {
    auto& [data, type, size, stride, experts, expert_stride] = x;
    visit.pointers(data);
    (*this)(type);
    visit.values(size, stride, experts, expert_stride);
  }
  void operator()(EpilogueData& x) {
    auto& [alpha, alpha_device, row_scale, expert_scale, bias, beta, activation, gate, gate_columns, gate_limit,
           gate_slope] = x;
    visit.factors(alpha, beta);
    visit.pointers(alpha_device);
    (*this)(row_scale);
    (*this)(expert_scale);
    (*this)(bias);
    visit.values(activation, gate, gate_columns, gate_limit, gate_slope);
  }
  void operator()(QuantizeData& x) {
    auto& [scale_rule, non_finite, source, tensor_scale, device, device_is_encode, expert_tensor_scale] = x;
    visit.values(scale_rule, non_finite, source, device_is_encode);
    visit.data(tensor_scale);
    visit.pointers(device);
    (*this)(expert_tensor_scale);
  }
  void operator()(GroupData& x) {
    auto& [slots, row_offsets, expert_ids, a_scale_offsets, skipped_rows] = x;
    visit.values(slots, skipped_rows);
    visit.pointers(row_offsets, expert_ids, a_scale_offsets);
  }
  void operator()(Hints& x) {
    auto& [estimated_total_m, active_experts] = x;
    visit.values(estimated_total_m, active_experts);
  }
  void operator()(Config& x) {
    auto& [tile_m, tile_n, tile_k, stages, cluster, split_k, swap_ab, cluster_n, cta_group, k_group, block_swizzle,
           scheduler_stages, accumulator_stages, warp_m, warp_n, groups_per_unit, small_n, persistent, streaming,
           deep_prefetch] = x;
    visit.values(tile_m, tile_n, tile_k, stages, cluster, split_k, swap_ab, cluster_n, cta_group, k_group,
                 block_swizzle, scheduler_stages, accumulator_stages, warp_m, warp_n, groups_per_unit, small_n,
                 persistent, streaming, deep_prefetch);
  }
  void operator()(Problem& x) {
    auto& [operation, execution, device, concurrency, m, n, k, a, b, c, epilogue, user_functor, quantize, groups,
           hints] = x;
    visit.values(operation, execution, device, concurrency, m, n, k, user_functor);
    (*this)(a);
    (*this)(b);
    (*this)(c);
    (*this)(epilogue);
    (*this)(quantize);
    (*this)(groups);
    (*this)(hints);
  }
};

struct Planner {
  template <class... T>
  void values(T&...) {}
  template <class... T>
  void pointers(T*&... p) {
    ((p = reinterpret_cast<T*>(alignment(reinterpret_cast<std::uintptr_t>(p)))), ...);
  }
  void identity(const Backend*) {}
  template <class... T>
  void factors(T&... x) {
    ((x = x == 0.0f || x == 1.0f ? x + 0.0f : 2.0f), ...);  // + 0: -0 becomes 0
  }
  void data(TensorScalePair& pair) { pair = {}; }
};

template <class Sink>
struct Reader {
  Sink sink;

  /// Small values share a word.
  template <class... T>
  void values(const T&... x) {
    std::uint64_t word = 0;
    int used = 0;
    const auto add = [&](std::uint64_t bits, int width) {
      if (used + width > 64) {
        sink.value(word);
        word = 0;
        used = 0;
      }
      word |= bits << used;
      used += width;
    };
    (add(to_bits(x), 8 * static_cast<int>(sizeof(T))), ...);
    sink.value(word);
  }
  template <class T>
  static std::uint64_t to_bits(const T& x) {
    if constexpr (std::is_same_v<T, float>)
      return std::bit_cast<std::uint32_t>(x);
    else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return static_cast<std::make_unsigned_t<T>>(x);
    else
      return static_cast<std::uint64_t>(x);
  }
  template <class... T>
  void pointers(T*... p) {
    (sink.alignment(reinterpret_cast<std::uintptr_t>(p)), ...);
  }
  void identity(const Backend* backend) { sink.value(reinterpret_cast<std::uintptr_t>(backend)); }
  template <class... T>
  void factors(const T&... x) {
    values(x...);
  }
  void data(const TensorScalePair&) {}
};

struct Appender {
  Words& words;
  void value(std::uint64_t w) { words.push_back(w); }
  void alignment(std::uint64_t w) { words.push_back(w); }
};

/// Compares, in the order of the walk, with the words of another problem.
struct Comparer {
  const Words& expected;
  bool& equal;
  std::size_t next = 0;

  void value(std::uint64_t w) { equal &= expected[next++] == w; }
  void alignment(std::uint64_t w) {
    const std::uint64_t least = expected[next++];
    equal &= least == 0 ? w == 0 : w >= least;
  }
};

}  // namespace

bool operator==(const Words& a, const Words& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::size_t hash(const Words& words) {
  constexpr std::uint64_t golden = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  std::uint64_t h[4] = {1, 2, 3, 4};                     // four chains, for the sake of speed
  for (std::size_t i = 0; i < words.size(); ++i) h[i % 4] = (std::rotl(h[i % 4], 29) ^ words[i]) * golden;
  return static_cast<std::size_t>(((h[0] ^ std::rotl(h[1], 16)) * golden) ^ ((h[2] ^ std::rotl(h[3], 16)) * golden));
}

Problem planned(const Problem& problem) {
  Problem result = problem;
  Walk<Planner>{}(result);
  return result;
}

void append_words(Words& words, const Problem& problem) {
  Problem copy = problem;
  Walk<Reader<Appender>>{{{words}}}(copy);
}

void append_words(Words& words, const Config& config) {
  Config copy = config;
  Walk<Reader<Appender>>{{{words}}}(copy);
}

bool covers(const Words& plan, const Problem& problem) {
  bool equal = true;
  Problem copy = problem;
  Walk<Reader<Comparer>>{{{plan, equal}}}(copy);
  return equal;
}

}  // namespace microscale::Impl

namespace microscale {

bool operator==(const Config& x, const Config& y) {
  Impl::Words of_x, of_y;
  Impl::append_words(of_x, x);
  Impl::append_words(of_y, y);
  return of_x == of_y;
}

bool operator==(const Hints& x, const Hints& y) {
  return x.estimated_total_m == y.estimated_total_m && x.active_experts == y.active_experts;
}

}  // namespace microscale
