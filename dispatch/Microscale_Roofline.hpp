#ifndef MICROSCALE_ROOFLINE_HPP
#define MICROSCALE_ROOFLINE_HPP

#include <Microscale_Devices.hpp>
#include <Microscale_Interface.hpp>

#include <optional>

// What a problem asks of hardware, whoever runs it, and how fast a device could be at best. All functions are pure.
namespace microscale {

/// Codes, scales (the padding of tiled layouts too) and plain values that move if every operand moves once. Tensor
/// scales, vectors of the epilogue and the arrays of groups are left out: they are small.
struct Work {
  double flops = 0;  ///< 2 m n k; 0 where nothing is multiplied
  double bytes_a = 0;
  double bytes_b = 0;  ///< grouped: of the experts in use
  double bytes_c = 0;  ///< written, and read where beta is not 0

  double bytes() const { return bytes_a + bytes_b + bytes_c; }
  /// FLOP a byte.
  double intensity() const { return bytes() > 0 ? flops / bytes() : 0; }
};

/// Of a planned problem or a real one. A grouped matmul has hints.estimated_total_m rows (all m without that hint), of
/// as many experts as hints.active_experts says (as there are slots without it), and of no more experts than rows.
Work work_of(const Problem& problem);

/// The least time that a device can take.
struct Roofline {
  Precision precision = Precision::fp32;  ///< in which products are made; without meaning where there are none
  double compute_seconds = 0;
  double memory_seconds = 0;

  double seconds() const { return compute_seconds > memory_seconds ? compute_seconds : memory_seconds; }
  bool memory_bound() const { return memory_seconds >= compute_seconds; }
};

Roofline roofline(const Problem& problem, const Device& device);

/// How a configuration spreads C over a device whose units (see Device::units) work on one tile at a time, or share one
/// (Config::cta_group), or have several (Config::groups_per_unit).
struct Waves {
  double tiles = 0;  ///< of C, counted once for each part of a split K
  double waves = 0;  ///< rounds that this takes, the last perhaps with idle units
};

/// Nothing for configurations without tile_m and tile_n. Rows of experts are taken as evenly spread.
std::optional<Waves> predicted_waves(const Problem& problem, const Config& config, const Device& device);

}  // namespace microscale

#endif
