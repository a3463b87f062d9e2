#ifndef MICROSCALE_SM100_CONFIG_HPP
#define MICROSCALE_SM100_CONFIG_HPP

#include <Microscale_Interface.hpp>

#include <cstdint>
#include <optional>
#include <string>

// How a block-scaled matmul is tiled on Blackwell, and what the hardware allows. Rules choose such configurations
// (Microscale_Sm100_GroupedRules.hpp, Microscale_Sm100_DenseRules.hpp); this file says which ones can run at all.
namespace microscale::Impl {

/// The instruction, tcgen05.mma kind::…, with the scales that this library has: UE4M3 for 16 (mxf4nvf4), E8M0 for 32.
enum class Sm100Kind : std::uint8_t { mxf4nvf4, mxf4, mxf8f6f4 };

const char* to_string(Sm100Kind kind);

/// The router by formats: the instruction that multiplies these two, if there is one. FP4 by FP4 is packed, every other
/// mix of MXFP8, MXFP6 and MXFP4 is in containers of a byte.
std::optional<Sm100Kind> sm100_kind(FormatId a, FormatId b);

/// The MMA's side M is `mma_m` rows of A, or of B if swap_ab; side N is `mma_n` rows of the other.
struct Sm100Config {
  bool swap_ab = false;
  std::int32_t mma_m = 128;
  std::int32_t mma_n = 128;
  std::int32_t cta_group = 1;  ///< multiprocessors that share an MMA
  std::int32_t cluster_m = 1;
  std::int32_t cluster_n = 1;
  bool small_bn = false;  ///< the kernel whose warps load the scales of side N, for any mma_n
  std::int32_t k_group = 1;
  std::int32_t stages = 0;  ///< <= 0: as many as fit
  std::int32_t accumulator_stages = 1;
  std::int32_t clc_stages = 0;     ///< cluster launch control: tiles asked for ahead; 0: none
  std::int32_t block_swizzle = 0;  ///< 0 and 1: none

  bool operator==(const Sm100Config&) const = default;
};

std::string to_string(const Sm100Config& config);

/// What the constraints depend on.
struct Sm100Problem {
  Sm100Kind kind = Sm100Kind::mxf4nvf4;
  std::int64_t k = 0;
  bool grouped = false;
};

// Resources of a multiprocessor. Sources: PTX ISA 8.7 on tcgen05; the kernels of CUTLASS and Modular.
inline constexpr std::int32_t SM100_MULTIPROCESSORS = 148;
inline constexpr std::int32_t SM100_SHARED_BYTES = 232448;  ///< 227 KiB, the most a thread block can have
inline constexpr std::int32_t SM100_TENSOR_COLUMNS = 512;
inline constexpr std::int32_t SM100_ROW_BYTES = 128;  ///< of K in shared memory, a stage

/// Elements of K a stage: 256 of packed FP4, 128 in containers of a byte.
std::int32_t sm100_tile_k(Sm100Kind kind);

/// Stages that all of K takes.
std::int64_t sm100_k_iterations(Sm100Kind kind, std::int64_t k);

/// Bytes of shared memory of a thread block: one stage (its rows of A and B, their scales, barriers), and what is there
/// once (C on its way out, as float, twice; barriers; alignment).
std::int64_t sm100_stage_bytes(Sm100Kind kind, const Sm100Config& config);
std::int64_t sm100_fixed_bytes(const Sm100Config& config);

/// Columns of tensor memory: accumulators, and the scales of every stage.
std::int64_t sm100_tensor_columns(Sm100Kind kind, const Sm100Config& config);

/// As many stages as shared and tensor memory have room for, a multiple of k_group; 0 if that is none.
std::int32_t sm100_automatic_stages(Sm100Kind kind, const Sm100Config& config);

/// The same configuration with its stages counted.
Sm100Config sm100_with_stages(Sm100Kind kind, Sm100Config config);

/// The constraint that the configuration breaks, in words of static lifetime; null if it can run.
const char* violated_rule(const Sm100Config& config, const Sm100Problem& problem);

/// As the generic Config has it, without automatic members; 1 there is 0 here for block_swizzle and scheduler_stages.
Config to_config(const Sm100Config& config, Sm100Kind kind);

/// The configuration that a caller's one means, beside `own`, which the rules chose. 0 is automatic. swap_ab, tile_n
/// and cta_group are taken as they are if one of them, or tile_m, is given at all; otherwise the three are the rules'.
/// stages <= 0 is as many as fit.
Sm100Config overridden(const Sm100Config& own, const Config& config, const Sm100Problem& problem);

}  // namespace microscale::Impl

#endif
