#ifndef MICROSCALE_TARGET_HPP
#define MICROSCALE_TARGET_HPP

#include <Microscale_Interface.hpp>

// The backends of the project, halved: what a backend can do, what that costs and how it is tiled is decided in
// dispatch/ and compiled on every machine, so that any machine can explain any target. The kernels are in
// backends/<name>/, with compiler flags of their own, and need not be part of the build.
namespace microscale::Impl {

/// A backend that makes the decisions and leaves the work to kernels; without kernels it can only plan.
class Target : public Backend {
 public:
  Support available() const final { return m_kernels ? m_kernels->available() : Support{false, not_built}; }
  Status prepare(const Problem& problem, const PreparedForm& form, void* destination,
                 const Native& native) const final {
    return m_kernels ? m_kernels->prepare(problem, form, destination, native) : Status{false, not_built};
  }
  Status launch(const Problem& problem, const Config& config, void* workspace, const Native& native) const final {
    if (!m_kernels) return {false, not_built};
    if (problem.b.prepared_by == this || problem.b.prepared == nullptr)
      return m_kernels->launch(problem, config, workspace, native);
    // Prepared by another backend: to the kernels that is the original.
    Problem original = problem;
    original.b.prepared_by = nullptr;
    original.b.prepared = nullptr;
    original.b.prepared_form = {};
    return m_kernels->launch(original, config, workspace, native);
  }
  /// What the rules choose, and the same with one member that is not 0 halved or doubled, or switched, where it is
  /// accepted. A target that knows better overrides it.
  std::int64_t candidates(const Problem& problem, Config* out, std::int64_t capacity) const override;

 protected:
  explicit Target(const Kernels* kernels) : m_kernels(kernels) {}
  ~Target() = default;

 private:
  static constexpr const char* not_built = "its kernels are not part of this build";
  const Kernels* m_kernels;
};

// The targets: one object each for the life of the program, with the kernels of the first call.
const Backend& avx512_target(const Kernels* kernels);
const Backend& sm90_target(const Kernels* kernels);
const Backend& sm100_target(const Kernels* kernels);
const Backend& cdna4_target(const Kernels* kernels);

}  // namespace microscale::Impl

#endif
