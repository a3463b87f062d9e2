#ifndef MICROSCALE_TOOLS_CHECKPOINT_HPP
#define MICROSCALE_TOOLS_CHECKPOINT_HPP

#include <Microscale_Json.hpp>
#include <Microscale_Safetensors.hpp>
#include <Microscale_Style.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace microscale::tools {

/// The file of the weights of a model folder, and the files that describe it.
inline constexpr const char* index_name = "model.safetensors.index.json";
inline constexpr const char* config_name = "config.json";
inline constexpr const char* modelopt_config_name = "hf_quant_config.json";

/// A tensor of a checkpoint and the shard that holds its data.
struct CheckpointTensor : LogicalTensor {
  std::size_t shard = 0;
};

/// A `.safetensors` file or a model folder, open for reading. Reading is thread-safe.
///
/// A folder's shards are those that its index names or, without an index, all its .safetensors files. Names that an
/// index gives must be plain file names, every tensor that it lists must be in its shard, and no tensor may be in two.
class Checkpoint {
 public:
  /// Throws FileError.
  explicit Checkpoint(const std::filesystem::path& path);
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const std::filesystem::path& path() const { return m_path; }
  bool is_folder() const { return m_is_folder; }
  bool has_index() const { return m_index.is_object(); }
  /// The index (null if there is none), config.json (null if there is none).
  const Json& index() const { return m_index; }
  const Json& config() const { return m_config; }
  /// config.json to the letter; empty if there is none.
  const std::string& config_text() const { return m_config_text; }
  /// The "quantization_config" of config.json or of the first shard's metadata; null if there is none.
  const Json& quantization_config() const { return m_quantization_config; }
  const std::vector<SafetensorsFile>& shards() const { return m_shards; }
  /// The logical tensors, shard by shard in the order of the files.
  const std::vector<CheckpointTensor>& tensors() const { return m_tensors; }
  const CheckpointTensor* find(const std::string& name) const;
  /// Whether any tensor is quantized in a way that this program knows.
  bool is_quantized() const;
  /// A tensor that is quantized in a way that it does not know, or null.
  const CheckpointTensor* unknown_quantization() const;

  std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  /// The value of a tensor's tensor scale as the file has it; the tensor must have one.
  float tensor_scale(const LogicalTensor& tensor) const;

 private:
  void open_folder();
  void find_logical_tensors();
  const TensorInfo* find_part(const std::string& name) const;

  std::filesystem::path m_path;
  bool m_is_folder = false;
  Json m_index;
  Json m_config;
  std::string m_config_text;
  Json m_quantization_config;
  std::vector<SafetensorsFile> m_shards;
  struct Place {
    const TensorInfo* tensor;
    std::size_t shard;
  };
  std::unordered_map<std::string, Place> m_places;
  std::vector<CheckpointTensor> m_tensors;
  std::unordered_map<std::string, std::size_t> m_by_name;
};

}  // namespace microscale::tools

#endif
