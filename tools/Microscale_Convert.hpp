#ifndef MICROSCALE_TOOLS_CONVERT_HPP
#define MICROSCALE_TOOLS_CONVERT_HPP

#include <Microscale_ErrorSums.hpp>
#include <Microscale_FileFormats.hpp>
#include <Microscale_Safetensors.hpp>
#include <Microscale_Scale.hpp>
#include <Microscale_TensorScalePair.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

// The tool's computations, done by the library on Kokkos' default host execution space. Each function returns when its
// result is there; Kokkos must be initialized. Not thread-safe.
namespace microscale::tools {

/// Rows of a plain matrix, row-major without gaps, of a quantizable dtype. `data` need not be aligned.
struct PlainRows {
  Dtype dtype;
  const std::byte* data;
  std::int64_t rows;
  std::int64_t cols;
};

/// Rows of a block-scaled matrix with linear scales, both without gaps.
struct BlockRows {
  FileFormat format;
  const std::byte* data;
  const std::byte* scales;
  TensorScalePair tensor_scale;
  std::int64_t rows;
  std::int64_t cols;
};

/// The tensor scale that the library gives a whole tensor; (1, 1) for formats without one.
TensorScalePair dynamic_tensor_scale(FileFormat format, const PlainRows& tensor);

/// Quantizes rows into `data` and `scales`, which are BlockRows of the same shape.
void quantize_rows(const PlainRows& source, FileFormat format, ScaleRule rule, TensorScalePair tensor_scale,
                   std::byte* data, std::byte* scales);

/// Dequantizes rows into `result`, aligned, rows x cols of `dtype` (F32, F16 or BF16).
void dequantize_rows(const BlockRows& source, Dtype dtype, std::byte* result);

/// `count` values code * scale, one binary32 product rounded to `dtype`; `codes` is F8_E4M3 or F8_E5M2.
void dequantize_fp8(Dtype codes, const std::byte* data, std::int64_t count, float scale, Dtype dtype,
                    std::byte* result);

/// The values of rows in double, exactly those of the file.
void values_of(const PlainRows& source, double* result);

/// The largest magnitude that each block can hold (rows x scale columns).
std::vector<double> block_limits(const BlockRows& source);

/// `limits` are those of block_limits for b with blocks of `block` elements, or empty.
ErrorSums measure(const double* a, const double* b, std::int64_t rows, std::int64_t cols,
                  std::span<const double> limits, std::int64_t block);

/// Starts and stops Kokkos; constructed only by commands that compute.
class KokkosSession {
 public:
  KokkosSession();
  KokkosSession(const KokkosSession&) = delete;
  KokkosSession& operator=(const KokkosSession&) = delete;
  ~KokkosSession();
};

}  // namespace microscale::tools

#endif
