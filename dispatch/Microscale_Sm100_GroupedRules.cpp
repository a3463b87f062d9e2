#include <Microscale_Sm100_GroupedRules.hpp>

namespace microscale::Impl {

Sm100Config sm100_grouped_config(Sm100Kind kind, const Sm100GroupedChoice& choice) {
  Sm100Config c;
  c.swap_ab = choice.AB_swapped;
  c.mma_m = 128 * choice.cta_group;
  c.mma_n = choice.mma_bn;
  c.cta_group = c.cluster_m = choice.cta_group;
  c.small_bn = choice.mma_bn < 64;
  c.stages = choice.stages;
  c.accumulator_stages = choice.mma_bn > 128 ? 1 : 2;
  c.clc_stages = 2;  // a warp looks up the next tile of the next expert
  c.block_swizzle = 8;
  return sm100_with_stages(kind, c);
}

Config to_config(const Sm100GroupedChoice& choice) {
  Config config;
  config.swap_ab = choice.AB_swapped;
  config.tile_n = choice.mma_bn;
  config.cta_group = choice.cta_group;
  config.stages = choice.stages;
  return config;
}

}  // namespace microscale::Impl
