#ifndef MICROSCALE_TOOLS_REWRITE_HPP
#define MICROSCALE_TOOLS_REWRITE_HPP

#include <Microscale_Checkpoint.hpp>
#include <Microscale_Output.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Makes a new checkpoint from an old one, shard by shard: what quantize and dequantize have in common.
namespace microscale::tools {

/// Writes the parts of one tensor. Parts may be written piece by piece; the writing itself happens on another thread.
class TensorSink {
 public:
  TensorSink(Background& background, std::shared_ptr<SafetensorsWriter> writer)
      : m_background(background), m_writer(std::move(writer)) {}

  /// Queues bytes for a part, `offset` bytes after its start; the sink keeps them until they are written.
  void write(const std::string& part, std::uint64_t offset, std::vector<std::byte> bytes);
  /// Queues bytes of a mapped file, which are released after they were written.
  void copy(const std::string& part, std::span<const std::byte> mapped);

 private:
  Background& m_background;
  std::shared_ptr<SafetensorsWriter> m_writer;
};

/// What becomes of a tensor of the old checkpoint.
struct Rewritten {
  std::vector<TensorInfo> parts;                        ///< what the new file lists for it
  std::function<void(TensorSink&, Progress&)> convert;  ///< writes all of them; if empty, the one part is a copy
};

struct RewritePlan {
  std::map<std::size_t, Rewritten> tensors;  ///< by index into Checkpoint::tensors(); all others are copied
  Json quantization_config;                  ///< null to have none
  Json modelopt_config;                      ///< null to have none
  std::string torch_dtype;                   ///< what config.json is to say if it says one; empty to keep it
  std::string verb;                          ///< for the progress bar
  std::function<void()> before_commit;       ///< called when all is written and nothing has its name yet; may be empty
};

/// Bytes of the tensors of the result, and the files of a folder that were not taken over (weights of other kinds).
struct RewriteResult {
  std::uint64_t tensor_bytes = 0;
  std::vector<std::string> skipped_files;
};

/// Writes `output`, a file or a folder as the checkpoint is; check_places() must have passed. Throws FileError and
/// leaves nothing behind. Before anything is written, the names of all tensors of the result are checked: the reader
/// must find in it the tensors that the plan means.
RewriteResult rewrite(const Checkpoint& checkpoint, const RewritePlan& plan, const std::filesystem::path& output,
                      bool force);

}  // namespace microscale::tools

#endif
