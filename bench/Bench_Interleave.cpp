#include <Microscale_Bench.hpp>

// interleave_scales between the linear layout and the others. The rate counts each scale once, without padding.
namespace microscale::bench {
namespace {

void add_interleave(std::vector<Case>& cases, const Extents& e, ScaleLayout from_layout, ScaleLayout to_layout) {
  const double scales = static_cast<double>(e.rows * block_count<NVFP4>(e.cols));
  cases.push_back({std::string("interleave_scales/") + name(from_layout) + '/' + name(to_layout) + extent("M", e.rows) +
                       extent("K", e.cols) + backend_and_threads(),
                   Ceiling::copy, 0, scales, [=] {
                     const BlockScaledMatrix<NVFP4, Space> source("source", e.rows, e.cols, from_layout);
                     quantize(random_matrix<float>(e.rows, e.cols), source);
                     auto from = repeat(turns(scales), [&] {
                       const ScaleMatrix<Space> copy("from", e.rows, source.blocks(), from_layout);
                       Kokkos::deep_copy(copy.view(), source.scales());
                       return copy;
                     });
                     const ScaleMatrix<Space> to("to", e.rows, source.blocks(), to_layout);
                     Trial trial{waited([=](const Exec& exec) mutable {
                       interleave_scales(exec, from.next(), to, {.backend = measured_backend()});
                     })};
                     add_reference(trial, waited([=](const Exec& exec) mutable {
                                     reference::interleave_scales(exec, from.next(), to);
                                   }));
                     return trial;
                   }});
}

}  // namespace

void add_interleaves(std::vector<Case>& cases) {
  for (const Extents& e : conversions)
    for (const ScaleLayout tiled : {ScaleLayout::tcgen, ScaleLayout::cdna4, ScaleLayout::tile_8x4}) {
      add_interleave(cases, e, ScaleLayout::linear, tiled);
      add_interleave(cases, e, tiled, ScaleLayout::linear);
    }
}

}  // namespace microscale::bench
