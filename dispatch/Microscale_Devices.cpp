#include <Microscale_Devices.hpp>

#include <algorithm>

namespace microscale {
namespace {

Precision precision_of(FormatId format) {
  const int bits = 1 + format.element.exponent_bits + format.element.mantissa_bits;
  if (bits > 16) return Precision::fp32;
  if (bits > 8) return Precision::bf16;
  if (bits > 6) return Precision::fp8;
  if (bits > 4) return Precision::fp6;
  return format.scale == ScaleType::ue4m3 ? Precision::fp4_block16 : Precision::fp4;
}

bool has_ue4m3_scales(Precision precision) {
  return precision == Precision::fp4_block16 || precision >= Precision::bf16;
}

// Hopper multiplies FP8 too, but adds with fewer bits than binary32 has (DeepSeek-V3 technical report, 3.3.2), which
// is outside of the library's bound, so that its rate is not listed.
constexpr Device known[] = {
    {"B200",
     "sm100",
     148,
     8.0e12,
     {9.0e15, 9.0e15, 4.5e15, 4.5e15, 2.25e15, 8.0e13},
     "NVIDIA HGX B200 data sheet, for one of its GPUs, dense"},
    {"H200", "sm90", 132, 4.8e12, {0, 0, 0, 0, 9.89e14, 6.7e13}, "NVIDIA H200 (SXM) data sheet, dense"},
    {"MI355X",
     "cdna4",
     256,
     8.0e12,
     {0, 1.007e16, 1.007e16, 5.03e15, 2.52e15, 1.573e14},
     "AMD Instinct MI355X data sheet, dense"},
};

}  // namespace

const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::fp4_block16:
      return "fp4 in blocks of 16";
    case Precision::fp4:
      return "fp4";
    case Precision::fp6:
      return "fp6";
    case Precision::fp8:
      return "fp8";
    case Precision::bf16:
      return "bf16";
    case Precision::fp32:
      return "fp32";
  }
  return "unknown";
}

Precision precision_of(FormatId a, FormatId b) { return std::max(precision_of(a), precision_of(b)); }

std::span<const Device> devices() { return known; }

Precision precision_on(const Device& device, FormatId a, FormatId b) {
  const bool ue4m3 = a.scale == ScaleType::ue4m3 || b.scale == ScaleType::ue4m3;
  for (int p = static_cast<int>(precision_of(a, b)); p < precision_count; ++p)
    if (device.flops_per_second[static_cast<std::size_t>(p)] > 0 &&
        (!ue4m3 || has_ue4m3_scales(static_cast<Precision>(p))))
      return static_cast<Precision>(p);
  return Precision::fp32;
}

}  // namespace microscale
