#ifndef MICROSCALE_GPUPLANNING_HPP
#define MICROSCALE_GPUPLANNING_HPP

#include <Microscale_Devices.hpp>
#include <Microscale_ProblemTraits.hpp>

#include <cstdint>

// What the targets for GPUs have in common.
namespace microscale::Impl {

/// Whether all pointers, pitches and strides of codes are multiples of 16 bytes, as vector loads and TMA want it.
bool is_aligned_16(const Operand& operand);

/// What C and the epilogue of a product need that no fused kernel gives, in words; null if there is nothing.
/// `is_written` tells the block formats that the kernel can quantize to, `layout` where it puts their scales.
const char* unsupported_output(const Problem& problem, bool (*is_written)(FormatId), ScaleLayout layout);

/// quantize, grouped_quantize, dequantize and interleave_scales for the block formats that `is_known` tells, with scales
/// that are linear or in `layout`.
Support supports_conversion(const Problem& problem, bool (*is_known)(FormatId), ScaleLayout layout);

/// The device of Microscale_Devices.hpp that the target of this name is made for.
const Device& device_of(const char* target);

/// Estimated seconds: the launch, and the longer of memory's time and of the tiles' time, with idle units and with what
/// tiles have outside of C. `config` is not looked at for conversions.
double planned_cost(const Problem& problem, const Config& config, const Device& device);

}  // namespace microscale::Impl

#endif
