#include <Microscale_Choice.hpp>
#include <Microscale_Number.hpp>
