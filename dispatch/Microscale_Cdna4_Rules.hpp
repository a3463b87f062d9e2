#ifndef MICROSCALE_CDNA4_RULES_HPP
#define MICROSCALE_CDNA4_RULES_HPP

#include <Microscale_Interface.hpp>

#include <cstdint>
#include <optional>
#include <string>

// How a matmul of blocks of 32 is tiled on CDNA4, and what the hardware allows. Bands and constraints are those of
// Modular's block_scaled_matmul_amd and its grouped sibling, measured on MI355X. docs/dispatch.md says how to add a row.
namespace microscale::Impl {

/// A workgroup computes bm x bn of C in steps of bk elements, each of its waves wm x wn.
struct Cdna4Config {
  std::int32_t bm = 128;
  std::int32_t bn = 128;
  std::int32_t bk = 128;
  std::int32_t wm = 64;
  std::int32_t wn = 64;
  std::int32_t split_k = 1;
  std::int32_t groups_per_cu = 0;  ///< persistent workgroups a compute unit; 0: a workgroup for each tile
  bool streaming = false;          ///< b is not kept in caches
  bool deep_prefetch = false;      ///< a is loaded two tiles ahead
  /// Only a goes through LDS, b and all scales from memory to registers: the grouped kernel.
  bool direct_b = false;

  bool operator==(const Cdna4Config&) const = default;
};

std::string to_string(const Cdna4Config& config);

/// What the constraints depend on.
struct Cdna4Problem {
  int bits_a = 4;  ///< of an element: 4, 6 or 8
  int bits_b = 4;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool grouped = false;
};

// Of the MI355X. Source: CDNA4 ISA and Modular's kernels.
inline constexpr std::int32_t CDNA4_UNITS = 256;
inline constexpr std::int32_t CDNA4_LDS_BYTES = 160 * 1024;
inline constexpr std::int64_t CDNA4_WORKSPACE_LIMIT = std::int64_t{128} << 20;

/// LDS of a workgroup: tiles of a (and b), and the scales that go through it.
std::int64_t cdna4_lds_bytes(const Cdna4Config& config, const Cdna4Problem& problem);

/// Partial sums of a split K, binary32; 0 without a split.
std::int64_t cdna4_workspace_bytes(const Cdna4Config& config, std::int64_t m, std::int64_t n);

/// The constraint that the configuration breaks, in words of static lifetime; null if it can run.
const char* violated_rule(const Cdna4Config& config, const Cdna4Problem& problem);

/// Into how many parts K is split: the largest s >= 2 that divides the tiles of 256 along K, leaves 2 tiles a part and
/// has ceil(n / 128) * s <= 2 * 256 workgroups; 1 if there is none.
std::int32_t cdna4_split_count(std::int64_t n, std::int64_t k);

/// Bands of m for one shape of weights with elements of one byte; the first whose most_m is not below m counts.
struct Cdna4DenseRow {
  std::int64_t n;
  std::int64_t k;
  std::int64_t most_m;
  std::int32_t bm, bn, bk, wm, wn;
};
inline constexpr Cdna4DenseRow MXFP8_TUNED_TILES[] = {
    {6144, 2048, 16, 16, 32, 256, 16, 16},   //
    {6144, 2048, 32, 32, 128, 256, 32, 32},  //
    {6144, 2048, 128, 64, 64, 256, 32, 32},  //
    {2304, 6144, 16, 16, 64, 256, 16, 16},   //
    {2560, 6144, 16, 16, 64, 256, 16, 16},
};

/// The dense rule. Never without an answer for k a multiple of 128.
Cdna4Config cdna4_dense_config(const Cdna4Problem& problem);

/// A band of the grouped rule: for estimates of all rows together up to `most_m`.
struct Cdna4GroupedRow {
  std::int64_t n;
  std::int64_t k;
  std::int64_t least_m;
  std::int64_t most_m;
  std::int32_t bm, bn, bk, wn;
  std::int32_t groups_per_cu;
  bool streaming;
  bool deep_prefetch;
};

/// Without end: the last band of a shape.
inline constexpr std::int64_t UNBOUNDED_M = INT64_MAX;

// The first row that fits counts.
inline constexpr Cdna4GroupedRow CDNA4_GROUPED_BANDS[] = {
    // n, k, estimate from, to, bm, bn, bk, wn, groups a unit, streaming, deep
    {4096, 7168, 1, 1, 16, 64, 512, 16, 1, false, false},
    {4096, 7168, 0, 20, 16, 64, 512, 16, 2, false, false},
    {4096, 7168, 0, 1023, 16, 128, 512, 32, 2, true, false},
    {4096, 7168, 0, 2047, 32, 128, 512, 32, 2, true, false},
    {4096, 7168, 0, 4095, 64, 128, 512, 64, 2, true, false},
    {4096, 7168, 0, UNBOUNDED_M, 64, 128, 512, 64, 0, false, false},
    {7168, 2048, 1, 1, 16, 64, 512, 16, 1, false, false},
    {7168, 2048, 0, 3, 16, 64, 512, 16, 2, false, false},
    {7168, 2048, 0, 1023, 16, 128, 512, 32, 2, true, false},
    {7168, 2048, 0, 2047, 32, 128, 512, 32, 2, false, false},
    {7168, 2048, 0, 3072, 64, 128, 512, 64, 2, false, false},
    {7168, 2048, 0, 6144, 128, 128, 512, 64, 2, false, false},
    {7168, 2048, 0, 9216, 64, 128, 512, 64, 2, false, true},
    {7168, 2048, 0, UNBOUNDED_M, 64, 128, 512, 64, 0, false, true},
};

/// Other shapes: persistent workgroups below this estimate.
inline constexpr std::int64_t PERSISTENT_BELOW_M = 4096;

/// The grouped rule. k a multiple of 512 and n of 32: bands of `estimated_total_m`, b from memory to registers.
/// Otherwise the dense kernel for each expert, by the rows of the largest one.
Cdna4Config cdna4_grouped_config(const Cdna4Problem& problem, std::int64_t estimated_total_m,
                                 std::int64_t max_rows_of_an_expert);

/// As the generic Config has it, without automatic members but `stages`, which it does not use.
Config to_config(const Cdna4Config& config);

/// The configuration that a caller's one means, beside `own`, which the rules chose. 0 is automatic; with tile_m, tile_n
/// or tile_k given, what is no number (persistent, streaming, deep_prefetch) is the caller's too, and automatic waves
/// are as large as they may be.
Cdna4Config overridden(const Cdna4Config& own, const Config& config);

}  // namespace microscale::Impl

#endif
