#include <Microscale_Errors.hpp>
#include <Microscale_Json.hpp>
#include <Microscale_Output.hpp>
#include <Microscale_Safetensors.hpp>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace microscale::tools {
namespace {

constexpr std::size_t max_depth = 64;
constexpr std::size_t max_json_bytes = 100'000'000;

/// Builds the value, as the library's own builder does, but refuses what the builder would take: names that appear
/// twice (the last one would win) and a depth at which printing the value would overflow the stack.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  Json take() { return std::move(m_root); }
  const std::string& reason() const { return m_reason; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t&) override { return fail("binary data"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (m_open.back()->contains(name)) return fail("the name \"" + printable(name) + "\" appears twice");
    m_key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail("not JSON in UTF-8 at byte " + std::to_string(position));
  }

 private:
  bool fail(std::string reason) {
    if (m_reason.empty()) m_reason = std::move(reason);
    return false;
  }
  Json* place(Json value) {
    if (m_open.empty()) return &(m_root = std::move(value));
    Json& parent = *m_open.back();
    if (parent.is_object()) return &(parent[m_key] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (m_open.size() == max_depth) return fail("more than 64 levels deep");
    m_open.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    m_open.pop_back();
    return true;
  }

  Json m_root;
  std::vector<Json*> m_open;  // a parent does not grow while a child is open, so these stay valid
  std::string m_key;
  std::string m_reason;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& path) {
  if (text.find('\0') != std::string_view::npos) throw FileError(path, "not JSON: it holds a NUL byte");
  StrictBuilder builder;
  if (!Json::sax_parse(text, &builder)) throw FileError(path, builder.reason());
  return builder.take();
}

Json read_json(const std::filesystem::path& path) {
  const MappedFile file(path.string());
  const auto bytes = file.bytes();
  if (bytes.size() > max_json_bytes) throw FileError(path.string(), "more than 100000000 bytes of JSON");
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

void write_json(const std::filesystem::path& path, const Json& json) {
  // Paths in a report need not be UTF-8.
  write_text(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  const int fd = create_file(path);
  bool good = true;
  while (good && !text.empty()) {
    const auto count = ::write(fd, text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<std::size_t>(count));
    else
      good = errno == EINTR;
  }
  good = good && ::fsync(fd) == 0;
  const int error = errno;
  const bool closed = ::close(fd) == 0;
  if (!good) errno = error;
  if (!good || !closed) throw_errno(path.string(), "cannot write");
}

}  // namespace microscale::tools
