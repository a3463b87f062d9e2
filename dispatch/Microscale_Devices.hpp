#ifndef MICROSCALE_DEVICES_HPP
#define MICROSCALE_DEVICES_HPP

#include <Microscale_Interface.hpp>

#include <array>
#include <span>

// Hardware by name, as data: what the best kernel could reach.
namespace microscale {

/// In what a product can be multiplied: the narrowest first. Each can do what those before it can, but fp4_block16
/// alone and from bf16 on have UE4M3 block scales (fp4 to fp8 have E8M0 ones).
enum class Precision { fp4_block16, fp4, fp6, fp8, bf16, fp32 };
inline constexpr int precision_count = static_cast<int>(Precision::fp32) + 1;

const char* to_string(Precision precision);

/// The narrowest precision in which products of these formats are exact, before the hardware is asked.
Precision precision_of(FormatId a, FormatId b);

struct Device {
  const char* name;
  const char* target;       ///< the backend that is made for it
  int units;                ///< multiprocessors, compute units or threads: what one tile of work occupies
  double bytes_per_second;  /// of its memory
  /// FLOP/s by Precision, dense; 0 where it has no instruction whose products are within the library's bound.
  std::array<double, precision_count> flops_per_second;
  const char* source;  ///< where the numbers are from
};

/// The devices that are known by name.
std::span<const Device> devices();

/// In what this device multiplies such products: the first from precision_of() on that it has and that has the scales.
Precision precision_on(const Device& device, FormatId a, FormatId b);

}  // namespace microscale

#endif
