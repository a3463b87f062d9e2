#include <Microscale_Avx512_QuantizeRows.hpp>
#include <Microscale_Avx512_TensorScale.hpp>

namespace microscale::MICROSCALE_AVX512_NAMESPACE {
namespace {

template <class Type, class Encoder>
void run(const Problem& problem, const Native& native) {
  const Encoder encoder(problem.quantize.scale_rule,
                        resolve_tensor_scale<Type>(problem, native, PlainMatrix(problem.a).columns_contiguous(),
                                                   [](int64_t) { return true; }));
  const RowQuantizer<Type, Encoder> quantizer(problem.a, problem.c);
  const int64_t rows = problem.c.rows, tile = quantizer.scales().tile_rows();
  const BlockTasks tasks((rows + tile - 1) / tile * tile, quantizer.blocks(), native.concurrency);
  parallel_for(native, tasks.count(), [&](int64_t task) {
    BlockTasks::Part part = tasks[task];
    for (int64_t r = larger(part.row_begin, rows); r < part.row_end; ++r)
      quantizer.clear_scales(part, r, part.block_begin);
    part.row_end = smaller(part.row_end, rows);
    if (part.row_begin < part.row_end) quantizer(encoder, part, part.row_begin);
  });
}

}  // namespace

Status quantize(const Problem& problem, const Config&, void*, const Native& native) {
  with_type(problem.a.format, [&](auto type) {
    with_encoder(problem.c.format, problem.quantize.non_finite,
                 [&](auto encoder) { run<decltype(type), typename decltype(encoder)::type>(problem, native); });
  });
  return {};
}

}  // namespace microscale::MICROSCALE_AVX512_NAMESPACE
