// What ggml, and its fork in ik_llama.cpp, take for a product with FP4 weights. They are not packaged, so this is built by
// hand; docs/performance.md has the commands. Usage: ggml_matmul THREADS; 4-bit weights [N, K], activations [M, K] of
// floats, which these libraries quantize to 8 bits inside the timing.
#include <ggml-backend.h>
#include <ggml.h>
#include <Microscale_Peaks.hpp>
#if !defined(IK_LLAMA)
#include <ggml-cpu.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using microscale::bench::Stopwatch;

/// The memory that makes ggml repack weights when they are set; that of the CPU where there is none.
ggml_backend_buffer_type_t weight_buffer([[maybe_unused]] bool repacked) {
#if !defined(IK_LLAMA)
  if (repacked) {
    const auto device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    const auto extra = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
        ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
    for (auto type = extra(device); *type != nullptr; ++type)
      if (std::strcmp(ggml_backend_buft_name(*type), "CPU_REPACK") == 0) return *type;
  }
#endif
  return ggml_backend_cpu_buffer_type();
}

struct Weights {
  const char* name;
  ggml_type type;
  bool repacked;
};
#if defined(IK_LLAMA)
constexpr Weights all_weights[] = {{"MXFP4", GGML_TYPE_MXFP4, false}, {"MXFP4_R8", GGML_TYPE_MXFP4_R8, false}};
#else
constexpr Weights all_weights[] = {
    {"MXFP4 repacked", GGML_TYPE_MXFP4, true}, {"MXFP4", GGML_TYPE_MXFP4, false}, {"NVFP4", GGML_TYPE_NVFP4, false}};
#endif

void set_floats(ggml_tensor* tensor, std::mt19937& engine) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(ggml_nelements(tensor)));
  for (float& v : values) v = normal(engine);
  ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
}

void measure(ggml_backend_t cpu, const Weights& weights, std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
  const std::size_t row = ggml_row_size(weights.type, k), bytes = row * static_cast<std::size_t>(n);
  const std::size_t turns = m > 16 ? 1 : static_cast<std::size_t>(microscale::bench::uncached_bytes()) / bytes + 1;
  ggml_context* context =
      ggml_init({ggml_tensor_overhead() * (2 * turns + 8) + ggml_graph_overhead() * (turns + 1), nullptr, true});
  ggml_context* operands = ggml_init({ggml_tensor_overhead() * (turns + 8), nullptr, true});
  std::vector<ggml_tensor*> ws;
  while (ws.size() < turns) ws.push_back(ggml_new_tensor_2d(operands, weights.type, k, n));
  ggml_backend_buffer_t memory = ggml_backend_alloc_ctx_tensors_from_buft(operands, weight_buffer(weights.repacked));
  ggml_tensor* x = ggml_new_tensor_2d(context, GGML_TYPE_F32, k, m);
  std::vector<ggml_cgraph*> graphs;
  for (ggml_tensor* w : ws) {
    graphs.push_back(ggml_new_graph_custom(context, 8, false));
    ggml_build_forward_expand(graphs.back(), ggml_mul_mat(context, w, x));
  }
  ggml_backend_buffer_t scratch = ggml_backend_alloc_ctx_tensors(context, cpu);

  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  constexpr std::int64_t slice = 64;  // rows: some types are quantized several at once
  std::vector<float> values(static_cast<std::size_t>(slice * k));
  for (float& v : values) v = normal(engine);
  std::vector<char> data(bytes);
  for (std::int64_t r = 0; r < n; r += slice)
    ggml_quantize_chunk(weights.type, values.data(), data.data() + r * static_cast<std::int64_t>(row), 0, slice, k,
                        nullptr
#if defined(IK_LLAMA)
                        ,
                        nullptr
#endif
    );
  for (ggml_tensor* w : ws) ggml_backend_tensor_set(w, data.data(), 0, bytes);
  set_floats(x, engine);

  std::size_t turn = 0;
  const auto sample = [&](int calls) {
    const Stopwatch watch(threads);
    for (int i = 0; i < calls; ++i) ggml_backend_graph_compute(cpu, graphs[turn++ % turns]);
    return watch.seconds() / calls;
  };
  sample(1);
  const int calls = static_cast<int>(std::clamp(0.02 / sample(1), 1.0, 1e5));
  std::vector<double> seconds;
  for (int i = 0; i < 9; ++i) seconds.push_back(sample(calls));
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[4], operations = 2.0 * static_cast<double>(m * n * k);
  std::printf("%-15s M:%-4lld N:%lld K:%-6lld threads:%d  %10.6f s  %8.1f GFLOP/s  %6.1f GB/s of weights\n",
              weights.name, static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k), threads,
              median, operations / median * 1e-9, static_cast<double>(bytes) / median * 1e-9);
  std::fflush(stdout);
  ggml_backend_buffer_free(scratch);
  ggml_backend_buffer_free(memory);
  ggml_free(operands);
  ggml_free(context);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  ggml_backend_t cpu = ggml_backend_cpu_init();
  ggml_backend_cpu_set_n_threads(cpu, threads);
  for (const Weights& weights : all_weights) {
    measure(cpu, weights, 512, 4096, 4096, threads);
    measure(cpu, weights, 8, 4096, 4096, threads);
    measure(cpu, weights, 1, 4096, 14336, threads);
  }
  ggml_backend_free(cpu);
}
