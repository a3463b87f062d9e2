#include <Microscale_Commands.hpp>
#include <Microscale_Errors.hpp>
#include <Microscale_Report.hpp>
#include <Microscale_Rewrite.hpp>
#include <Microscale_Rows.hpp>

#include <algorithm>
#include <cstdio>

namespace microscale::tools {
namespace {

struct DequantizeTensor {
  const Checkpoint& checkpoint;
  const CheckpointTensor& tensor;
  TensorScalePair pair;
  Dtype dtype;

  void operator()(TensorSink& sink, Progress& progress) const {
    const MatrixShape shape = matrix_shape(tensor.shape);
    const std::uint64_t pitch = static_cast<std::uint64_t>(shape.cols) * bits_of(dtype) / 8;
    for_rows(shape, [&](std::int64_t first, std::int64_t count) {
      std::vector<std::byte> values(static_cast<std::size_t>(count) * pitch);
      dequantize_rows(block_rows(checkpoint, tensor, pair, first, count), dtype, values.data());
      sink.write(tensor.name, static_cast<std::uint64_t>(first) * pitch, std::move(values));
      const auto read = row_bytes(checkpoint, tensor, first, count);
      progress.advance(read.size(), tensor.name);
      release_pages(read);
    });
  }
};

}  // namespace

void dequantize_command(const DequantizeArguments& arguments) {
  const Checkpoint checkpoint(arguments.input);
  if (!checkpoint.is_quantized()) throw FileError(arguments.input.string(), "holds no block-scaled tensor");
  RewritePlan plan;
  plan.verb = "dequantize";
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const CheckpointTensor& tensor = checkpoint.tensors()[i];
    if (!tensor.format) continue;
    plan.tensors[i] = {{{tensor.name, arguments.dtype, tensor.shape, 0, 0}},
                       DequantizeTensor{checkpoint, tensor, tensor_scale_pair(checkpoint, tensor), arguments.dtype}};
  }
  const RewriteResult result = rewrite(checkpoint, plan, arguments.output, arguments.force);
  std::printf("dequantized %zu of %zu tensors to %s, the others copied: all tensors now %s\n", plan.tensors.size(),
              checkpoint.tensors().size(), std::string(to_string(arguments.dtype)).c_str(),
              human_bytes(result.tensor_bytes).c_str());
  for (const auto& file : result.skipped_files) std::printf("not copied: %s\n", printable(file).c_str());
}

}  // namespace microscale::tools
