#ifndef MICROSCALE_JSONWRITER_HPP
#define MICROSCALE_JSONWRITER_HPP

#include <Microscale_ConfigFields.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

namespace microscale::Impl {

/// Writes one JSON value after the other; commas come by themselves.
class JsonWriter {
 public:
  JsonWriter& open(char bracket) {
    separate();
    m_text += bracket;
    return *this;
  }
  JsonWriter& close(char bracket) {
    m_text += bracket;
    return *this;
  }
  JsonWriter& key(std::string_view name) {
    string(name);
    m_text += ':';
    return *this;
  }
  JsonWriter& string(std::string_view value) {
    separate();
    m_text += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\')
        (m_text += '\\') += c;
      else if (static_cast<unsigned char>(c) < 0x20) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
        m_text += escape;
      } else
        m_text += c;
    }
    m_text += '"';
    return *this;
  }
  /// Text that is JSON already.
  JsonWriter& raw(std::string_view value) {
    separate();
    m_text += value;
    return *this;
  }
  JsonWriter& number(std::int64_t value) { return raw(std::to_string(value)); }
  JsonWriter& number(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return raw(std::isfinite(value) ? text : "null");
  }
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }

  const std::string& text() const { return m_text; }

 private:
  void separate() {
    const char last = m_text.empty() ? '{' : m_text.back();
    if (last != '{' && last != '[' && last != ':') m_text += ',';
  }
  std::string m_text;
};

/// All members of a configuration as an object; without those that are 0 or false if `sparse`.
inline void write(JsonWriter& json, const Config& config, bool sparse = false) {
  json.open('{');
  for_each_field(config, [&](const char* name, const auto& value) {
    if (sparse && !value) return;
    json.key(name);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, bool>)
      json.boolean(value);
    else
      json.number(std::int64_t{value});
  });
  json.close('}');
}

}  // namespace microscale::Impl

#endif
