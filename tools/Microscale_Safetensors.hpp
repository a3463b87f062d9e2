#ifndef MICROSCALE_TOOLS_SAFETENSORS_HPP
#define MICROSCALE_TOOLS_SAFETENSORS_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace microscale::tools {

/// The element types that a safetensors header can name. Sub-byte types count their shape in elements.
enum class Dtype : std::uint8_t {
  F64,
  I64,
  U64,
  C64,
  F32,
  I32,
  U32,
  F16,
  BF16,
  I16,
  U16,
  F8_E4M3,
  F8_E5M2,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I8,
  U8,
  BOOL,
  F6_E2M3,
  F6_E3M2,
  F4
};

std::string_view to_string(Dtype dtype);
unsigned bits_of(Dtype dtype);
/// The type called `name` in a header, or nothing.
std::optional<Dtype> dtype_from(std::string_view name);

/// One tensor of a file: `begin` and `end` are byte offsets from the start of the data section.
struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t bytes() const { return end - begin; }
  std::uint64_t elements() const;
};

/// The longest name that a tensor may have, as read and as written.
inline constexpr std::size_t max_name_bytes = 1024;

/// "[2, 3]", and "[]" for a scalar.
std::string shape_text(const std::vector<std::uint64_t>& shape);

/// Bytes of a tensor of that type and shape; nothing when the count does not fit 64 bits or is no whole byte.
std::optional<std::uint64_t> bytes_of(Dtype dtype, const std::vector<std::uint64_t>& shape);

/// What the header of a file says, already checked against the size of the file.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  ///< in the order of their offsets
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;  ///< offset of the data section in the file
};

/// Reads and checks a header. `file` is the whole file, `path` is only used in messages.
///
/// The file is accepted when all of this holds, and is an error otherwise: at least 8 bytes, whose little-endian value
/// n is at most 100 MB and fits the file; n bytes of JSON in UTF-8 that begin with '{' and may end in spaces; no name
/// twice; every tensor has a known dtype, a shape of at most 64 dimensions and two offsets, and nothing else; the size
/// that follows from dtype and shape is the size between the offsets; the tensors cover the data section without
/// overlap or hole, up to the last byte; `__metadata__` holds strings only. A name has at most 1024 bytes.
/// Throws FileError. Thread-safe.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& path);

/// A file mapped into memory, read only. Movable.
class MappedFile {
 public:
  /// Maps `path`, which must be a regular file. Throws FileError.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {m_data, m_size}; }

 private:
  const std::byte* m_data = nullptr;
  std::size_t m_size = 0;
};

/// Tells the system that these bytes of a mapped file are not needed soon, so that memory does not fill up with them.
void release_pages(std::span<const std::byte> mapped);

/// A safetensors file, memory-mapped. Reading is thread-safe.
class SafetensorsFile {
 public:
  /// Opens and checks `path` as parse_safetensors does. Throws FileError.
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return m_path; }
  const std::vector<TensorInfo>& tensors() const { return m_header.tensors; }
  const std::map<std::string, std::string>& metadata() const { return m_header.metadata; }
  /// The tensor of that name, or null.
  TensorInfo const* find(std::string_view name) const;
  /// The bytes of a tensor of this file. Not necessarily aligned for its type.
  std::span<const std::byte> data(const TensorInfo& tensor) const;

 private:
  std::string m_path;
  MappedFile m_file;
  SafetensorsHeader m_header;
  std::unordered_map<std::string_view, std::size_t> m_index;
};

/// Writes a safetensors file whose tensors are known before their values: the header first, then any part of any
/// tensor in any order. Not thread-safe.
class SafetensorsWriter {
 public:
  /// Creates `path`, which must not exist, and reserves the whole size on the disk, so that a full disk is found at
  /// once. The tensors are laid out by falling size of their type and then by name, so that every tensor is aligned for
  /// its type; their offsets are ignored. Throws FileError (two tensors of one name, a size that does not fit, no
  /// space left, ...).
  SafetensorsWriter(std::string path, std::vector<TensorInfo> tensors,
                    const std::map<std::string, std::string>& metadata);
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  ~SafetensorsWriter();

  /// The index of the tensor of that name, for write(). The name must be one of those given.
  std::size_t index(const std::string& name) const { return m_index.at(name); }
  /// Writes bytes of a tensor, `offset` bytes after its start. Throws FileError.
  void write(std::size_t tensor, std::uint64_t offset, std::span<const std::byte> bytes);
  /// Puts everything on the disk. Throws FileError, also when a byte of a tensor was never written.
  void finish();

 private:
  std::string m_path;
  std::vector<TensorInfo> m_tensors;
  std::unordered_map<std::string, std::size_t> m_index;
  std::uint64_t m_data_begin = 0;
  std::uint64_t m_written = 0;
  std::uint64_t m_data_bytes = 0;
  int m_fd = -1;
};

}  // namespace microscale::tools

#endif
