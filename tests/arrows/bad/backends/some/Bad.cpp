#include <Microscale_Choice.hpp>
#include <Microscale_Interface.hpp>

#include <Kokkos_Core.hpp>
