#include <Microscale_JsonReader.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace microscale::Impl {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& text, std::uint32_t c) {
  const auto add = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80)
    add(c);
  else if (c < 0x800) {
    add(0xc0 | c >> 6);
    add(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    add(0xe0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3f));
    add(0x80 | (c & 0x3f));
  } else {
    add(0xf0 | c >> 18);
    add(0x80 | (c >> 12 & 0x3f));
    add(0x80 | (c >> 6 & 0x3f));
    add(0x80 | (c & 0x3f));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : m_text(text) {}

  JsonValue whole() {
    JsonValue result = value(0);
    skip_space();
    if (m_at < m_text.size()) fail("something follows the value: " + here());
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw JsonError(m_line, "not JSON: " + what); }

  /// What stands at the current place, for messages.
  std::string here() const {
    if (m_at >= m_text.size()) return "the end of the text";
    const char c = m_text[m_at];
    if (c > 0x20 && c < 0x7f) return std::string("'") + c + "'";
    char code[16];
    std::snprintf(code, sizeof code, "byte %02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    return code;
  }
  char peek() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }
  bool take(char c) {
    if (peek() != c || m_at >= m_text.size()) return false;
    ++m_at;
    return true;
  }
  void expect(char c, const char* where) {
    if (!take(c)) fail(std::string("'") + c + "' is missing " + where + ", before " + here());
  }
  void skip_space() {
    for (; m_at < m_text.size(); ++m_at) {
      const char c = m_text[m_at];
      if (c == '\n')
        ++m_line;
      else if (c != ' ' && c != '\t' && c != '\r')
        return;
    }
  }

  JsonValue value(int depth) {
    constexpr int deepest = 64;
    if (depth > deepest) fail("more than 64 levels deep");
    skip_space();
    JsonValue result;
    result.line = m_line;
    const char c = peek();
    if (c == '{')
      object(result, depth);
    else if (c == '[')
      array(result, depth);
    else if (c == '"') {
      result.kind = JsonValue::Kind::string;
      result.text = string();
    } else if (c == '-' || is_digit(c))
      number(result);
    else
      word(result);
    return result;
  }

  void object(JsonValue& result, int depth) {
    result.kind = JsonValue::Kind::object;
    expect('{', "");
    skip_space();
    if (take('}')) return;
    do {
      skip_space();
      if (peek() != '"') fail("a name in quotes is missing before " + here());
      std::string name = string();
      if (std::any_of(result.members.begin(), result.members.end(), [&](const auto& m) { return m.first == name; }))
        fail("the name \"" + name + "\" appears twice");
      skip_space();
      expect(':', "after a name");
      JsonValue member = value(depth + 1);
      result.members.emplace_back(std::move(name), std::move(member));
      skip_space();
    } while (take(','));
    expect('}', "at the end of an object");
  }

  void array(JsonValue& result, int depth) {
    result.kind = JsonValue::Kind::array;
    expect('[', "");
    skip_space();
    if (take(']')) return;
    do {
      result.items.push_back(value(depth + 1));
      skip_space();
    } while (take(','));
    expect(']', "at the end of an array");
  }

  void word(JsonValue& result) {
    for (const std::string_view name : {"true", "false", "null"})
      if (m_text.substr(m_at, name.size()) == name) {
        m_at += name.size();
        result.kind = name == "null" ? JsonValue::Kind::null : JsonValue::Kind::boolean;
        result.boolean = name == "true";
        return;
      }
    fail("a value is missing before " + here());
  }

  void digits() {
    if (!is_digit(peek())) fail("a digit is missing before " + here());
    while (is_digit(peek())) ++m_at;
  }
  void number(JsonValue& result) {
    result.kind = JsonValue::Kind::number;
    const std::size_t begin = m_at;
    take('-');
    if (!take('0')) digits();
    if (take('.')) digits();
    if (take('e') || take('E')) {
      if (!take('-')) take('+');
      digits();
    }
    result.text = m_text.substr(begin, m_at - begin);
  }

  std::string string() {
    expect('"', "");
    std::string result;
    while (!take('"')) {
      if (m_at >= m_text.size()) fail("a string does not end");
      const char c = m_text[m_at++];
      if (static_cast<unsigned char>(c) < 0x20) {
        --m_at;
        fail("a string holds a control character, " + here());
      }
      if (c != '\\')
        result += c;
      else
        escape(result);
    }
    return result;
  }
  void escape(std::string& result) {
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (take('u')) {
      std::uint32_t code = hexadecimal();
      if (code >= 0xd800 && code < 0xdc00) {  // the first half of a surrogate pair
        const bool follows = take('\\') && take('u');
        const std::uint32_t low = follows ? hexadecimal() : 0;
        if (low < 0xdc00 || low >= 0xe000) fail("half a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      } else if (code >= 0xdc00 && code < 0xe000)
        fail("half a surrogate pair");
      append_utf8(result, code);
      return;
    }
    const std::size_t letter = m_at < m_text.size() ? letters.find(m_text[m_at]) : letters.npos;
    if (letter == letters.npos) fail("an unknown escape before " + here());
    result += meanings[letter];
    ++m_at;
  }
  std::uint32_t hexadecimal() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++m_at) {
      const char c = peek();
      if (is_digit(c))
        code = code * 16 + static_cast<std::uint32_t>(c - '0');
      else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
        code = code * 16 + static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
      else
        fail("a hexadecimal digit is missing before " + here());
    }
    return code;
  }

  std::string_view m_text;
  std::size_t m_at = 0;
  int m_line = 1;
};

}  // namespace

std::string describe(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      return "null";
    case JsonValue::Kind::boolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::number:
      return value.text;
    case JsonValue::Kind::string:
      return "\"" + value.text + "\"";
    case JsonValue::Kind::array:
      return "an array";
    case JsonValue::Kind::object:
      return "an object";
  }
  return {};
}

JsonValue parse_json(std::string_view text) { return Parser(text).whole(); }

}  // namespace microscale::Impl
