#ifndef MICROSCALE_AVX512_TENSORSCALE_HPP
#define MICROSCALE_AVX512_TENSORSCALE_HPP

#include <Microscale_Avx512_PlainMatrix.hpp>
#include <Microscale_TensorScalePair.hpp>
#include <stdint.h>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// Bits of the largest finite magnitude among `count` neighbours.
template <class Type>
uint32_t largest_finite(const typename Type::type* from, int64_t count) {
  __m512i largest = _mm512_setzero_si512(), finite = largest;
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff), infinity = _mm512_set1_epi32(0x7f800000);
  const auto load = [&](int64_t i) {
    const __m512 v = i + 16 <= count ? Type::load(from + i) : Type::load(first_lanes(count - i), from + i);
    return _mm512_and_si512(_mm512_castps_si512(v), magnitude);
  };
  const auto full = [&](int64_t i) { return _mm512_and_si512(_mm512_castps_si512(Type::load(from + i)), magnitude); };
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i a = _mm512_max_epu32(full(i), full(i + 16)), b = _mm512_max_epu32(full(i + 32), full(i + 48));
    largest = _mm512_max_epu32(largest, _mm512_max_epu32(a, b));
  }
  for (; i < count; i += 16) largest = _mm512_max_epu32(largest, load(i));
  if (_mm512_cmpge_epu32_mask(largest, infinity) == 0) return _mm512_reduce_max_epu32(largest);
  for (i = 0; i < count; i += 16) {
    const __m512i m = load(i);
    finite = _mm512_mask_max_epu32(finite, _mm512_cmplt_epu32_mask(m, infinity), finite, m);
  }
  return _mm512_reduce_max_epu32(finite);
}

/// The same of a line with a stride.
template <class Type>
uint32_t largest_finite(const typename Type::type* from, int64_t count, int64_t stride) {
  if (stride == 1) return largest_finite<Type>(from, count);
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t m = Bits::from_float(static_cast<float>(from[i * stride])) & Bits::magnitude;
    if (m < Bits::infinity && m > largest) largest = m;
  }
  return largest;
}

/// The largest finite magnitude of the lines of a matrix for which counts(line) is true, its rows or, along_columns, its
/// columns. The tasks leave their results on the stack of the caller.
template <class Type, class Counts>
float find_amax(const Operand& source, const Native& native, bool along_columns, const Counts& counts) {
  static constexpr int64_t most_tasks = 256, chunk = 16384;
  const PlainMatrix matrix(source);
  const int64_t lines = along_columns ? source.cols : source.rows, length = along_columns ? source.rows : source.cols;
  const int64_t stride = along_columns ? matrix.row_stride : matrix.col_stride;
  const int64_t chunks = (length + chunk - 1) / chunk, pieces = lines * chunks;
  const int64_t worth = larger(lines * length / 4096, 1);  // tasks of at least 4096 elements
  const int64_t tasks = smaller(smaller(pieces, most_tasks), smaller(worth, larger(native.concurrency, 1) * 4));
  uint32_t found[most_tasks] = {};
  parallel_for(native, tasks, [&](int64_t task) {
    uint32_t largest = 0;
    for (int64_t p = pieces * task / tasks; p < pieces * (task + 1) / tasks; ++p) {
      const int64_t line = p / chunks, begin = p % chunks * chunk;
      if (!counts(line)) continue;
      const auto* from = along_columns ? matrix.at<Type>(begin, line) : matrix.at<Type>(line, begin);
      const uint32_t here = largest_finite<Type>(from, smaller(chunk, length - begin), stride);
      largest = here > largest ? here : largest;
    }
    found[task] = largest;
  });
  uint32_t largest = 0;
  for (int64_t i = 0; i < tasks; ++i) largest = found[i] > largest ? found[i] : largest;
  return Bits::to_float(largest);
}

/// The tensor scale that the caller gave.
inline TensorScalePair given_tensor_scale(const QuantizeData& options) {
  if (options.device == nullptr) return options.tensor_scale;
  return options.device_is_encode ? pair_from_encode(*options.device) : pair_from_decode(*options.device);
}

/// The tensor scale that the options ask for, also kept by the destination. A dynamic one is found as by find_amax.
template <class Type, class Counts>
TensorScalePair resolve_tensor_scale(const Problem& problem, const Native& native, bool along_columns,
                                     const Counts& counts) {
  TensorScalePair* pair = problem.c.tensor_scale;
  if (!problem.c.format.tensor_scale || pair == nullptr) return {};
  if (problem.quantize.source == TensorScaleSource::dynamic)
    *pair = pair_from_amax<NVFP4>(find_amax<Type>(problem.a, native, along_columns, counts));
  else if (problem.quantize.source == TensorScaleSource::given)
    *pair = given_tensor_scale(problem.quantize);
  return *pair;
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
