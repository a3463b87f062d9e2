#include <Microscale_Commands.hpp>
#include <Microscale_Dispatch.hpp>

#include <cstdio>
#include <string>

namespace microscale::tools {

void backends_command() {
  for (const BackendInfo& backend : backends()) {
    const std::string state = backend.available ? "available" : std::string(backend.reason);
    std::printf("%s: %s", std::string(backend.name).c_str(), state.c_str());
    if (!backend.description.empty()) std::printf(". %s", std::string(backend.description).c_str());
    std::printf("\n");
  }
}

}  // namespace microscale::tools
