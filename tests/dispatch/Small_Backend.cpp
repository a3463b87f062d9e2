#include <math.h>
#include <Microscale_BlockFormat.hpp>
#include <Microscale_Packing.hpp>
#include <Small_Backend.hpp>

// Nothing from the C++ standard library here: its inline functions would be compiled with this file's flags, and the
// linker might keep this copy of them for the whole program.
namespace microscale::backend_small {
namespace {

constexpr int block_size = MXFP4::block_size;
constexpr int panel = 8;  // columns that are multiplied together, one in each lane
constexpr Config default_config{.tile_m = 16, .tile_n = 32};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

/// `rows` rows of an operand as floats, in panels of `width` rows: [panels][blocks * block_size][width], and the
/// exponents of the scales as [panels][blocks][width]; 255 stays for NaN. Rows and codes that do not exist are zero.
struct Decoded {
  std::int64_t rows, blocks;
  int width;
  float* codes;
  std::int32_t* exponents;

  static std::int64_t bytes(std::int64_t rows, std::int64_t blocks, int width) {
    return round_up(ceil_div(rows, width) * width * blocks * (block_size + 1) * 4, 64);
  }
  static Decoded at(void* memory, std::int64_t rows, std::int64_t cols, int width) {
    const std::int64_t blocks = ceil_div(cols, block_size);
    float* codes = static_cast<float*>(memory);
    const std::int64_t count = ceil_div(rows, width) * width * blocks * block_size;
    return {rows, blocks, width, codes, reinterpret_cast<std::int32_t*>(codes + count)};
  }
  const float* codes_of(std::int64_t p) const { return codes + p * width * blocks * block_size; }
  const std::int32_t* exponents_of(std::int64_t p) const { return exponents + p * width * blocks; }
};

struct DecodeTask {
  const Operand& source;
  Decoded target;

  void operator()(std::int64_t p) const {
    const int width = target.width;
    float* codes = target.codes + p * width * target.blocks * block_size;
    std::int32_t* exponents = target.exponents + p * width * target.blocks;
    for (int lane = 0; lane < width; ++lane) {
      const std::int64_t row = p * width + lane;
      const bool exists = row < target.rows;
      const auto* data = static_cast<const std::uint8_t*>(source.data) + (exists ? row * source.row_stride : 0);
      for (std::int64_t k = 0; k < target.blocks * block_size; ++k) {
        const bool inside = exists && k < source.cols;
        const std::uint8_t code = inside ? data[k / 2] >> (k % 2 * 4) & 15 : 0;
        codes[k * width + lane] = E2M1::decode(code);
      }
      for (std::int64_t block = 0; block < target.blocks; ++block)
        exponents[block * width + lane] = exists ? source.scales[row * source.scale_pitch + block] : 127;
    }
  }
};

struct MultiplyTask {
  const Problem& problem;
  const Config& config;
  Decoded a, b;

  std::int64_t tiles_n() const { return ceil_div(problem.n, config.tile_n); }
  std::int64_t tiles() const { return tiles_n() * ceil_div(problem.m, config.tile_m); }

  void operator()(std::int64_t tile) const {
    const std::int64_t row_begin = tile / tiles_n() * config.tile_m;
    const std::int64_t panel_begin = tile % tiles_n() * (config.tile_n / panel);
    for (std::int64_t row = row_begin; row < row_begin + config.tile_m && row < problem.m; ++row)
      for (std::int64_t p = panel_begin; p < panel_begin + config.tile_n / panel && p * panel < problem.n; ++p)
        multiply(row, p);
  }

  void multiply(std::int64_t row, std::int64_t p) const {
    const float* a_codes = a.codes_of(row);
    const float* b_codes = b.codes_of(p);
    float sum[panel] = {};
    for (std::int64_t block = 0; block < a.blocks; ++block) {
      float dot[panel] = {};
      for (std::int64_t k = block * block_size; k < (block + 1) * block_size; ++k)
        for (int lane = 0; lane < panel; ++lane) dot[lane] += a_codes[k] * b_codes[k * panel + lane];
      const std::int32_t ea = a.exponents_of(row)[block];
      for (int lane = 0; lane < panel; ++lane) {
        const std::int32_t eb = b.exponents_of(p)[block * panel + lane];
        sum[lane] += ea == 255 || eb == 255 ? NAN : ldexpf(dot[lane], ea + eb - 254);
      }
    }
    float* c = static_cast<float*>(problem.c.data) + row * problem.c.row_stride;
    for (int lane = 0; lane < panel && p * panel + lane < problem.n; ++lane)
      c[p * panel + lane] = sum[lane] * problem.epilogue.alpha;
  }
};

template <class Task>
void parallel_for(const Native& native, std::int64_t n, Task& task) {
  native.parallel_for(
      native.context, n, [](void* argument, std::int64_t i) { (*static_cast<const Task*>(argument))(i); }, &task);
}

class Small final : public Backend {
 public:
  const char* name() const override { return "small"; }
  const char* description() const override { return "MXFP4 on the host, for the tests"; }
  ExecutionKind execution() const override { return ExecutionKind::host; }

  Support available() const override {
#if defined(__AVX2__)
    if (!__builtin_cpu_supports("avx2")) return {false, "this processor has no AVX2"};
#endif
    return {true};
  }

  Support supports(const Problem& p) const override {
    if (p.operation != Operation::matmul) return {false, "only matmul"};
    if (!(p.a.format == format_id<MXFP4> && p.b.format == format_id<MXFP4>)) return {false, "only mxfp4 operands"};
    if (p.a.scale_layout != ScaleLayout::linear || p.b.scale_layout != ScaleLayout::linear)
      return {false, "only linear scales"};
    if (!(p.c.format == float32_id)) return {false, "only float output"};
    if (p.c.col_stride != 1) return {false, "only output with contiguous rows"};
    const EpilogueData& e = p.epilogue;
    if (e.gate != Gate::none) return {false, "no gate"};
    if (e.alpha_device || e.row_scale.data || e.expert_scale.data || e.bias.data || e.beta != 0.0f ||
        e.activation != Activation::none)
      return {false, "no epilogue but alpha"};
    return {true};
  }

  double cost(const Problem& p) const override {
    const double products = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const double packing = is_prepared(p) ? 0.0 : static_cast<double>(p.n) * static_cast<double>(p.k) / 1e9;
    return 1e-5 + (2.0 * products / 4e10 + packing) / p.concurrency;
  }

  Config config(const Problem&) const override { return default_config; }

  Support accepts(const Problem&, const Config& c) const override {
    if (c.tile_m < 0 || c.tile_n < 0) return {false, "tiles are positive"};
    if (c.tile_n % panel != 0) return {false, "tile_n is a multiple of 8"};
    Config others = c;
    others.tile_m = others.tile_n = 0;
    if (others != Config{}) return {false, "only tile_m and tile_n can be set"};
    return {true};
  }

  std::int64_t candidates(const Problem&, Config* out, std::int64_t capacity) const override {
    constexpr Config all[] = {default_config, {.tile_m = 4, .tile_n = 16}, {.tile_m = 64, .tile_n = 64}};
    constexpr std::int64_t count = sizeof all / sizeof *all;
    for (std::int64_t i = 0; i < count && i < capacity; ++i) out[i] = all[i];
    return count;
  }

  std::int64_t workspace_bytes(const Problem& p, const Config&) const override {
    return decoded_bytes(p.m, p.k, 1) + (is_prepared(p) ? 0 : decoded_bytes(p.n, p.k, panel));
  }

  PreparedForm prepared_form(const Problem& p) const override {
    return {decoded_bytes(p.b.rows, p.b.cols, panel), panel};
  }

  Status prepare(const Problem& p, const PreparedForm&, void* destination, const Native& native) const override {
    decode(p.b, Decoded::at(destination, p.b.rows, p.b.cols, panel), native);
    return {};
  }

  Status launch(const Problem& p, const Config& config, void* workspace, const Native& native) const override {
    const Decoded a = Decoded::at(workspace, p.m, p.k, 1);
    decode(p.a, a, native);
    Decoded b = Decoded::at(static_cast<char*>(workspace) + decoded_bytes(p.m, p.k, 1), p.n, p.k, panel);
    if (is_prepared(p))
      b = Decoded::at(p.b.prepared, p.n, p.k, panel);
    else
      decode(p.b, b, native);
    const Config resolved{.tile_m = config.tile_m ? config.tile_m : default_config.tile_m,
                          .tile_n = config.tile_n ? config.tile_n : default_config.tile_n};
    MultiplyTask task{p, resolved, a, b};
    parallel_for(native, task.tiles(), task);
    return {};
  }

 private:
  bool is_prepared(const Problem& p) const { return p.b.prepared_by == this && p.b.prepared_form.tag == panel; }

  static std::int64_t decoded_bytes(std::int64_t rows, std::int64_t cols, int width) {
    return Decoded::bytes(rows, ceil_div(cols, block_size), width);
  }

  static void decode(const Operand& source, const Decoded& target, const Native& native) {
    DecodeTask task{source, target};
    parallel_for(native, ceil_div(target.rows, target.width), task);
  }
};

}  // namespace

const Backend& backend() {
  static constexpr Small small;
  return small;
}

}  // namespace microscale::backend_small
