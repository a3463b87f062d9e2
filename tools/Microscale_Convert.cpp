#include <Kokkos_Core.hpp>
#include <Microscale_Convert.hpp>
#include <Microscale_Dequantize.hpp>
#include <Microscale_Quantize.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace microscale::tools {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Host = Kokkos::HostSpace;
using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Host, Unmanaged>;

/// Calls function(T{}) with the element type that a plain dtype stands for.
template <class Function>
decltype(auto) visit_dtype(Dtype dtype, Function&& function) {
  switch (dtype) {
    case Dtype::F64:
      return function(double{});
    case Dtype::F32:
      return function(float{});
    case Dtype::F16:
      return function(half{});
    case Dtype::BF16:
      return function(bf16{});
    default:
      throw std::logic_error("no values of " + std::string(to_string(dtype)) + " can be read");
  }
}

/// The rows as a View; a file's bytes may lie anywhere, so they are copied if T cannot be read where they are.
template <class T>
class TypedRows {
 public:
  explicit TypedRows(const PlainRows& rows) {
    const std::byte* data = rows.data;
    if (reinterpret_cast<std::uintptr_t>(data) % alignof(T) != 0) {
      m_copy.resize(static_cast<std::size_t>(rows.rows * rows.cols));
      std::memcpy(m_copy.data(), data, m_copy.size() * sizeof(T));
      data = reinterpret_cast<const std::byte*>(m_copy.data());
    }
    view = Matrix<const T>(reinterpret_cast<const T*>(data), static_cast<std::size_t>(rows.rows),
                           static_cast<std::size_t>(rows.cols));
  }
  Matrix<const T> view;

 private:
  std::vector<T> m_copy;
};

/// The block-scaled rows as a matrix of the library.
template <class F>
BlockScaledMatrix<F, Host> wrap(std::byte* data, std::byte* scales, TensorScalePair pair, std::int64_t rows,
                                std::int64_t cols) {
  const auto bytes = [&](std::byte* pointer, std::int64_t row_bytes) {
    return Matrix<std::uint8_t>(reinterpret_cast<std::uint8_t*>(pointer), static_cast<std::size_t>(rows),
                                static_cast<std::size_t>(row_bytes));
  };
  typename BlockScaledMatrix<F, Host>::tensor_scale_type tensor_scale;
  if constexpr (F::tensor_scale) {
    tensor_scale = typename BlockScaledMatrix<F, Host>::tensor_scale_type("microscale::tool::tensor_scale");
    tensor_scale() = pair;
  }
  return BlockScaledMatrix<F, Host>::wrap(bytes(data, packed_bytes<F>(cols)), bytes(scales, block_count<F>(cols)),
                                          tensor_scale, rows, cols);
}

template <class F>
BlockScaledMatrix<F, Host> wrap(const BlockRows& source) {
  // The library's matrix has no read-only form; dequantize does not write to it.
  return wrap<F>(const_cast<std::byte*>(source.data), const_cast<std::byte*>(source.scales), source.tensor_scale,
                 source.rows, source.cols);
}

/// Largest finite magnitude, each value rounded to binary32 first.
template <class T>
float finite_amax(const Matrix<const T>& view) {
  float amax = 0;
  const auto* const data = view.data();
  Kokkos::parallel_reduce(
      "microscale::tool::amax", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(0, view.size()),
      [=](std::int64_t i, float& largest) {
        const float magnitude = std::fabs(static_cast<float>(data[i]));
        if (magnitude > largest && magnitude <= std::numeric_limits<float>::max()) largest = magnitude;
      },
      Kokkos::Max<float>(amax));
  return amax;
}

}  // namespace

TensorScalePair dynamic_tensor_scale(FileFormat format, const PlainRows& tensor) {
  return visit_format(format, [&](auto f) -> TensorScalePair {
    using F = decltype(f);
    if constexpr (!F::tensor_scale)
      return {};
    else
      return visit_dtype(tensor.dtype, [&](auto t) {
        const TypedRows<decltype(t)> rows(tensor);
        return pair_from_amax<F>(finite_amax(rows.view));
      });
  });
}

void quantize_rows(const PlainRows& source, FileFormat format, ScaleRule rule, TensorScalePair tensor_scale,
                   std::byte* data, std::byte* scales) {
  visit_format(format, [&](auto f) {
    using F = decltype(f);
    const auto matrix = wrap<F>(data, scales, tensor_scale, source.rows, source.cols);
    QuantizeOptions options;
    options.scale_rule = rule;
    if constexpr (F::tensor_scale) options.tensor_scale = TensorScale::stored();
    visit_dtype(source.dtype, [&](auto t) {
      const TypedRows<decltype(t)> rows(source);
      const Exec exec;
      quantize(exec, rows.view, matrix, options);
      exec.fence("microscale::tool::quantize");
    });
  });
}

void dequantize_rows(const BlockRows& source, Dtype dtype, std::byte* result) {
  visit_format(source.format, [&](auto f) {
    const auto matrix = wrap<decltype(f)>(source);
    visit_dtype(dtype, [&](auto t) {
      using T = decltype(t);
      const Matrix<T> view(reinterpret_cast<T*>(result), static_cast<std::size_t>(source.rows),
                           static_cast<std::size_t>(source.cols));
      const Exec exec;
      dequantize(exec, matrix, view);
      exec.fence("microscale::tool::dequantize");
    });
  });
}

void dequantize_fp8(Dtype codes, const std::byte* data, std::int64_t count, float scale, Dtype dtype,
                    std::byte* result) {
  const auto convert = [&](auto element) {
    visit_dtype(dtype, [&](auto t) {
      using T = decltype(t);
      T* const values = reinterpret_cast<T*>(result);
      Kokkos::parallel_for("microscale::tool::dequantize_fp8",
                           Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(0, count), [=](std::int64_t i) {
                             const auto code = static_cast<std::uint8_t>(data[i]);
                             values[i] = static_cast<T>(decltype(element)::decode(code) * scale);
                           });
      Exec().fence("microscale::tool::dequantize_fp8");
    });
  };
  codes == Dtype::F8_E4M3 ? convert(E4M3{}) : convert(E5M2{});
}

void values_of(const PlainRows& source, double* result) {
  visit_dtype(source.dtype, [&](auto t) {
    using T = decltype(t);
    const TypedRows<T> rows(source);
    const T* const data = rows.view.data();
    Kokkos::parallel_for("microscale::tool::values",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(0, source.rows * source.cols),
                         [=](std::int64_t i) {
                           if constexpr (std::is_same_v<T, double>)
                             result[i] = data[i];
                           else
                             result[i] = static_cast<double>(static_cast<float>(data[i]));
                         });
    Exec().fence("microscale::tool::values");
  });
}

std::vector<double> block_limits(const BlockRows& source) {
  return visit_format(source.format, [&](auto f) {
    using F = decltype(f);
    std::vector<double> limits(static_cast<std::size_t>(source.rows * block_count<F>(source.cols)));
    const std::uint8_t largest = F::element::encode(F::element::max);
    for (std::size_t i = 0; i < limits.size(); ++i)
      limits[i] = dequantize_code<F>(largest, F::scale::decode(static_cast<std::uint8_t>(source.scales[i])),
                                     source.tensor_scale.decode);
    return limits;
  });
}

ErrorSums measure(const double* a, const double* b, std::int64_t rows, std::int64_t cols,
                  std::span<const double> limits, std::int64_t block) {
  std::vector<ErrorSums> by_row(static_cast<std::size_t>(rows));
  ErrorSums* const sums = by_row.data();
  const double* const limit = limits.empty() ? nullptr : limits.data();
  const std::int64_t blocks = limits.empty() ? 0 : (cols + block - 1) / block;
  Kokkos::parallel_for("microscale::tool::measure", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(0, rows),
                       [=](std::int64_t r) {
                         ErrorSums sum;
                         for (std::int64_t c = 0; c < cols; ++c) {
                           const double x = a[r * cols + c], y = b[r * cols + c];
                           if (!std::isfinite(x) || !std::isfinite(y)) {
                             ++sum.non_finite;
                             continue;
                           }
                           const double error = std::fabs(x - y);
                           ++sum.count;
                           sum.aa += x * x;
                           sum.bb += y * y;
                           sum.ab += x * y;
                           sum.ee += error * error;
                           sum.abs_error += error;
                           sum.max_abs_error = std::max(sum.max_abs_error, error);
                           if (y == 0 && x != 0) ++sum.zeroed;
                           if (limit != nullptr && std::fabs(x) > std::fabs(y) &&
                               std::fabs(y) == limit[r * blocks + c / block] && y != 0)
                             ++sum.saturated;
                         }
                         sums[r] = sum;
                       });
  Exec().fence("microscale::tool::measure");
  ErrorSums total;
  for (const auto& sum : by_row) total += sum;
  return total;
}

KokkosSession::KokkosSession() { Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true)); }

KokkosSession::~KokkosSession() { Kokkos::finalize(); }

}  // namespace microscale::tools
