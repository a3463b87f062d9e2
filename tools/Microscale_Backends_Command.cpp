#include <Microscale_Commands.hpp>
#include <Microscale_Dispatch.hpp>

#include <cstdio>
#include <string>

namespace microscale::tools {

void backends_command() {
  for (const BackendInfo& backend : backends()) {
    const char* const state = backend.available  ? "available"
                              : backend.compiled ? "built, cannot run here"
                                                 : "not built";
    std::printf("%s: %s. %s", std::string(backend.name).c_str(), state, std::string(backend.description).c_str());
    if (!backend.reason.empty()) std::printf(" (%s)", std::string(backend.reason).c_str());
    std::printf("\n");
  }
}

}  // namespace microscale::tools
