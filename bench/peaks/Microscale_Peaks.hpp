#ifndef MICROSCALE_PEAKS_HPP
#define MICROSCALE_PEAKS_HPP

#include <cstdint>
#include <functional>

// What this machine can do at best: instructions in registers, and memory. Shares of these are comparable between
// machines. No Kokkos.
namespace microscale::bench {

/// What may bound an operation. The first three are rates of one instruction at the widest vectors that the processor
/// has, with nothing else to do.
enum class Ceiling : std::uint8_t {
  vpdpbusd,   ///< products of 8-bit integers, summed (AVX-512 VNNI); 2 operations a product
  vdpbf16ps,  ///< products of bfloat16, summed (AVX-512 BF16); 2 operations a product
  fma,        ///< binary32 multiply-add; multiplication and addition where there is no such instruction
  read,       ///< bytes read from memory that is in no cache
  copy,       ///< bytes copied there: a byte that is read and written counts once
};
inline constexpr Ceiling all_ceilings[] = {Ceiling::vpdpbusd, Ceiling::vdpbf16ps, Ceiling::fma, Ceiling::read,
                                           Ceiling::copy};

/// The name of the instruction, "read" or "copy".
const char* name(Ceiling ceiling);
/// Whether it counts bytes; operations otherwise.
constexpr bool is_bandwidth(Ceiling ceiling) { return ceiling == Ceiling::read || ceiling == Ceiling::copy; }
/// Whether this processor has it.
bool has(Ceiling ceiling);

/// Bytes beyond which data is in no cache (at least 64 MiB, at most 512 MiB).
std::int64_t uncached_bytes();

/// A stopwatch for work on `threads` threads: processor time of the process for one (others may share the machine), the
/// clock on the wall for more.
class Stopwatch {
 public:
  explicit Stopwatch(int threads);
  double seconds() const;

 private:
  bool m_processor_time;
  double m_start;
};

/// The ceilings of `threads` threads, each the best of all measurements so far.
class Peaks {
 public:
  explicit Peaks(int threads) : m_threads(threads) {}

  /// Measures once more, for about `seconds`.
  void measure(Ceiling ceiling, double seconds);
  /// Operations or bytes a second; 0 if it was not measured or the processor does not have it.
  double rate(Ceiling ceiling) const { return m_rates[static_cast<int>(ceiling)]; }
  int threads() const { return m_threads; }

 private:
  int m_threads;
  double m_rates[sizeof all_ceilings / sizeof all_ceilings[0]]{};
};

}  // namespace microscale::bench

#endif
