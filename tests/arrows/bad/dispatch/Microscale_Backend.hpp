#include <Microscale_Number.hpp>
