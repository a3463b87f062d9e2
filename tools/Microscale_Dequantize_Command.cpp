#include <Microscale_Commands.hpp>
#include <Microscale_Errors.hpp>
#include <Microscale_Places.hpp>
#include <Microscale_Report.hpp>
#include <Microscale_Rewrite.hpp>
#include <Microscale_Values.hpp>

#include <algorithm>
#include <cstdio>

namespace microscale::tools {
namespace {

struct DequantizeTensor {
  TensorValues values;
  Dtype dtype;

  void operator()(TensorSink& sink, Progress& progress) const {
    const CheckpointTensor& tensor = values.tensor();
    const MatrixShape shape = values.shape();
    const std::uint64_t pitch = static_cast<std::uint64_t>(shape.cols) * bits_of(dtype) / 8;
    for_rows(shape, [&](std::int64_t first, std::int64_t count) {
      std::vector<std::byte> result(static_cast<std::size_t>(count) * pitch);
      values.dequantize(first, count, dtype, result.data());
      sink.write(tensor.name, static_cast<std::uint64_t>(first) * pitch, std::move(result));
      progress.advance(row_bytes(values.checkpoint(), tensor, first, count).size(), tensor.name);
      values.release(first, count);
    });
  }
};

const char* torch_name(Dtype dtype) {
  return dtype == Dtype::F32 ? "float32" : dtype == Dtype::F16 ? "float16" : "bfloat16";
}

}  // namespace

void dequantize_command(const DequantizeArguments& arguments) {
  const Checkpoint checkpoint(arguments.input);
  if (!checkpoint.is_quantized()) throw FileError(arguments.input.string(), "holds no block-scaled tensor");
  // Its scales would lose their meaning with the config.
  if (const auto* const unknown = checkpoint.unknown_quantization())
    throw FileError(checkpoint.shards()[unknown->shard].path(),
                    "tensor \"" + printable(unknown->name) + "\" (" + type_text(*unknown) +
                        ") is quantized in a way that this program does not read");
  check_places(arguments.input, arguments.output);
  RewritePlan plan;
  plan.verb = "dequantize";
  plan.torch_dtype = torch_name(arguments.dtype);
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const CheckpointTensor& tensor = checkpoint.tensors()[i];
    if (!tensor.is_quantized()) continue;
    plan.tensors[i] = {{{tensor.name, arguments.dtype, tensor.shape, 0, 0}},
                       DequantizeTensor{{checkpoint, tensor}, arguments.dtype}};
  }
  const RewriteResult result = rewrite(checkpoint, plan, arguments.output, arguments.force);
  std::printf("dequantized %zu of %zu tensors to %s, the others copied: all tensors now %s\n", plan.tensors.size(),
              checkpoint.tensors().size(), std::string(to_string(arguments.dtype)).c_str(),
              human_bytes(result.tensor_bytes).c_str());
  for (const auto& file : result.skipped_files) std::printf("not copied: %s\n", printable(file).c_str());
}

}  // namespace microscale::tools
