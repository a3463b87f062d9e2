#ifndef MICROSCALE_PLANNEDPROBLEM_HPP
#define MICROSCALE_PLANNEDPROBLEM_HPP

#include <Microscale_Interface.hpp>

#include <cstdint>
#include <vector>

namespace microscale::Impl {

/// The problem as backends see it while they plan, with nothing in it that differs between calls that may share a plan:
/// a pointer becomes its alignment (up to 256, null stays null), alpha and beta become 2 unless they are 0 or 1, and a
/// given tensor scale becomes 1.
Problem planned(const Problem& problem);

/// Everything that is in a planned problem, one word a member. Equal words, equal plans.
using ProblemWords = std::vector<std::uint64_t>;
void append_words(ProblemWords& words, const Problem& problem);
void append_words(ProblemWords& words, const Config& config);

/// Whether a plan made for the problem of these words holds for `problem` (planned): all is equal, but for pointers,
/// which may be aligned better.
bool covers(const ProblemWords& plan, const Problem& problem);

}  // namespace microscale::Impl

#endif
