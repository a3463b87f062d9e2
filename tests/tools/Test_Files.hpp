#ifndef MICROSCALE_TEST_FILES_HPP
#define MICROSCALE_TEST_FILES_HPP

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

// Files for tests of the tool, made byte by byte and not with the tool's own writer.
namespace microscale::test {

/// A folder that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "microscale-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
    m_path = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(m_path, error);
  }
  std::filesystem::path operator/(const std::string& name) const { return m_path / name; }
  const std::filesystem::path& path() const { return m_path; }

  /// Everything in the folder, at its top.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(m_path)) result.push_back(entry.path().filename());
    return result;
  }

 private:
  std::filesystem::path m_path;
};

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The little-endian bytes of values.
template <class T>
std::string bytes_of_values(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// A safetensors file with this header and this data.
inline std::string safetensors(const std::string& header, const std::string& data = "") {
  return bytes_of_values(std::vector<std::uint64_t>{header.size()}) + header + data;
}

/// One tensor of a file to be made.
struct TestTensor {
  std::string name;
  std::string dtype;
  std::string shape;  ///< as JSON
  std::string data;
};

/// A safetensors file of these tensors in this order; `metadata` is JSON, or empty for none.
inline std::string safetensors(const std::vector<TestTensor>& tensors, const std::string& metadata = "") {
  std::string header = "{", data;
  if (!metadata.empty()) header += "\"__metadata__\":" + metadata;
  for (const auto& tensor : tensors) {
    if (header.size() > 1) header += ",";
    header += "\"" + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":" + tensor.shape +
              ",\"data_offsets\":[" + std::to_string(data.size()) + ",";
    data += tensor.data;
    header += std::to_string(data.size()) + "]}";
  }
  return safetensors(header + "}", data);
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace microscale::test

#endif
