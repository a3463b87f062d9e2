#include <Microscale_Number.hpp>
#include <Microscale_Op.hpp>
