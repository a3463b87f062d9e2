#include <fcntl.h>
#include <Microscale_Errors.hpp>
#include <Microscale_Output.hpp>
#include <Microscale_Safetensors.hpp>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <unordered_set>
#include <utility>

// Offsets, lengths and values in the format are little-endian and are used where they lie.
static_assert(std::endian::native == std::endian::little);

namespace microscale::tools {
namespace {

struct DtypeEntry {
  Dtype dtype;
  std::string_view name;
  unsigned bits;
};

constexpr std::array dtypes{DtypeEntry{Dtype::F64, "F64", 64},
                            DtypeEntry{Dtype::I64, "I64", 64},
                            DtypeEntry{Dtype::U64, "U64", 64},
                            DtypeEntry{Dtype::C64, "C64", 64},
                            DtypeEntry{Dtype::F32, "F32", 32},
                            DtypeEntry{Dtype::I32, "I32", 32},
                            DtypeEntry{Dtype::U32, "U32", 32},
                            DtypeEntry{Dtype::F16, "F16", 16},
                            DtypeEntry{Dtype::BF16, "BF16", 16},
                            DtypeEntry{Dtype::I16, "I16", 16},
                            DtypeEntry{Dtype::U16, "U16", 16},
                            DtypeEntry{Dtype::F8_E4M3, "F8_E4M3", 8},
                            DtypeEntry{Dtype::F8_E5M2, "F8_E5M2", 8},
                            DtypeEntry{Dtype::F8_E8M0, "F8_E8M0", 8},
                            DtypeEntry{Dtype::F8_E4M3FNUZ, "F8_E4M3FNUZ", 8},
                            DtypeEntry{Dtype::F8_E5M2FNUZ, "F8_E5M2FNUZ", 8},
                            DtypeEntry{Dtype::I8, "I8", 8},
                            DtypeEntry{Dtype::U8, "U8", 8},
                            DtypeEntry{Dtype::BOOL, "BOOL", 8},
                            DtypeEntry{Dtype::F6_E2M3, "F6_E2M3", 6},
                            DtypeEntry{Dtype::F6_E3M2, "F6_E3M2", 6},
                            DtypeEntry{Dtype::F4, "F4", 4}};

const DtypeEntry& entry(Dtype dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }

constexpr bool in_order() {
  for (std::size_t i = 0; i < dtypes.size(); ++i)
    if (dtypes[i].dtype != static_cast<Dtype>(i)) return false;
  return true;
}
static_assert(in_order());

constexpr std::uint64_t max_header_bytes = 100'000'000;
constexpr std::size_t max_rank = 64;
constexpr std::string_view metadata_key = "__metadata__";

/// Receives the events of the JSON parser. The grammar of a header is so small that a state per nesting level says all:
///   { "__metadata__": { string: string }, name: { "dtype": string, "shape": [n...], "data_offsets": [n, n] } ... }
/// Anything else stops the parser with m_reason set, so that neither depth nor size of the JSON costs memory.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderHandler(SafetensorsHeader& header) : m_header(header) {}

  const std::string& reason() const { return m_reason; }

  bool start_object(std::size_t) override {
    switch (m_state) {
      case State::start:
        m_state = State::top;
        return true;
      case State::tensor_value:
        m_state = State::tensor;
        return true;
      case State::metadata_value:
        m_state = State::metadata;
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool key(std::string& name) override {
    switch (m_state) {
      case State::top:
        if (name.size() > max_name_bytes) return fail("a tensor name of more than 1024 bytes");
        if (!m_names.insert(name).second) return fail("the name \"" + printable(name) + "\" appears twice");
        if (name == metadata_key) {
          m_state = State::metadata_value;
        } else {
          m_header.tensors.push_back({name, {}, {}, 0, 0});
          m_has_dtype = m_has_shape = m_has_offsets = false;
          m_state = State::tensor_value;
        }
        return true;
      case State::metadata:
        if (m_header.metadata.contains(name)) return fail("metadata names \"" + printable(name) + "\" twice");
        m_metadata_key = name;
        m_state = State::metadata_string;
        return true;
      case State::tensor:
        if (name == "dtype") return field(m_has_dtype, State::dtype, name);
        if (name == "shape") return field(m_has_shape, State::shape_value, name);
        if (name == "data_offsets") return field(m_has_offsets, State::offsets_value, name);
        return fail(tensor() + " has an unknown field \"" + printable(name) + "\"");
      default:
        return unexpected("a name");
    }
  }

  bool end_object() override {
    switch (m_state) {
      case State::top:
        m_state = State::done;
        return true;
      case State::metadata:
        m_state = State::top;
        return true;
      case State::tensor:
        m_state = State::top;
        if (!m_has_dtype) return fail(tensor() + " has no dtype");
        if (!m_has_shape) return fail(tensor() + " has no shape");
        if (!m_has_offsets) return fail(tensor() + " has no data_offsets");
        return true;
      default:
        return unexpected("the end of an object");
    }
  }

  bool string(std::string& value) override {
    if (m_state == State::metadata_string) {
      m_header.metadata.emplace(std::move(m_metadata_key), value);
      m_state = State::metadata;
      return true;
    }
    if (m_state == State::dtype) {
      const auto dtype = dtype_from(value);
      if (!dtype) return fail(tensor() + " has the unknown dtype \"" + printable(value.substr(0, 32)) + "\"");
      m_header.tensors.back().dtype = *dtype;
      m_state = State::tensor;
      return true;
    }
    return unexpected("a string");
  }

  bool start_array(std::size_t) override {
    if (m_state == State::shape_value) {
      m_state = State::shape;
      return true;
    }
    if (m_state == State::offsets_value) {
      m_state = State::offsets;
      m_offsets = 0;
      return true;
    }
    return unexpected("an array");
  }

  bool number_unsigned(std::uint64_t value) override {
    auto* const tensor_info = m_header.tensors.empty() ? nullptr : &m_header.tensors.back();
    if (m_state == State::shape) {
      if (tensor_info->shape.size() == max_rank) return fail(tensor() + " has more than 64 dimensions");
      tensor_info->shape.push_back(value);
      return true;
    }
    if (m_state == State::offsets && m_offsets < 2) {
      (m_offsets++ == 0 ? tensor_info->begin : tensor_info->end) = value;
      return true;
    }
    return unexpected("a number");
  }

  bool end_array() override {
    if (m_state == State::offsets && m_offsets != 2) return fail(tensor() + " has not exactly two data_offsets");
    if (m_state != State::shape && m_state != State::offsets) return unexpected("the end of an array");
    m_state = State::tensor;
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(std::int64_t) override { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { return unexpected("a number that is no integer"); }
  bool binary(nlohmann::json::binary_t&) override { return unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    if (m_reason.empty()) {
      const std::string what = error.what();
      const auto text = what.find("] ");  // the library's own error number in front says nothing to a user
      m_reason = "the header is not JSON in UTF-8, byte " + std::to_string(position) + ": " +
                 printable(std::string_view(what).substr(text == std::string::npos ? 0 : text + 2));
    }
    return false;
  }

 private:
  enum class State {
    start,
    top,
    metadata_value,
    metadata,
    metadata_string,
    tensor_value,
    tensor,
    dtype,
    shape_value,
    shape,
    offsets_value,
    offsets,
    done
  };

  bool fail(std::string reason) {
    m_reason = std::move(reason);
    return false;
  }

  bool unexpected(const char* what) {
    std::string where = "the header";
    if (m_state == State::metadata_value || m_state == State::metadata || m_state == State::metadata_string)
      where = "__metadata__";
    else if (m_state > State::metadata_string && m_state < State::done)
      where = tensor();
    return fail(where + " holds " + what + " where the format has none");
  }

  bool field(bool& seen, State next, const std::string& name) {
    if (seen) return fail(tensor() + " has " + name + " twice");
    seen = true;
    m_state = next;
    return true;
  }

  std::string tensor() const { return "tensor \"" + printable(m_header.tensors.back().name) + "\""; }

  SafetensorsHeader& m_header;
  std::unordered_set<std::string> m_names;
  std::string m_metadata_key;
  std::string m_reason;
  State m_state = State::start;
  unsigned m_offsets = 0;
  bool m_has_dtype = false, m_has_shape = false, m_has_offsets = false;
};

std::string quoted(const TensorInfo& tensor) { return "tensor \"" + printable(tensor.name) + "\""; }

/// Checks sizes and offsets against each other and against the bytes that there are; sorts by offset.
void check_layout(std::vector<TensorInfo>& tensors, std::uint64_t data_bytes, const std::string& path) {
  for (const auto& tensor : tensors) {
    const std::string offsets = "[" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]";
    if (tensor.begin > tensor.end) throw FileError(path, quoted(tensor) + " ends before it begins: " + offsets);
    if (tensor.end > data_bytes)
      throw FileError(path, quoted(tensor) + " has data_offsets " + offsets + " but the file holds only " +
                                std::to_string(data_bytes) + " bytes of data (truncated?)");
    const auto bytes = bytes_of(tensor.dtype, tensor.shape);
    const std::string kind = std::string(to_string(tensor.dtype)) + " " + shape_text(tensor.shape);
    if (!bytes) throw FileError(path, quoted(tensor) + ", " + kind + ", has no size in whole bytes below 2^64");
    if (*bytes != tensor.bytes())
      throw FileError(path, quoted(tensor) + ", " + kind + ", needs " + std::to_string(*bytes) +
                                " bytes but its data_offsets " + offsets + " hold " + std::to_string(tensor.bytes()));
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t position = 0;
  for (const auto& tensor : tensors) {
    if (tensor.begin != position)
      throw FileError(path, quoted(tensor) + (tensor.begin < position ? " overlaps" : " leaves a hole after") +
                                " the tensor before it: it begins at " + std::to_string(tensor.begin) + ", expected " +
                                std::to_string(position));
    position = tensor.end;
  }
  if (position != data_bytes)
    throw FileError(path, "the file holds " + std::to_string(data_bytes) + " bytes of data but its tensors end at " +
                              std::to_string(position));
}

void write_all(int fd, const std::string& path, std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    // One call moves at most 2 GiB on Linux.
    const auto count =
        ::pwrite(fd, bytes.data(), std::min<std::size_t>(bytes.size(), 1u << 30), static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EINTR) continue;
      throw_errno(path, "cannot write");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

}  // namespace

std::string_view to_string(Dtype dtype) { return entry(dtype).name; }

unsigned bits_of(Dtype dtype) { return entry(dtype).bits; }

std::optional<Dtype> dtype_from(std::string_view name) {
  for (const auto& known : dtypes)
    if (known.name == name) return known.dtype;
  return std::nullopt;
}

std::uint64_t TensorInfo::elements() const {
  std::uint64_t count = 1;
  for (const auto extent : shape) count *= extent;
  return count;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<std::uint64_t> bytes_of(Dtype dtype, const std::vector<std::uint64_t>& shape) {
  std::uint64_t bits = bits_of(dtype);
  for (const auto extent : shape)
    if (__builtin_mul_overflow(bits, extent, &bits)) return std::nullopt;
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& path) {
  std::uint64_t length = 0;
  if (file.size() < sizeof(length))
    throw FileError(path, "not a safetensors file: it has " + std::to_string(file.size()) + " bytes, fewer than 8");
  std::memcpy(&length, file.data(), sizeof(length));
  if (length > max_header_bytes)
    throw FileError(path, "not a safetensors file: its header would have " + std::to_string(length) +
                              " bytes, more than the 100000000 allowed");
  if (length > file.size() - sizeof(length))
    throw FileError(path, "truncated: the header has " + std::to_string(length) + " bytes but the file ends after " +
                              std::to_string(file.size() - sizeof(length)));
  const auto* const text = reinterpret_cast<const char*>(file.data()) + sizeof(length);
  if (length == 0 || text[0] != '{')
    throw FileError(path, "not a safetensors file: the header does not begin with '{'");

  SafetensorsHeader header;
  HeaderHandler handler(header);
  // A NUL would end the text for the parser, whatever follows.
  if (std::memchr(text, 0, length) != nullptr) throw FileError(path, "the header holds a NUL byte");
  if (!nlohmann::json::sax_parse(text, text + length, &handler)) throw FileError(path, handler.reason());
  header.data_begin = sizeof(length) + length;
  check_layout(header.tensors, file.size() - header.data_begin, path);
  return header;
}

MappedFile::MappedFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw_errno(path, "cannot open");
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    const int error = errno;
    ::close(fd);
    errno = error;
    throw_errno(path, "cannot read");
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(fd);
    throw FileError(path, "not a regular file");
  }
  m_size = static_cast<std::size_t>(status.st_size);
  if (m_size > 0) {
    void* const data = ::mmap(nullptr, m_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const int error = errno;
      ::close(fd);
      errno = error;
      throw_errno(path, "cannot map into memory");
    }
    m_data = static_cast<const std::byte*>(data);
  }
  ::close(fd);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : m_data(std::exchange(other.m_data, nullptr)), m_size(std::exchange(other.m_size, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(m_data, other.m_data);
  std::swap(m_size, other.m_size);
  return *this;
}

MappedFile::~MappedFile() {
  if (m_data != nullptr) ::munmap(const_cast<std::byte*>(m_data), m_size);
}

void release_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  // Only whole pages: a neighbour's bytes on a shared page would merely be read again, but why.
  const auto begin = (reinterpret_cast<std::uintptr_t>(mapped.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(mapped.data()) + mapped.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

SafetensorsFile::SafetensorsFile(std::string path)
    : m_path(std::move(path)), m_file(m_path), m_header(parse_safetensors(m_file.bytes(), m_path)) {
  for (std::size_t i = 0; i < m_header.tensors.size(); ++i) m_index.emplace(m_header.tensors[i].name, i);
}

TensorInfo const* SafetensorsFile::find(std::string_view name) const {
  const auto found = m_index.find(name);
  return found == m_index.end() ? nullptr : &m_header.tensors[found->second];
}

std::span<const std::byte> SafetensorsFile::data(const TensorInfo& tensor) const {
  return m_file.bytes().subspan(m_header.data_begin + tensor.begin, tensor.bytes());
}

SafetensorsWriter::SafetensorsWriter(std::string path, std::vector<TensorInfo> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : m_path(std::move(path)), m_tensors(std::move(tensors)) {
  std::sort(m_tensors.begin(), m_tensors.end(), [](const auto& a, const auto& b) {
    const auto bits_a = bits_of(a.dtype), bits_b = bits_of(b.dtype);
    return bits_a != bits_b ? bits_a > bits_b : a.name < b.name;
  });
  std::string header = "{";
  if (!metadata.empty()) header += "\"__metadata__\":" + nlohmann::json(metadata).dump();
  for (std::size_t i = 0; i < m_tensors.size(); ++i) {
    auto& tensor = m_tensors[i];
    const auto bytes = bytes_of(tensor.dtype, tensor.shape);
    tensor.begin = m_data_bytes;
    if (!bytes || __builtin_add_overflow(m_data_bytes, *bytes, &m_data_bytes))
      throw FileError(m_path, quoted(tensor) + " is too large");
    tensor.end = m_data_bytes;
    if (!m_index.emplace(tensor.name, i).second || tensor.name == metadata_key)
      throw FileError(m_path, "two tensors would be called \"" + printable(tensor.name) + "\"");
    if (tensor.name.size() > max_name_bytes)
      throw FileError(m_path, quoted(tensor) + " has a name of more than 1024 bytes");
    if (header.size() > 1) header += ',';
    header += nlohmann::json(tensor.name).dump() + ":{\"dtype\":\"" + std::string(to_string(tensor.dtype)) +
              "\",\"shape\":" + nlohmann::json(tensor.shape).dump() + ",\"data_offsets\":[" +
              std::to_string(tensor.begin) + "," + std::to_string(tensor.end) + "]}";
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > max_header_bytes) throw FileError(m_path, "the header would have more than 100000000 bytes");
  m_data_begin = sizeof(std::uint64_t) + header.size();

  m_fd = create_file(m_path);
  try {
    // Some file systems cannot reserve; there a full disk is found when the bytes are written.
    const auto file_bytes = static_cast<off_t>(m_data_begin + m_data_bytes);
    if (::fallocate(m_fd, 0, 0, file_bytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR)
      throw_errno(m_path, "cannot reserve " + std::to_string(file_bytes) + " bytes");
    const std::uint64_t length = header.size();
    write_all(m_fd, m_path, std::as_bytes(std::span(&length, 1)), 0);
    write_all(m_fd, m_path, std::as_bytes(std::span(header)), sizeof(length));
  } catch (...) {
    ::close(m_fd);
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (m_fd >= 0) ::close(m_fd);
}

void SafetensorsWriter::write(std::size_t tensor, std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto& info = m_tensors.at(tensor);
  if (offset > info.bytes() || bytes.size() > info.bytes() - offset)
    throw FileError(m_path, quoted(info) + " has " + std::to_string(info.bytes()) + " bytes, and " +
                                std::to_string(bytes.size()) + " more were written at " + std::to_string(offset));
  write_all(m_fd, m_path, bytes, m_data_begin + info.begin + offset);
  m_written += bytes.size();
}

void SafetensorsWriter::finish() {
  if (m_written != m_data_bytes)
    throw FileError(
        m_path, "only " + std::to_string(m_written) + " of " + std::to_string(m_data_bytes) + " bytes were written");
  if (::fsync(m_fd) != 0) throw_errno(m_path, "cannot write to disk");
  const int fd = std::exchange(m_fd, -1);
  if (::close(fd) != 0) throw_errno(m_path, "cannot close");
}

}  // namespace microscale::tools
