#include <Microscale_Checkpoint.hpp>
#include <Microscale_Errors.hpp>

#include <algorithm>
#include <cstring>
#include <set>

namespace microscale::tools {
namespace fs = std::filesystem;

Checkpoint::Checkpoint(const fs::path& path) : m_path(path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw FileError(path.string(), "no such file or folder");
  if (error) throw FileError(path.string(), error.message());
  m_is_folder = fs::is_directory(status);
  if (m_is_folder)
    open_folder();
  else
    m_shards.emplace_back(path.string());

  for (std::size_t s = 0; s < m_shards.size(); ++s)
    for (const auto& tensor : m_shards[s].tensors()) {
      const auto [place, added] = m_places.emplace(tensor.name, Place{&tensor, s});
      if (!added)
        throw FileError(m_shards[s].path(), "tensor \"" + printable(tensor.name) + "\" is also in " +
                                                printable(m_shards[place->second.shard].path()));
    }
  if (has_index())
    for (const auto& [name, file] : m_index["weight_map"].items()) {
      const auto place = m_places.find(name);
      const auto shard = m_path / file.get<std::string>();
      if (place == m_places.end() || m_shards[place->second.shard].path() != shard.string())
        throw FileError(shard.string(), "does not hold the tensor \"" + printable(name) + "\" that the index says");
    }

  if (m_config.is_object() && m_config.contains("quantization_config")) {
    m_quantization_config = m_config["quantization_config"];
  } else if (!m_shards.empty()) {
    const auto& metadata = m_shards.front().metadata();
    if (const auto stated = metadata.find("quantization_config"); stated != metadata.end())
      m_quantization_config = parse_json(stated->second, m_shards.front().path() + " (metadata)");
  }
  find_logical_tensors();
}

void Checkpoint::open_folder() {
  if (fs::exists(m_path / config_name)) {
    JsonObject config = read_json_object(m_path / config_name);
    m_config = std::move(config.value);
    m_config_text = std::move(config.text);
  }
  std::set<std::string> files;
  const fs::path index_path = m_path / index_name;
  if (fs::exists(index_path)) {
    m_index = read_json(index_path);
    if (!m_index.is_object() || !m_index.contains("weight_map") || !m_index["weight_map"].is_object())
      throw FileError(index_path.string(), "has no weight_map");
    for (const auto& [name, file] : m_index["weight_map"].items()) {
      if (!file.is_string())
        throw FileError(index_path.string(), "weight_map gives no file for \"" + printable(name) + "\"");
      const auto text = file.get<std::string>();
      if (text.empty() || text.find('/') != std::string::npos || text == "." || text == ".." ||
          text.find('\0') != std::string::npos)
        throw FileError(index_path.string(), "\"" + printable(text) + "\" is no plain file name");
      files.insert(text);
    }
  } else {
    for (const auto& file : fs::directory_iterator(m_path))
      if (file.path().extension() == ".safetensors") files.insert(file.path().filename().string());
  }
  if (files.empty()) throw FileError(m_path.string(), "holds no .safetensors file");
  for (const auto& file : files) m_shards.emplace_back((m_path / file).string());
}

void Checkpoint::find_logical_tensors() {
  const auto stated = stated_format(m_quantization_config);
  const auto find_any = [&](const std::string& name) { return find_part(name); };
  for (std::size_t s = 0; s < m_shards.size(); ++s)
    for (const auto& tensor : m_shards[s].tensors()) {
      auto logical = logical_tensor(tensor, find_any, stated, m_shards[s].path());
      if (!logical) continue;
      if (!m_by_name.emplace(logical->name, m_tensors.size()).second)
        throw FileError(m_shards[s].path(),
                        "tensor \"" + printable(logical->name) + "\" is there both plain and block-scaled");
      m_tensors.push_back({std::move(*logical), s});
    }
}

const CheckpointTensor* Checkpoint::find(const std::string& name) const {
  const auto found = m_by_name.find(name);
  return found == m_by_name.end() ? nullptr : &m_tensors[found->second];
}

bool Checkpoint::is_quantized() const {
  return std::any_of(m_tensors.begin(), m_tensors.end(), [](const auto& tensor) { return tensor.is_quantized(); });
}

const CheckpointTensor* Checkpoint::unknown_quantization() const {
  const auto found = std::find_if(m_tensors.begin(), m_tensors.end(), [&](const auto& tensor) {
    return is_unknown_quantization(tensor, [&](const std::string& name) { return find_part(name); });
  });
  return found == m_tensors.end() ? nullptr : &*found;
}

const TensorInfo* Checkpoint::find_part(const std::string& name) const {
  const auto place = m_places.find(name);
  return place == m_places.end() ? nullptr : place->second.tensor;
}

std::span<const std::byte> Checkpoint::bytes(const TensorInfo& tensor) const {
  return m_shards[m_places.at(tensor.name).shard].data(tensor);
}

float Checkpoint::tensor_scale(const LogicalTensor& tensor) const {
  float value;
  std::memcpy(&value, bytes(*tensor.tensor_scale).data(), sizeof(value));
  return value;
}

}  // namespace microscale::tools
