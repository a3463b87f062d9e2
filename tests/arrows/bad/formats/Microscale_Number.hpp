#include <Microscale_Choice.hpp>
