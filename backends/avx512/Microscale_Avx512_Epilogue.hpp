#ifndef MICROSCALE_AVX512_EPILOGUE_HPP
#define MICROSCALE_AVX512_EPILOGUE_HPP

#include <Microscale_Activation.hpp>
#include <Microscale_Avx512_QuantizeRows.hpp>
#include <stdint.h>

// What happens to a tile of A B^T on its way to C: the steps of docs/numerics.md, section 8, each rounded once, then C's
// type or quantization. Bit for bit what the reference does, whose functions of formats/ are called where there is no
// vector instruction for a step.
namespace microscale::MICROSCALE_AVX512_NAMESPACE {

/// One product C = epilogue(A B^T): of a batch, or of the rows of an expert.
struct ProductSlice {
  Operand a, b, c;            ///< one matrix each
  int64_t expert = 0;         ///< or number in the batch
  int64_t a_scale_shift = 0;  ///< what is added to a row to get its row in A's scale buffer
  int64_t c_scale_shift = 0;  ///< likewise C's
};

/// Matrix `e` of a batch.
inline Operand matrix_of(const Operand& batch, int64_t e) {
  Operand m = batch;
  m.batch = 1;
  if (e == 0) return m;
  const int64_t bytes = batch.format.block_size > 0 ? 1 : batch.format == float32_id ? 4 : 2;
  if (m.data != nullptr) m.data = static_cast<char*>(m.data) + e * batch.batch_stride * bytes;
  if (m.scales != nullptr) m.scales += e * batch.scale_batch_stride;
  if (m.tensor_scale != nullptr) m.tensor_scale += e;
  if (m.prepared != nullptr)
    m.prepared = static_cast<char*>(m.prepared) + e * (batch.prepared_form.bytes / batch.batch);
  return m;
}

/// The sums of a tile, which are overwritten.
struct TileSums {
  float* sums;       ///< [rows, pitch], columns from the tile's first on; of interleaved gates, with the ups between
  const float* ups;  ///< those of halved gates, with the same pitch
  int64_t pitch;
};

/// The epilogue of one slice.
class TileEpilogue {
 public:
  static constexpr int most_cols = 256;  ///< of A B^T in a tile

  TileEpilogue(const Problem& problem, const ProductSlice& slice)
      : m_problem(problem),
        m_data(problem.epilogue),
        m_slice(slice),
        m_decode_a(slice.a.tensor_scale != nullptr ? slice.a.tensor_scale->decode : 1.0f),
        m_decode_b(slice.b.tensor_scale != nullptr ? slice.b.tensor_scale->decode : 1.0f),
        m_alpha(m_data.alpha_device != nullptr ? *m_data.alpha_device : m_data.alpha),
        m_expert_scale(m_data.expert_scale.data != nullptr ? at(m_data.expert_scale, 0, slice.expert) : 1.0f) {}

  /// Rows [row, row + rows) and columns [col, col + cols) of C. col begins a block of a quantized C, and cols is whole
  /// blocks or ends with the row, whose padding of scales is written then.
  void operator()(int64_t row, int rows, int64_t col, int cols, const TileSums& tile) {
    m_col = col;
    m_cols = cols;
    if (m_data.gate == Gate::none) {
      load_bias(col, 1, m_bias);
      plain_columns(row, rows, tile.sums, tile.pitch);
    } else if (m_data.gate_columns == GateColumns::interleaved) {
      load_bias(2 * col, 2, m_bias);
      load_bias(2 * col + 1, 2, m_bias_of_ups);
      interleaved_columns(row, rows, tile.sums, tile.pitch);
    } else {
      load_bias(col, 1, m_bias);
      load_bias(m_slice.c.cols + col, 1, m_bias_of_ups);
      halved_columns(row, rows, tile.sums, tile.ups, tile.pitch);
    }
    write(row, rows, tile.sums, tile.pitch);
  }

 private:
  static float at(const VectorOperand& v, int64_t expert, int64_t i) {
    const int64_t index = (v.experts >= 0 ? expert * v.expert_stride : 0) + i * v.stride;
    if (v.type == float16_id.element) return static_cast<float>(static_cast<const half*>(v.data)[index]);
    if (v.type == bfloat16_id.element) return static_cast<float>(static_cast<const bf16*>(v.data)[index]);
    return static_cast<const float*>(v.data)[index];
  }

  /// The bias of every `step`-th column from `first` on.
  void load_bias(int64_t first, int64_t step, float* bias) const {
    if (m_data.bias.data == nullptr) return;
    for (int j = 0; j < m_cols; ++j) bias[j] = at(m_data.bias, m_slice.expert, first + j * step);
    for (int j = m_cols; j < (m_cols + 15) / 16 * 16; ++j) bias[j] = 0.0f;
  }

  float row_scale(int64_t row) const {
    return m_data.row_scale.data != nullptr ? at(m_data.row_scale, m_slice.expert, row) : 1.0f;
  }

  /// Everything before beta * C. (Factors that are absent are 1 and change nothing.)
  __m512 linear(__m512 sum, float row_factor, const float* bias) const {
    __m512 v = _mm512_mul_ps(_mm512_mul_ps(sum, _mm512_set1_ps(m_decode_a)), _mm512_set1_ps(m_decode_b));
    v = _mm512_mul_ps(v, _mm512_set1_ps(m_alpha));
    v = _mm512_mul_ps(_mm512_mul_ps(v, _mm512_set1_ps(row_factor)), _mm512_set1_ps(m_expert_scale));
    return m_data.bias.data != nullptr ? _mm512_add_ps(v, _mm512_load_ps(bias)) : v;
  }

  static __m512 canonical(__m512 v) {
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(v, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
  }
  void make_canonical(float* v) const {
    for (int j = 0; j < m_cols; j += 16)
      _mm512_mask_storeu_ps(v + j, first_lanes(m_cols - j),
                            canonical(_mm512_maskz_loadu_ps(first_lanes(m_cols - j), v + j)));
  }

  template <class Function>
  static void for_each(float* v, int count, const Function& function) {
    for (int j = 0; j < count; ++j) v[j] = function(v[j]);
  }
  void activate(float* v, int count) const {
    switch (m_data.activation) {
      case Activation::none:
      case Activation::relu:
        return;  // plain_columns has done that
      case Activation::gelu_tanh:
        return for_each(v, count, [](float x) { return gelu_tanh(x); });
      case Activation::gelu_erf:
        return for_each(v, count, [](float x) { return gelu_erf(x); });
      case Activation::silu:
        return for_each(v, count, [](float x) { return silu(x); });
    }
  }

  void plain_columns(int64_t row, int rows, float* v, int64_t pitch) const {
    // In one pass over the row, unless the activation has to be called for each element.
    const bool rectified = m_data.activation == Activation::relu;
    const bool called = !rectified && m_data.activation != Activation::none;
    alignas(64) float old[most_cols];
    for (int i = 0; i < rows; ++i, v += pitch) {
      if (m_data.beta != 0.0f) load_c(row + i, old);
      const float row_factor = row_scale(row + i);
      for (int j = 0; j < m_cols; j += 16) {
        const __mmask16 k = first_lanes(m_cols - j);
        __m512 x = linear(_mm512_maskz_loadu_ps(k, v + j), row_factor, m_bias + j);
        if (m_data.beta != 0.0f)
          x = _mm512_add_ps(x, _mm512_mul_ps(_mm512_set1_ps(m_data.beta), _mm512_load_ps(old + j)));
        if (rectified)
          x = _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), _mm512_setzero_ps());
        _mm512_mask_storeu_ps(v + j, k, called ? x : canonical(x));
      }
      if (called) {
        activate(v, m_cols);
        make_canonical(v);
      }
    }
  }

  void gate_row(const float* g, const float* u, float* out) const {
    if (m_data.gate == Gate::silu)
      for (int j = 0; j < m_cols; ++j) out[j] = silu_gate(g[j], u[j]);
    else
      for (int j = 0; j < m_cols; ++j) out[j] = clamped_swiglu(g[j], u[j], m_data.gate_limit, m_data.gate_slope);
    make_canonical(out);
  }

  /// Sums 2 j and 2 j + 1 of a row make its value j.
  void interleaved_columns(int64_t row, int rows, float* v, int64_t pitch) const {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    alignas(64) float g[most_cols / 2], u[most_cols / 2];
    for (int i = 0; i < rows; ++i, v += pitch) {
      const float row_factor = row_scale(row + i);
      for (int j = 0; j < m_cols; j += 16) {
        const int left = 2 * (m_cols - j);
        const __m512 low = _mm512_maskz_loadu_ps(first_lanes(left), v + 2 * j);
        const __m512 high = _mm512_maskz_loadu_ps(first_lanes(left > 16 ? left - 16 : 0), v + 2 * j + 16);
        _mm512_store_ps(g + j, linear(_mm512_permutex2var_ps(low, even, high), row_factor, m_bias + j));
        _mm512_store_ps(u + j, linear(_mm512_permutex2var_ps(low, odd, high), row_factor, m_bias_of_ups + j));
      }
      gate_row(g, u, v);
    }
  }

  void halved_columns(int64_t row, int rows, float* v, const float* ups, int64_t pitch) const {
    alignas(64) float g[most_cols / 2], u[most_cols / 2];
    for (int i = 0; i < rows; ++i, v += pitch, ups += pitch) {
      const float row_factor = row_scale(row + i);
      for (int j = 0; j < m_cols; j += 16) {
        const __mmask16 k = first_lanes(m_cols - j);
        _mm512_store_ps(g + j, linear(_mm512_maskz_loadu_ps(k, v + j), row_factor, m_bias + j));
        _mm512_store_ps(u + j, linear(_mm512_maskz_loadu_ps(k, ups + j), row_factor, m_bias_of_ups + j));
      }
      gate_row(g, u, v);
    }
  }

  void load_c(int64_t row, float* old) const {
    with_type(m_slice.c.format, [&](auto type) {
      PlainMatrix(m_slice.c).template load<decltype(type)>(row, 1, m_col, m_cols, old, (m_cols + 15) / 16 * 16);
    });
  }

  void write(int64_t row, int rows, const float* values, int64_t pitch) const {
    const Operand& c = m_slice.c;
    if (c.format.block_size == 0) {
      with_type(c.format, [&](auto type) {
        for (int i = 0; i < rows; i += 16)
          PlainMatrix(c).template store<decltype(type)>(row + i, static_cast<int>(smaller(rows - i, 16)), m_col, m_cols,
                                                        values + i * pitch, pitch);
      });
      return;
    }
    // The tile as a matrix with C's own row and column numbers.
    Operand source;
    source.row_stride = pitch;
    source.data = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(values) -
                                          static_cast<uintptr_t>(row * pitch + m_col) * sizeof(float));
    const int64_t block = c.format.block_size;
    const BlockTasks::Part part{row, row + rows, m_col / block, (m_col + m_cols + block - 1) / block};
    with_encoder(c.format, m_problem.quantize.non_finite, [&](auto encoder) {
      using Encoder = typename decltype(encoder)::type;
      const TensorScalePair pair = c.tensor_scale != nullptr ? *c.tensor_scale : TensorScalePair{};
      RowQuantizer<FloatType, Encoder>(source, c)(Encoder(m_problem.quantize.scale_rule, pair), part,
                                                  row + m_slice.c_scale_shift);
    });
  }

  const Problem& m_problem;
  const EpilogueData& m_data;
  const ProductSlice& m_slice;
  int64_t m_col = 0;  ///< of the tile at hand
  int m_cols = 0;
  float m_decode_a, m_decode_b, m_alpha, m_expert_scale;
  alignas(64) float m_bias[most_cols];
  alignas(64) float m_bias_of_ups[most_cols / 2];
};

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE

#endif
