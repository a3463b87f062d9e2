#include <Microscale_Bench.hpp>

#include <cctype>

namespace microscale::bench {

std::string_view measured_backend() {
  for (const BackendInfo& backend : backends())
    if (backend.available) return backend.name;
  return reference_name;
}

void add_reference(Trial& trial, std::function<void()> call) {
  if (measured_backend() != reference_name)
    trial.peers.push_back({"reference", [call = std::move(call)] { return call; }});
}

std::string upper(std::string_view name) {
  std::string result(name);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string backend_and_threads() {
  return "/backend:" + std::string(measured_backend()) + "/threads:" + std::to_string(Exec().concurrency());
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add_products(cases);
  add_grouped(cases);
  add_conversions(cases);
  add_interleaves(cases);
  return cases;
}

}  // namespace microscale::bench
