# cmake -DROOT=<source folder> -P check_arrows.cmake
#
# Fails, naming each offence, unless includes go core -> dispatch -> backends -> formats, and only core includes Kokkos.
# Of dispatch, backends see the interface that they implement, which therefore includes formats alone.
cmake_minimum_required(VERSION 3.22)

set(may_include_core core dispatch formats)
set(may_include_dispatch dispatch backends formats)
set(may_include_backends backends formats)
set(may_include_formats formats)
set(interface Microscale_Interface.hpp)

# Which folder each header belongs to.
foreach(folder IN ITEMS core dispatch backends formats)
  file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/${folder}/*.[ch]pp" "${ROOT}/${folder}/*.cu" "${ROOT}/${folder}/*.cuh"
       "${ROOT}/${folder}/*.hip" "${ROOT}/${folder}/*.cpp.in")
  list(APPEND all_files ${files})
  foreach(file IN LISTS files)
    cmake_path(GET file FILENAME name)
    set(folder_of_${name} ${folder})
  endforeach()
endforeach()

set(offences "")
foreach(file IN LISTS all_files)
  string(REGEX MATCH "^[^/]+" folder "${file}")
  file(STRINGS "${ROOT}/${file}" includes REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS includes)
    string(REGEX REPLACE ".*[<\"]([^>\"]+)[>\"].*" "\\1" path "${line}")
    cmake_path(GET path FILENAME name)
    set(owner "${folder_of_${name}}")
    set(allowed ${may_include_${folder}})
    if(file STREQUAL "dispatch/${interface}")
      set(allowed formats)
    elseif(folder STREQUAL "backends" AND name STREQUAL interface)
      list(APPEND allowed dispatch)
    endif()
    if(name MATCHES "^Kokkos_" AND NOT folder STREQUAL "core")
      list(APPEND offences "${file} includes <${name}>")
    elseif(owner AND NOT owner IN_LIST allowed)
      list(APPEND offences "${file} includes <${name}> of ${owner}")
    endif()
  endforeach()
endforeach()

if(NOT all_files)
  message(FATAL_ERROR "No sources under ${ROOT}")
elseif(offences)
  list(SORT offences)
  list(JOIN offences "\n  " text)
  message(FATAL_ERROR "Includes that go the wrong way:\n  ${text}")
endif()
