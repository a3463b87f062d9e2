#include <Microscale_ConfigFields.hpp>
#include <Microscale_Target.hpp>

#include <type_traits>

namespace microscale::Impl {

std::int64_t Target::candidates(const Problem& problem, Config* out, std::int64_t capacity) const {
  const Config own = config(problem);
  std::int64_t count = 0;
  const auto add = [&](const Config& candidate) {
    if (count < capacity) out[count] = candidate;
    ++count;
  };
  add(own);
  // Changes one member after the other of a copy that is then forgotten.
  Config varied = own;
  for_each_field(varied, [&](const char*, auto& member) {
    const auto kept = member;
    const auto try_value = [&](auto value) {
      member = value;
      if (accepts(problem, varied).supported) add(varied);
      member = kept;
    };
    using T = std::remove_reference_t<decltype(member)>;
    if constexpr (std::is_same_v<T, bool>)
      try_value(!kept);
    else {
      constexpr T largest = 1 << 20;  // of what is doubled
      if (kept > 1) try_value(kept / 2);
      if (kept > 0 && kept <= largest) try_value(kept * 2);
    }
  });
  return count;
}

}  // namespace microscale::Impl
