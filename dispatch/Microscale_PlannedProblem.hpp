#ifndef MICROSCALE_PLANNEDPROBLEM_HPP
#define MICROSCALE_PLANNEDPROBLEM_HPP

#include <Microscale_Interface.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace microscale::Impl {

/// The problem as backends see it while they plan, with nothing in it that differs between calls that may share a plan:
/// a pointer becomes its alignment (up to 256, null stays null), alpha and beta become 2 unless they are 0 or 1, and a
/// given tensor scale becomes 1.
Problem planned(const Problem& problem);

/// A short list of words in place: one is made at every call. Never grows beyond `capacity`.
class Words {
 public:
  static constexpr std::size_t capacity = 160;

  void push_back(std::uint64_t word) { m_words[m_size++] = word; }
  std::size_t size() const { return m_size; }
  std::uint64_t operator[](std::size_t i) const { return m_words[i]; }
  const std::uint64_t* begin() const { return m_words.data(); }
  const std::uint64_t* end() const { return m_words.data() + m_size; }

 private:
  std::array<std::uint64_t, capacity> m_words;  // the first m_size are set
  std::size_t m_size = 0;
};
bool operator==(const Words& a, const Words& b);
std::size_t hash(const Words& words);

/// Appends everything that is in a planned problem, or in a configuration. Equal words, equal plans.
void append_words(Words& words, const Problem& problem);
void append_words(Words& words, const Config& config);

/// Whether a plan made for the problem of these words holds for `problem` (planned): all is equal, but for pointers,
/// which may be aligned better.
bool covers(const Words& plan, const Problem& problem);

}  // namespace microscale::Impl

#endif
