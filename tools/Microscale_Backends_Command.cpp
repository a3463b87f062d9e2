#include <Microscale_Commands.hpp>

namespace microscale::tools {

void backends_command() {}

}  // namespace microscale::tools
