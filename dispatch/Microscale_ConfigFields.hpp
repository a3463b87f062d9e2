#ifndef MICROSCALE_CONFIGFIELDS_HPP
#define MICROSCALE_CONFIGFIELDS_HPP

#include <Microscale_Interface.hpp>

// The one list of what is in a Config, by name: text, JSON and tuning files come from it.
namespace microscale::Impl {

/// Calls visit(name, member) for each member of a Config, const or not, in order; members are std::int32_t or bool.
/// Does not compile when Config gains a member that is not listed here.
template <class C, class Visitor>
void for_each_field(C& config, Visitor&& visit) {
  auto& [tile_m, tile_n, tile_k, stages, cluster, split_k, swap_ab, cluster_n, cta_group, k_group, block_swizzle,
         scheduler_stages, accumulator_stages, warp_m, warp_n, groups_per_unit, small_n, persistent, streaming,
         deep_prefetch] = config;
  visit("tile_m", tile_m);
  visit("tile_n", tile_n);
  visit("tile_k", tile_k);
  visit("stages", stages);
  visit("cluster", cluster);
  visit("split_k", split_k);
  visit("swap_ab", swap_ab);
  visit("cluster_n", cluster_n);
  visit("cta_group", cta_group);
  visit("k_group", k_group);
  visit("block_swizzle", block_swizzle);
  visit("scheduler_stages", scheduler_stages);
  visit("accumulator_stages", accumulator_stages);
  visit("warp_m", warp_m);
  visit("warp_n", warp_n);
  visit("groups_per_unit", groups_per_unit);
  visit("small_n", small_n);
  visit("persistent", persistent);
  visit("streaming", streaming);
  visit("deep_prefetch", deep_prefetch);
}

}  // namespace microscale::Impl

#endif
