#include <Microscale_Errors.hpp>
#include <Microscale_Rewrite.hpp>

#include <algorithm>
#include <array>
#include <set>

namespace microscale::tools {
namespace fs = std::filesystem;
namespace {

/// Weights in other containers would contradict the new ones.
constexpr std::array<std::string_view, 10> weight_extensions{".safetensors", ".bin",  ".pt",   ".pth",     ".ckpt",
                                                             ".h5",          ".onnx", ".gguf", ".msgpack", ".npz"};

bool is_written_by_us(const fs::path& relative) {
  return relative == config_name || relative == modelopt_config_name || relative == index_name;
}

/// The files at the top of the new folder, and those that another run may have made there.
std::set<std::string> names_in_result(const Checkpoint& checkpoint) {
  std::set<std::string> names{config_name, modelopt_config_name, index_name};
  for (const auto& entry : fs::directory_iterator(checkpoint.path())) names.insert(entry.path().filename().string());
  return names;
}

/// What the new file or shard lists for a tensor of the old one.
std::vector<TensorInfo> parts_of(const Checkpoint& checkpoint, const RewritePlan& plan, std::size_t tensor) {
  if (const auto planned = plan.tensors.find(tensor); planned != plan.tensors.end()) return planned->second.parts;
  return {*checkpoint.tensors()[tensor].data};
}

/// Throws unless the reader will take the parts of all tensors for those tensors and no others.
void check_names(const Checkpoint& checkpoint, const RewritePlan& plan) {
  std::map<std::string, TensorInfo> parts;
  const auto path = [&](std::size_t tensor) { return checkpoint.shards()[checkpoint.tensors()[tensor].shard].path(); };
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i)
    for (const auto& part : parts_of(checkpoint, plan, i)) {
      if (part.name.size() > max_name_bytes)
        throw FileError(path(i), "the result would need the tensor name \"" + printable(part.name) +
                                     "\", of more than " + std::to_string(max_name_bytes) + " bytes");
      if (!parts.emplace(part.name, part).second)
        throw FileError(path(i), "two tensors of the result would be called \"" + printable(part.name) + "\"");
    }
  const auto find = [&](const std::string& name) {
    const auto found = parts.find(name);
    return found == parts.end() ? nullptr : &found->second;
  };
  const auto stated = stated_format(plan.quantization_config);
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const CheckpointTensor& tensor = checkpoint.tensors()[i];
    const std::string data = parts_of(checkpoint, plan, i).front().name;
    const auto read = logical_tensor(parts.at(data), find, stated, path(i));
    if (!read || read->name != tensor.name || read->shape != tensor.shape)
      throw FileError(path(i), "tensor \"" + printable(tensor.name) +
                                   "\" of the result would be taken for a part of another, because of its name");
  }
}

/// Copies everything but weights and the files that are made anew.
void copy_other_files(const Checkpoint& checkpoint, const fs::path& to, std::vector<std::string>& skipped) {
  const fs::path& from = checkpoint.path();
  for (auto entry = fs::recursive_directory_iterator(from); entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path relative = entry->path().lexically_relative(from);
    const std::string extension = entry->path().extension().string();
    if (entry->is_directory()) {
      // Version control and caches are no part of the model.
      if (entry->path().filename().string().starts_with(".")) {
        skipped.push_back(relative.string() + "/");
        entry.disable_recursion_pending();
      } else if (entry->is_symlink()) {
        skipped.push_back(relative.string() + "/");
      } else {
        create_folder(to / relative);
      }
      continue;
    }
    if (is_written_by_us(relative)) continue;
    const auto& shards = checkpoint.shards();
    if (std::any_of(shards.begin(), shards.end(), [&](const auto& shard) { return shard.path() == entry->path(); }))
      continue;
    const bool weights =
        std::find(weight_extensions.begin(), weight_extensions.end(), extension) != weight_extensions.end();
    if (weights || !entry->is_regular_file()) {
      skipped.push_back(relative.string());
      continue;
    }
    const MappedFile file(entry->path().string());
    write_text(to / relative, {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  }
}

/// Writes one shard and returns the tensors in it.
std::vector<TensorInfo> rewrite_shard(const Checkpoint& checkpoint, const RewritePlan& plan, std::size_t shard,
                                      const fs::path& path, Background& background, Progress& progress) {
  const auto& tensors = checkpoint.tensors();
  std::vector<TensorInfo> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].shard != shard) continue;
    const auto more = parts_of(checkpoint, plan, i);
    parts.insert(parts.end(), more.begin(), more.end());
  }
  std::map<std::string, std::string> metadata = checkpoint.shards()[shard].metadata();
  // Loaders ask which framework's conventions (row-major, here) the file follows.
  metadata.emplace("format", "pt");
  metadata.erase("quantization_config");
  if (!plan.quantization_config.is_null()) metadata["quantization_config"] = plan.quantization_config.dump();
  const auto writer = std::make_shared<SafetensorsWriter>(path.string(), parts, metadata);
  TensorSink sink(background, writer);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].shard != shard) continue;
    const auto planned = plan.tensors.find(i);
    if (planned != plan.tensors.end()) {
      planned->second.convert(sink, progress);
    } else {
      sink.copy(tensors[i].data->name, checkpoint.bytes(*tensors[i].data));
      progress.advance(tensors[i].data->bytes(), tensors[i].name);
    }
  }
  background.run([writer] { writer->finish(); });
  return parts;
}

/// Writes the shards and, of a folder, everything else.
RewriteResult write_all(const Checkpoint& checkpoint, const RewritePlan& plan, const fs::path& output) {
  std::uint64_t input_bytes = 0;
  for (const auto& tensor : checkpoint.tensors()) input_bytes += tensor.data->bytes();
  Progress progress(plan.verb, input_bytes);
  Background background;

  RewriteResult summary;
  Json weight_map = Json::object();
  for (std::size_t s = 0; s < checkpoint.shards().size(); ++s) {
    const std::string file = fs::path(checkpoint.shards()[s].path()).filename().string();
    const fs::path path = checkpoint.is_folder() ? output / file : output;
    for (const auto& part : rewrite_shard(checkpoint, plan, s, path, background, progress)) {
      weight_map[part.name] = file;
      summary.tensor_bytes += *bytes_of(part.dtype, part.shape);
    }
  }
  background.wait();
  if (!checkpoint.is_folder()) return summary;

  if (checkpoint.has_index()) {
    Json index = checkpoint.index();
    index["weight_map"] = std::move(weight_map);
    if (!index.contains("metadata") || !index["metadata"].is_object()) index["metadata"] = Json::object();
    index["metadata"]["total_size"] = summary.tensor_bytes;
    write_json(output / index_name, index);
  }
  std::map<std::string, Json> changed{{"quantization_config", plan.quantization_config}};
  if (!plan.torch_dtype.empty())
    for (const char* name : {"torch_dtype", "dtype"})
      if (checkpoint.config().contains(name)) changed[name] = plan.torch_dtype;
  const std::string& config = checkpoint.config_text();
  if (!config.empty() || !plan.quantization_config.is_null())
    write_text(output / config_name, with_members(config.empty() ? "{}" : config, changed));
  if (!plan.modelopt_config.is_null()) write_json(output / modelopt_config_name, plan.modelopt_config);
  copy_other_files(checkpoint, output, summary.skipped_files);
  std::sort(summary.skipped_files.begin(), summary.skipped_files.end());
  return summary;
}

}  // namespace

void TensorSink::write(const std::string& part, std::uint64_t offset, std::vector<std::byte> bytes) {
  m_background.run([writer = m_writer, index = m_writer->index(part), offset,
                    held = std::make_shared<const std::vector<std::byte>>(std::move(bytes))] {
    writer->write(index, offset, *held);
  });
}

void TensorSink::copy(const std::string& part, std::span<const std::byte> mapped) {
  m_background.run([writer = m_writer, index = m_writer->index(part), mapped] {
    constexpr std::size_t piece = std::size_t{1} << 24;
    for (std::size_t offset = 0; offset < mapped.size(); offset += piece) {
      const auto bytes = mapped.subspan(offset, std::min(piece, mapped.size() - offset));
      writer->write(index, offset, bytes);
      release_pages(bytes);
    }
  });
}

RewriteResult rewrite(const Checkpoint& checkpoint, const RewritePlan& plan, const fs::path& output, bool force) {
  check_names(checkpoint, plan);
  AtomicOutput place(output, checkpoint.is_folder() ? AtomicOutput::Kind::folder : AtomicOutput::Kind::file, force,
                     checkpoint.is_folder() ? names_in_result(checkpoint) : std::set<std::string>{});
  RewriteResult result;
  place.fill([&](const fs::path& path) { result = write_all(checkpoint, plan, path); });
  if (plan.before_commit) plan.before_commit();
  place.commit();
  return result;
}

}  // namespace microscale::tools
