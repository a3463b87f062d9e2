#ifndef MICROSCALE_SM100_GROUPEDRULES_HPP
#define MICROSCALE_SM100_GROUPEDRULES_HPP

#include <Microscale_Sm100_Config.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

// How a grouped (MoE) matmul is tiled on Blackwell: by how many rows an expert has on average, and tuned rows. The
// numbers are those of Modular's grouped_matmul_nvfp4_dispatch, measured on B200. docs/dispatch.md says how to add a row.
namespace microscale::Impl {

/// Regimes by the average number of rows an expert, inclusive.
inline constexpr std::int64_t DECODE_AVG_M = 8;
inline constexpr std::int64_t SMALL_PREFILL_AVG_M = 64;

/// Stages where a decode has no tuned row; other regimes then have as many as fit.
inline constexpr std::int32_t DECODE_DEFAULT_STAGES = 6;

/// As many stages as fit.
inline constexpr std::int32_t AUTO_STAGES = -1;

/// The values are those of the column `regime` of tuned rows.
enum class Sm100Regime : std::int32_t { decode = 8, small_prefill = 64, large_prefill = -1 };

/// Stages for weights of n x k in one regime. There is no wildcard.
struct TunedStages {
  std::int64_t n;
  std::int64_t k;
  std::int32_t regime;  ///< 64: small prefill, -1: large prefill, 8: decode
  std::int32_t stages;
};

inline constexpr TunedStages NVFP4_TUNED_STAGES[] = {
    {4096, 7168, 64, 6}, {4096, 7168, -1, 7}, {7168, 2048, 64, 6}, {7168, 2048, -1, 6}, {7168, 256, -1, 6},
};

/// What the regimes decide, and what a caller may override.
struct Sm100GroupedChoice {
  bool AB_swapped = true;
  std::int32_t mma_bn = 8;
  std::int32_t cta_group = 1;
  std::int32_t stages = AUTO_STAGES;  ///< <= 0: as many as fit

  bool operator==(const Sm100GroupedChoice&) const = default;
};

/// What MXFP4 and MXFP8 had before they had regimes; kept to compare with, under the name "mx_fixed".
inline constexpr Sm100GroupedChoice MX_FIXED{false, 128, 1, AUTO_STAGES};

/// Whether `total` rows of `experts` experts are at most `limit` each on average. Nothing is divided and nothing
/// overflows; what is negative counts as 0.
constexpr bool average_at_most(std::int64_t total, std::int64_t experts, std::int64_t limit) {
  if (total <= 0) return true;
  if (experts <= 0) return false;
  return experts > std::numeric_limits<std::int64_t>::max() / limit || total <= experts * limit;
}

constexpr Sm100Regime sm100_regime(std::int64_t estimated_total_m, std::int64_t num_active_experts) {
  if (average_at_most(estimated_total_m, num_active_experts, DECODE_AVG_M)) return Sm100Regime::decode;
  if (average_at_most(estimated_total_m, num_active_experts, SMALL_PREFILL_AVG_M)) return Sm100Regime::small_prefill;
  return Sm100Regime::large_prefill;
}

/// The rule. MXFP4 and MXFP8 have the regimes but, so far, no tuned rows.
constexpr Sm100GroupedChoice sm100_grouped_choice(Sm100Kind kind, std::int64_t n, std::int64_t k, Sm100Regime regime) {
  const bool nvfp4 = kind == Sm100Kind::mxf4nvf4;
  const bool decode = regime == Sm100Regime::decode;
  if (nvfp4 && n == 512 && k == 7168) return {true, decode ? 64 : 128, 2, 6};
  Sm100GroupedChoice choice;
  if (!decode) choice = {true, regime == Sm100Regime::small_prefill ? 64 : 128, 2, AUTO_STAGES};
  if (nvfp4)
    for (const TunedStages& row : NVFP4_TUNED_STAGES)
      if (row.n == n && row.k == k && row.regime == static_cast<std::int32_t>(regime)) {
        choice.stages = row.stages;
        return choice;
      }
  if (decode) choice.stages = DECODE_DEFAULT_STAGES;
  return choice;
}

/// The caller's knobs, which are ignored unless `override_rules`.
constexpr Sm100GroupedChoice sm100_grouped_choice(Sm100Kind kind, std::int64_t n, std::int64_t k,
                                                  std::int64_t estimated_total_m, std::int64_t num_active_experts,
                                                  bool override_rules = false, Sm100GroupedChoice knobs = {}) {
  return override_rules ? knobs : sm100_grouped_choice(kind, n, k, sm100_regime(estimated_total_m, num_active_experts));
}

/// "mx_fixed"; nothing for other names.
constexpr std::optional<Sm100GroupedChoice> sm100_grouped_choice_named(std::string_view name) {
  if (name == "mx_fixed") return MX_FIXED;
  return {};
}

/// The whole configuration of a grouped matmul, its stages counted where they are automatic.
Sm100Config sm100_grouped_config(Sm100Kind kind, const Sm100GroupedChoice& choice);

/// The choice as what MatmulOptions::config takes; to be given to the call in order to have it.
Config to_config(const Sm100GroupedChoice& choice);

}  // namespace microscale::Impl

#endif
