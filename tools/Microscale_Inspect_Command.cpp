#include <Microscale_Checkpoint.hpp>
#include <Microscale_Commands.hpp>
#include <Microscale_Errors.hpp>
#include <Microscale_Report.hpp>

#include <algorithm>
#include <cstdio>

namespace microscale::tools {
namespace {

std::uint64_t stored_bytes(const LogicalTensor& tensor) {
  std::uint64_t bytes = tensor.data->bytes();
  if (tensor.scale != nullptr) bytes += tensor.scale->bytes();
  if (tensor.tensor_scale != nullptr) bytes += tensor.tensor_scale->bytes();
  return bytes;
}

Json tensor_json(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  Json entry = {{"name", tensor.name},
                {"shape", tensor.shape},
                {"type", type_text(tensor)},
                {"bytes", stored_bytes(tensor)},
                {"file", std::filesystem::path(checkpoint.shards()[tensor.shard].path()).filename().string()}};
  if (!tensor.is_quantized()) return entry;
  entry["style"] = to_string(tensor.style);
  entry["stored_as"] = {tensor.data->name};
  if (tensor.scale != nullptr) entry["stored_as"].push_back(tensor.scale->name);
  if (tensor.tensor_scale != nullptr) {
    entry["stored_as"].push_back(tensor.tensor_scale->name);
    entry["tensor_scale"] = {{"kind", tensor.half == TensorScaleHalf::decode ? "decode" : "encode"},
                             {"value", checkpoint.tensor_scale(tensor)}};
  }
  return entry;
}

}  // namespace

void inspect_command(const std::filesystem::path& input, bool json) {
  const Checkpoint checkpoint(input);
  std::uint64_t bytes = 0;
  std::size_t block_scaled = 0;
  for (const auto& tensor : checkpoint.tensors()) {
    bytes += stored_bytes(tensor);
    block_scaled += tensor.format.has_value();
  }
  if (json) {
    Json result = {{"path", input.string()},
                   {"files", Json::array()},
                   {"bytes", bytes},
                   {"quantization_config", checkpoint.quantization_config()},
                   {"tensors", Json::array()}};
    for (const auto& shard : checkpoint.shards())
      result["files"].push_back({{"path", shard.path()}, {"metadata", shard.metadata()}});
    for (const auto& tensor : checkpoint.tensors()) result["tensors"].push_back(tensor_json(checkpoint, tensor));
    std::printf("%s\n", result.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  std::size_t width = 4, type_width = 4;
  for (const auto& tensor : checkpoint.tensors()) {
    width = std::max(width, printable(tensor.name).size());
    type_width = std::max(type_width, type_text(tensor).size());
  }
  for (const auto& tensor : checkpoint.tensors()) {
    std::string line = printable(tensor.name);
    line.resize(width + 2, ' ');
    line += type_text(tensor);
    line.resize(width + 2 + type_width + 2, ' ');
    line += shape_text(tensor.shape) + "  " + human_bytes(stored_bytes(tensor));
    if (tensor.is_quantized()) line += "  " + std::string(to_string(tensor.style));
    if (tensor.tensor_scale != nullptr)
      line += std::string(tensor.half == TensorScaleHalf::decode ? ", decode" : ", encode") + " scale " +
              number_text(checkpoint.tensor_scale(tensor), 9);
    std::printf("%s\n", line.c_str());
  }
  std::printf("%zu tensor%s in %zu file%s, %s, %zu block-scaled\n", checkpoint.tensors().size(),
              checkpoint.tensors().size() == 1 ? "" : "s", checkpoint.shards().size(),
              checkpoint.shards().size() == 1 ? "" : "s", human_bytes(bytes).c_str(), block_scaled);
}

}  // namespace microscale::tools
