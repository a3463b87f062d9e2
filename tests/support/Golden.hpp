#ifndef MICROSCALE_TEST_GOLDEN_HPP
#define MICROSCALE_TEST_GOLDEN_HPP

#include <Microscale_Element.hpp>
#include <Microscale_Scale.hpp>

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// Reading tests/golden, and the generators and hashes that its patterns.py shares with us.
namespace microscale::Test {

/// Calls f(words) for every line of a golden file, comments aside; words is an istringstream in hexadecimal mode.
template <class F>
void for_each_golden_line(const std::string& name, F f) {
  std::ifstream file(std::string(MICROSCALE_TEST_GOLDEN_DIR "/").append(name));
  if (!file) throw std::runtime_error("golden file " + name + " cannot be read");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    words >> std::hex;
    f(words);
  }
}

/// The remaining numbers of a line, up to its end or the next word that is no number.
template <class T>
std::vector<T> rest_of(std::istringstream& words) {
  std::vector<T> result;
  for (std::uint64_t value; words >> value;) result.push_back(static_cast<T>(value));
  words.clear();
  return result;
}

/// Calls f(Element{}) with the element type of that name.
template <class F>
void with_element(const std::string& name, F f) {
  if (name == E2M1::name) return f(E2M1{});
  if (name == E2M3::name) return f(E2M3{});
  if (name == E3M2::name) return f(E3M2{});
  if (name == E4M3::name) return f(E4M3{});
  if (name == E5M2::name) return f(E5M2{});
  throw std::runtime_error("no element is called " + name);
}

inline ScaleRule rule_of(const std::string& name) {
  return std::map<std::string, ScaleRule>{
      {"floor", ScaleRule::floor}, {"rceil", ScaleRule::rceil}, {"ceil", ScaleRule::ceil}, {"even", ScaleRule::even}}
      .at(name);
}

/// FNV-1a, 64 bits, over little-endian bytes.
class Fnv1a {
 public:
  template <class T>
  void add(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      m_state = (m_state ^ static_cast<std::uint8_t>(value >> (8 * i))) * 0x100000001b3u;
    }
  }
  std::uint64_t value() const { return m_state; }

 private:
  std::uint64_t m_state = 0xcbf29ce484222325u;
};

/// Vigna's splitmix64.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : m_state(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = m_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t m_state;
};

inline constexpr std::size_t golden_chunk = 65536;
inline constexpr std::size_t golden_chunks = 64;

/// 2^22 binary32 patterns: even chunks uniform, odd ones with the exponent field folded into 95..158 (see patterns.py).
inline std::vector<std::uint32_t> random_binary32(std::uint64_t seed) {
  SplitMix64 next(seed);
  std::vector<std::uint32_t> result(golden_chunk * golden_chunks);
  for (std::size_t i = 0; i < result.size(); ++i) {
    auto bits = static_cast<std::uint32_t>(next() >> 32);
    if (i / golden_chunk % 2 == 1) bits = (bits & 0x807fffffu) | ((95u + ((bits >> 23) & 63u)) << 23);
    result[i] = bits;
  }
  return result;
}

}  // namespace microscale::Test

#endif
