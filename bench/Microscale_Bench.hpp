#ifndef MICROSCALE_BENCH_HPP
#define MICROSCALE_BENCH_HPP

#include <Microscale.hpp>
#include <Microscale_BenchCases.hpp>
#include <Microscale_Peaks.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// What all benchmarks share: a case, its name, its data.
namespace microscale::bench {

using Exec = Kokkos::DefaultExecutionSpace;
using Space = Exec::memory_space;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Space>;

/// Somebody else who does the same. `set` allocates and fills what that takes, and returns what makes one call and waits
/// for it; empty if this machine cannot.
struct Peer {
  std::string name;
  std::function<std::function<void()>()> set;
};

/// A case with its operands allocated and filled.
struct Trial {
  std::function<void()> ours;
  std::vector<Peer> peers{};
};

struct Case {
  std::string name;            ///< op/formats/M:../N:../K:../backend:../threads:..
  Ceiling ceiling{};           ///< what bounds it; its rate is in bytes or operations as that of the ceiling is
  double operations = 0;       ///< 2 M N K of a product, 0 of a conversion
  double bytes = 0;            ///< read and written at least once; of a conversion, those of the plain side
  std::function<Trial()> set;  ///< throws if the backend refuses it

  double amount() const { return is_bandwidth(ceiling) ? bytes : operations; }
};

/// All cases of this machine, with as many threads as the execution space has.
std::vector<Case> all_cases();
// Each adds the cases of its file.
void add_conversions(std::vector<Case>& cases);
void add_interleaves(std::vector<Case>& cases);
void add_products(std::vector<Case>& cases);
void add_grouped(std::vector<Case>& cases);

/// Who is measured: the first backend that this machine can run, the reference if there is none.
std::string_view measured_backend();
/// The other way to do the same, for comparison: the reference, unless it is what is measured.
void add_reference(Trial& trial, std::function<void()> call);

/// MXFP8_E4M3 of mxfp8_e4m3; F32 and BF16.
std::string upper(std::string_view name);
template <class T>
std::string type_name() {
  if constexpr (std::is_same_v<T, float>)
    return "F32";
  else if constexpr (std::is_same_v<T, bf16>)
    return "BF16";
  else
    return upper(T::name);
}
inline std::string extent(const char* letter, std::int64_t n) {
  return std::string("/") + letter + ':' + std::to_string(n);
}
/// The end of every name.
std::string backend_and_threads();

/// Calls f with each type in turn.
template <class... T, class F>
void for_each_type(Types<T...>, const F& f) {
  (f(std::type_identity<T>()), ...);
}

/// A function that makes one call of `launch` on an instance and waits for it.
template <class Launch>
std::function<void()> waited(Launch launch) {
  return [launch, exec = Exec()]() mutable {
    launch(exec);
    exec.fence();
  };
}

/// Bytes of an operand.
template <class T>
double bytes(std::int64_t rows, std::int64_t cols) {
  if constexpr (BlockFormat<T>)
    return static_cast<double>(serialized_bytes<T>(rows, cols));
  else
    return static_cast<double>(rows * cols) * sizeof(T);
}

/// Operands that are used in turn, so that what is read is in no cache.
template <class T>
class Turns {
 public:
  explicit Turns(std::vector<T> items) : m_items(std::move(items)) {}
  const T& next() {
    m_at = (m_at + 1) % m_items.size();
    return m_items[m_at];
  }
  /// The same of f of each.
  template <class F>
  auto map(const F& f) const {
    std::vector<decltype(f(m_items[0]))> items;
    for (const T& item : m_items) items.push_back(f(item));
    return Turns<decltype(f(m_items[0]))>(std::move(items));
  }

 private:
  std::vector<T> m_items;
  std::size_t m_at = 0;
};
/// How many operands of so many bytes that takes. Small ones (below 1 MiB) stay in the cache, as they would elsewhere.
inline std::size_t turns(double bytes) {
  return bytes < 1 << 20 ? 1 : static_cast<std::size_t>(static_cast<double>(uncached_bytes()) / bytes) + 1;
}
/// `count` times what `make` returns.
template <class Make>
auto repeat(std::size_t count, const Make& make) {
  using T = std::remove_cv_t<decltype(make())>;
  std::vector<T> items;
  while (items.size() < count) items.push_back(make());
  return Turns<T>(std::move(items));
}

template <class T>
Matrix<T> copy_of(const Matrix<T>& m) {
  Matrix<T> result(Kokkos::view_alloc("copy", Kokkos::WithoutInitializing), m.extent(0), m.extent(1));
  Kokkos::deep_copy(result, m);
  return result;
}
template <class Format>
BlockScaledMatrix<Format, Space> copy_of(const BlockScaledMatrix<Format, Space>& m) {
  const BlockScaledMatrix<Format, Space> result("copy", m.rows(), m.cols());
  Kokkos::deep_copy(result.data(), m.data());
  Kokkos::deep_copy(result.scales(), m.scales());
  if constexpr (Format::tensor_scale) Kokkos::deep_copy(result.tensor_scale(), m.tensor_scale());
  return result;
}

/// Values that are close to normally distributed, with the first in each 64 ten times as large, as in real weights.
template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t cols) {
  Matrix<T> result(Kokkos::view_alloc("values", Kokkos::WithoutInitializing), rows, cols);
  Kokkos::parallel_for(
      "microscale_bench::random_matrix", Kokkos::RangePolicy<Exec>(0, rows), KOKKOS_LAMBDA(const std::int64_t r) {
        for (std::int64_t c = 0; c < cols; ++c) {
          auto bits = static_cast<std::uint64_t>(r * cols + c + 1) * 0x9e3779b97f4a7c15u;
          bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
          bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
          bits ^= bits >> 31;
          float sum = 0;
          for (int i = 0; i < 64; i += 16) sum += static_cast<float>((bits >> i) & 0xffffu);
          const float normal = (sum * 0x1p-16f - 2.0f) * 1.732f;
          result(r, c) = T(normal * (c % 64 == 0 ? 10.0f : 1.0f));
        }
      });
  Kokkos::fence("microscale_bench::random_matrix");
  return result;
}

}  // namespace microscale::bench

#endif
