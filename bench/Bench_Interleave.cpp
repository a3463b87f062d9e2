#include <Microscale_Bench.hpp>

// interleave_scales between the linear layout and the others. bytes/s counts each scale once, without padding.
namespace microscale::bench {
namespace {

void add_interleave(const Extents& e, ScaleLayout from_layout, ScaleLayout to_layout) {
  add(std::string("interleave_scales/") + name(from_layout) + '/' + name(to_layout) + extent("M", e.rows) +
          extent("K", e.cols),
      "reference", [=](benchmark::State& state) {
        const BlockScaledMatrix<NVFP4, Space> source("source", e.rows, e.cols, from_layout);
        quantize(random_matrix<float>("values", e.rows, e.cols), source);
        const ScaleMatrix<Space> from = scale_matrix(source);
        const ScaleMatrix<Space> to("to", from.rows(), from.blocks(), to_layout);
        measure(state, to.view().data(), {{"bytes/s", static_cast<double>(from.rows() * from.blocks())}},
                [&](const Exec& exec) { reference::interleave_scales(exec, from, to); });
      });
}

}  // namespace

void add_interleaves() {
  for (const Extents& e : conversions)
    for (const ScaleLayout tiled : {ScaleLayout::tcgen, ScaleLayout::cdna4, ScaleLayout::tile_8x4}) {
      add_interleave(e, ScaleLayout::linear, tiled);
      add_interleave(e, tiled, ScaleLayout::linear);
    }
}

}  // namespace microscale::bench
