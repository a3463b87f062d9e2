#ifndef MICROSCALE_SLOTTABLE_HPP
#define MICROSCALE_SLOTTABLE_HPP

#include <Microscale_GroupSlots.hpp>
#include <Microscale_Interface.hpp>

namespace microscale::Impl {

/// How kernels read the groups of a problem.
using SlotTable = BasicSlotTable<GroupData>;

}  // namespace microscale::Impl

#endif
