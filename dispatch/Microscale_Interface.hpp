#ifndef MICROSCALE_INTERFACE_HPP
#define MICROSCALE_INTERFACE_HPP

#include <Microscale_Block.hpp>
#include <Microscale_FormatId.hpp>
#include <Microscale_ScaleLayout.hpp>
#include <Microscale_TensorScalePair.hpp>

#include <cstdint>

// What a backend implements. This is the one header of dispatch that backends include: plain data, no Kokkos, no inline
// code (backends are compiled under other instruction sets). Pointers are to memory that the execution kind can reach.
namespace microscale {

class Backend;

enum class Operation : std::uint8_t {
  quantize,
  dequantize,
  interleave_scales,
  requantize,
  matmul,
  batched_matmul,
  grouped_quantize,
  grouped_matmul
};

/// Where a call runs.
enum class ExecutionKind : std::uint8_t { host, cuda, hip, other };

/// The caller's execution-space instance without Kokkos. On a device `stream` is the native stream. On the host,
/// `parallel_for` runs body(argument, i) for i in [0, n) on the caller's threads and returns when all are done.
struct Native {
  ExecutionKind kind = ExecutionKind::host;
  int device = 0;
  void* stream = nullptr;
  int concurrency = 1;
  const void* context = nullptr;
  void (*parallel_for)(const void* context, std::int64_t n, void (*body)(void* argument, std::int64_t i),
                       void* argument) = nullptr;
};

/// The form in which a backend's prepare() keeps an operand: its size, and the backend's own number for it.
struct PreparedForm {
  std::int64_t bytes = 0;  ///< 0: no prepared form
  std::int64_t tag = 0;
};

/// A matrix, or a batch of equal ones. Plain types (block_size 0) have strides in elements along both axes. Block
/// formats have a row pitch in bytes, at least packed_bytes(format, cols); bits past the last element are zero.
struct Operand {
  FormatId format{};
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t batch = 1;
  void* data = nullptr;
  std::int64_t row_stride = 0;    ///< elements (plain) or bytes (block formats)
  std::int64_t col_stride = 1;    ///< elements; always 1 for block formats
  std::int64_t batch_stride = 0;  ///< elements (plain) or bytes (block formats)
  std::uint8_t* scales = nullptr;
  ScaleLayout scale_layout = ScaleLayout::linear;
  std::int64_t scale_pitch = 0;             ///< bytes from one row of scale tiles to the next
  std::int64_t scale_tile_rows = 0;         ///< rows of scale tiles of a matrix (grouped ones have spare rows)
  std::int64_t scale_batch_stride = 0;      ///< bytes
  bool grouped_scales = false;              ///< rows of scale tiles are found through GroupData::a_scale_offsets
  TensorScalePair* tensor_scale = nullptr;  ///< one a matrix of the batch; null where the format has none
  /// null: there is nothing but `data` and `scales`. Otherwise `prepared` holds what this backend's prepare() wrote,
  /// beside the original or, if that was dropped, instead of it (`data` and `scales` are then null).
  const Backend* prepared_by = nullptr;
  PreparedForm prepared_form{};
  void* prepared = nullptr;
  bool original_dropped = false;
};

enum class Activation : std::uint8_t { none, relu, gelu_tanh, gelu_erf, silu };

/// silu: silu(g) * u.  clamped_swiglu: g' = min(g, limit), u' = clamp(u, -limit, limit), and
/// g' * sigmoid(slope * g') * (u' + 1).
enum class Gate : std::uint8_t { none, silu, clamped_swiglu };

/// Which of the 2H columns are gates: even ones (interleaved: g = 2j, u = 2j + 1) or the first half (g = j, u = H + j).
enum class GateColumns : std::uint8_t { interleaved, halved };

/// A vector, or one vector an expert: element i of expert e is data[e * expert_stride + i * stride].
struct VectorOperand {
  const void* data = nullptr;  ///< null: absent
  ElementId type{};
  std::int64_t size = 0;
  std::int64_t stride = 1;
  std::int64_t experts = -1;  ///< -1: one vector for all
  std::int64_t expert_stride = 0;
};

/// What happens to acc, in this order (each step one binary32 operation): v = acc * decodeA * decodeB * alpha;
/// * row scale; * expert scale; + bias; + beta * C (C is not read when beta is 0); activation or gate.
struct EpilogueData {
  float alpha = 1.0f;
  const float* alpha_device = nullptr;  ///< if not null, read instead of alpha (which is then 1)
  VectorOperand row_scale{};            ///< float, one a row of C
  VectorOperand expert_scale{};         ///< float, one an expert (or batch entry)
  VectorOperand bias{};                 ///< float, half or bf16, one a column of A B^T
  float beta = 0.0f;
  Activation activation = Activation::none;
  Gate gate = Gate::none;
  GateColumns gate_columns = GateColumns::interleaved;
  float gate_limit = 7.0f;
  float gate_slope = 1.702f;
};

/// Rows of skipped slots (expert id -1) and rows in no slot.
enum class SkippedRows : std::uint8_t { zero, untouched };

/// The groups of a grouped operation; device arrays of int32. Slot s holds rows [row_offsets[s], row_offsets[s+1]).
struct GroupData {
  std::int64_t slots = 0;
  const std::int32_t* row_offsets = nullptr;      ///< [slots + 1]
  const std::int32_t* expert_ids = nullptr;       ///< [slots]; -1 skips the slot
  const std::int32_t* a_scale_offsets = nullptr;  ///< [slots]; null for linear scales
  SkippedRows skipped_rows = SkippedRows::zero;
};

/// Where the tensor scale of a quantization comes from.
enum class TensorScaleSource : std::uint8_t { dynamic, given, stored };

/// Parameters of quantize and of a quantized matmul output. `tensor_scale` is read when the source is `given`; `device`
/// (one float, a decode or an encode scale) overrides it when not null.
struct QuantizeData {
  ScaleRule scale_rule = ScaleRule::rceil;
  NonFinite non_finite = NonFinite::strict;
  TensorScaleSource source = TensorScaleSource::dynamic;
  TensorScalePair tensor_scale{};
  const float* device = nullptr;
  bool device_is_encode = false;
  VectorOperand expert_tensor_scale{};  ///< grouped: decode scale of each expert, float
};

/// What is known beforehand; changes speed, never results.
struct Hints {
  std::int64_t estimated_total_m = 0;
  std::int64_t active_experts = 0;
};
bool operator==(const Hints& x, const Hints& y);

/// How a kernel is tiled; a backend reads what it knows. 0 means automatic.
struct Config {
  std::int32_t tile_m = 0;              ///< rows of C a tile; of its columns if swap_ab
  std::int32_t tile_n = 0;              ///< columns of C a tile; of its rows if swap_ab
  std::int32_t tile_k = 0;              ///< elements of K that are loaded at a time
  std::int32_t stages = 0;              ///< loads that are under way at the same time
  std::int32_t cluster = 0;             ///< thread blocks of a cluster along tile_m
  std::int32_t split_k = 0;             ///< parts of K that are added up at the end
  bool swap_ab = false;                 ///< C^T = B A^T is computed
  std::int32_t cluster_n = 0;           ///< thread blocks of a cluster along tile_n
  std::int32_t cta_group = 0;           ///< thread blocks that share one tile, each on a multiprocessor of its own
  std::int32_t k_group = 0;             ///< tiles of K that a stage hands on together
  std::int32_t block_swizzle = 0;       ///< neighbouring tiles along one side before the next along the other; 1: none
  std::int32_t scheduler_stages = 0;    ///< tiles that a thread block knows of, its own included; 1: no scheduler
  std::int32_t accumulator_stages = 0;  ///< accumulators, of which one is multiplied into and others are stored
  std::int32_t warp_m = 0;              ///< rows of a tile that a warp, or wave, computes
  std::int32_t warp_n = 0;              ///< columns of a tile that a warp, or wave, computes
  std::int32_t groups_per_unit = 0;     ///< persistent thread blocks a compute unit
  bool small_n = false;                 ///< the kernel for a narrow tile_n
  bool persistent = false;              ///< thread blocks take one tile after the other
  bool streaming = false;               ///< b is not kept in caches
  bool deep_prefetch = false;           ///< a is loaded two tiles ahead
};
/// Whether all members are equal.
bool operator==(const Config& x, const Config& y);

/// One call. quantize: a -> c. dequantize: a -> c. interleave_scales: a.scales -> c.scales. matmul: c = a b^T.
struct Problem {
  Operation operation = Operation::matmul;
  ExecutionKind execution = ExecutionKind::host;
  int device = 0;       ///< as in Native
  int concurrency = 1;  ///< as in Native
  std::int64_t m = 0;
  std::int64_t n = 0;  ///< columns of A B^T (C has n/2 under a gate)
  std::int64_t k = 0;
  Operand a{};
  Operand b{};
  Operand c{};
  EpilogueData epilogue{};
  bool user_functor = false;  ///< a user's functor follows as a separate pass over C
  QuantizeData quantize{};
  GroupData groups{};
  Hints hints{};
};

/// Yes, or no with the reason in words (a string with static lifetime).
struct Support {
  bool supported = false;
  const char* reason = "";
};

/// Outcome of a launch or a preparation; message has static lifetime and is empty on success.
struct Status {
  bool ok = true;
  const char* message = "";
};

/// A hand-tuned implementation. Objects are immutable, shared by all threads and alive as long as the program. Every
/// member function but prepare() and launch() works on any machine, whatever hardware it has, and sees the problem as
/// it is planned, before there need be any data: of a pointer it may use whether it is null and its alignment (up to
/// 256 bytes), nothing else; alpha and beta other than 0 and 1 read as 2, and a given tensor scale as 1.
/// docs/adding_a_backend.md is the guide.
class Backend {
 public:
  /// Lower case, digits and underscores; the name of its folder in backends/.
  virtual const char* name() const = 0;
  virtual const char* description() const = 0;
  /// Where it runs; problems of another kind are not offered to it.
  virtual ExecutionKind execution() const = 0;
  /// Whether this machine can run it (CPU features, a device); the reason if not.
  virtual Support available() const = 0;
  /// Whether it can do this problem, available or not.
  virtual Support supports(const Problem& problem) const = 0;
  /// Estimated seconds; called only for supported problems, as are the functions below.
  virtual double cost(const Problem& problem) const = 0;
  /// The configuration from its tables or rules; no 0 in what it uses.
  virtual Config config(const Problem& problem) const = 0;
  /// Whether launch() can run the problem with a configuration that the caller chose, in which 0 means automatic.
  virtual Support accepts(const Problem& problem, const Config& config) const = 0;
  /// Configurations worth measuring for the problem, config(problem) first: writes the first `capacity` of them to `out`
  /// and returns how many there are.
  virtual std::int64_t candidates(const Problem& problem, Config* out, std::int64_t capacity) const = 0;
  /// Bytes of workspace, aligned to 64, that launch() needs with this configuration.
  virtual std::int64_t workspace_bytes(const Problem& problem, const Config& config) const = 0;
  /// The form that prepare() would give to b of this problem, whose m is typical for the products to come.
  virtual PreparedForm prepared_form(const Problem& problem) const = 0;
  /// Writes that form of problem.b to `destination` (form.bytes bytes, aligned to 64), asynchronously like launch().
  virtual Status prepare(const Problem& problem, const PreparedForm& form, void* destination,
                         const Native& native) const = 0;
  /// Runs the problem asynchronously on the native instance (the host kind returns when done).
  virtual Status launch(const Problem& problem, const Config& config, void* workspace, const Native& native) const = 0;

 protected:
  ~Backend() = default;
};

/// The kernels of a folder in backends/ whose decisions are made by a target in dispatch/: the functions of Backend that
/// touch data or hardware.
struct Kernels {
  Support (*available)();
  Status (*prepare)(const Problem& problem, const PreparedForm& form, void* destination, const Native& native);
  Status (*launch)(const Problem& problem, const Config& config, void* workspace, const Native& native);
};

}  // namespace microscale

#endif
