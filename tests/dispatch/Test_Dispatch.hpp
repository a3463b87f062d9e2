#ifndef TEST_DISPATCH_HPP
#define TEST_DISPATCH_HPP

#include <Microscale_BlockFormat.hpp>
#include <Microscale_Dispatch.hpp>
#include <Microscale_Names.hpp>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace microscale::Test {

/// A backend that answers what it is told to and does nothing.
class FakeBackend : public Backend {
 public:
  explicit FakeBackend(const char* name, double cost = 1e-9) : m_name(name), m_cost(cost) {}

  const char* name() const override { return m_name; }
  const char* description() const override { return "says what it is told"; }
  ExecutionKind execution() const override { return kind; }
  Support available() const override { return is_available; }
  Support supports(const Problem& p) const override {
    ++asked;
    return rule ? rule(p) : Support{true};
  }
  double cost(const Problem& p) const override { return p.b.prepared_by == this ? m_cost / 4 : m_cost; }
  Config config(const Problem&) const override { return {.tile_m = 16, .stages = 3}; }
  Support accepts(const Problem&, const Config& c) const override {
    return c.tile_m == 7 ? Support{false, "no tile has 7 rows"} : Support{true};
  }
  std::int64_t candidates(const Problem& p, Config* out, std::int64_t capacity) const override {
    if (capacity > 0) out[0] = config(p);
    return 1;
  }
  std::int64_t workspace_bytes(const Problem&, const Config& c) const override { return 64 * c.tile_m; }
  PreparedForm prepared_form(const Problem&) const override { return form; }
  Status prepare(const Problem&, const PreparedForm&, void*, const Native&) const override { return outcome; }
  Status launch(const Problem&, const Config& c, void*, const Native&) const override {
    ++launched;
    last_tile_m = c.tile_m;
    return outcome;
  }

  ExecutionKind kind = ExecutionKind::host;
  Support is_available{true};
  std::function<Support(const Problem&)> rule;
  PreparedForm form{};
  Status outcome{};
  mutable std::atomic<int> asked = 0, launched = 0, last_tile_m = 0;

 private:
  const char* m_name;
  double m_cost;
};

/// A matmul of MXFP4 operands into floats, without data.
inline Problem matmul_problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = {.format = format_id<MXFP4>, .rows = m, .cols = k, .row_stride = (k + 1) / 2, .scale_pitch = (k + 31) / 32};
  p.b = {.format = format_id<MXFP4>, .rows = n, .cols = k, .row_stride = (k + 1) / 2, .scale_pitch = (k + 31) / 32};
  p.c = {.format = float32_id, .rows = m, .cols = n, .row_stride = n};
  return p;
}

/// Threads of the test's own, as a Kokkos instance would give its own; remembers which threads ran something.
class Threads {
 public:
  explicit Threads(int concurrency) : m_concurrency(concurrency) {}

  Native native() const {
    Native native;
    native.concurrency = m_concurrency;
    native.context = this;
    native.parallel_for = [](const void* context, std::int64_t n, void (*body)(void*, std::int64_t), void* argument) {
      static_cast<const Threads*>(context)->run(n, body, argument);
    };
    return native;
  }
  std::size_t loops() const { return m_loops; }
  bool ran_on_caller() const { return m_ids.count(std::this_thread::get_id()) > 0; }
  std::size_t threads_seen() const { return m_ids.size(); }

 private:
  void run(std::int64_t n, void (*body)(void*, std::int64_t), void* argument) const {
    ++m_loops;
    std::atomic<std::int64_t> next = 0;
    const auto work = [&] {
      {
        const std::lock_guard lock(m_mutex);
        m_ids.insert(std::this_thread::get_id());
      }
      for (std::int64_t i = next++; i < n; i = next++) body(argument, i);
    };
    std::vector<std::thread> others;
    for (int t = 1; t < m_concurrency; ++t) others.emplace_back(work);
    work();
    for (std::thread& t : others) t.join();
  }

  int m_concurrency;
  mutable std::mutex m_mutex;
  mutable std::set<std::thread::id> m_ids;
  mutable std::atomic<std::size_t> m_loops = 0;
};

/// Sets MICROSCALE_FORCE_BACKEND for the life of the object.
class ForceVariable {
 public:
  explicit ForceVariable(const char* value) {
    if (const char* before = std::getenv(name)) m_before = before;
    setenv(name, value, 1);
  }
  ~ForceVariable() {
    if (m_before.empty())
      unsetenv(name);
    else
      setenv(name, m_before.c_str(), 1);
  }
  ForceVariable(const ForceVariable&) = delete;
  ForceVariable& operator=(const ForceVariable&) = delete;

 private:
  static constexpr const char* name = "MICROSCALE_FORCE_BACKEND";
  std::string m_before;
};

/// The text of the exception of type E that `f` throws; anything else gives a text that says so.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("an exception of another type: ") + e.what();
  }
  return "no exception";
}

}  // namespace microscale::Test

#endif
