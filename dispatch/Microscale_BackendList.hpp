#ifndef MICROSCALE_BACKENDLIST_HPP
#define MICROSCALE_BACKENDLIST_HPP

#include <Microscale_Interface.hpp>

#include <span>

namespace microscale::Impl {

/// A backend that the project knows.
struct ListedBackend {
  const char* name;
  const Backend* backend;  ///< null: there is nothing of it; otherwise it can plan, and run unless it is off
  const char* off;         ///< why it is not part of this build; empty if it is
};

/// All backends that the project knows, in order of preference and without the reference. The definition is generated
/// by CMake from Microscale_BackendList.cpp.in.
std::span<const ListedBackend> listed_backends();

}  // namespace microscale::Impl

#endif
