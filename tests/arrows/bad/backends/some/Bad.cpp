#include <Kokkos_Core.hpp>
#include <Microscale_Choice.hpp>
#include <Microscale_Interface.hpp>
