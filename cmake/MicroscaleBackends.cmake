# Which backends are built. Each has an option Microscale_ENABLE_<NAME> = AUTO | ON | OFF. To add a backend, give it a
# branch in microscale_check_backend below and a folder in backends/, as docs/adding_a_backend.md says.

set(MICROSCALE_BACKENDS AVX512 SM90 SM100 CDNA4 CUBLASLT HIPBLASLT) # in order of preference
set(MICROSCALE_ENABLED_BACKENDS "") # lower-case names of those that are built, in the same order

# Sets <missing> to why <backend> cannot be built here, or to nothing if it can.
function(microscale_check_backend backend missing)
  set(${missing} "not written yet" PARENT_SCOPE)
endfunction()

set(MICROSCALE_BACKEND_SUMMARY "")
set(MICROSCALE_BACKEND_MACROS "")
foreach(backend IN LISTS MICROSCALE_BACKENDS)
  set(option Microscale_ENABLE_${backend})
  set(${option} AUTO CACHE STRING "Build the ${backend} backend: AUTO, ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  string(TOLOWER ${backend} name)

  microscale_check_backend(${backend} missing)
  set(reason "") # why it is not built
  if(${option} STREQUAL "AUTO")
    set(reason "${missing}")
  elseif(NOT ${option})
    set(reason "${option}=${${option}}")
  elseif(missing)
    message(FATAL_ERROR "${option}=${${option}} cannot be met: the ${name} backend is ${missing}.")
  endif()
  if(NOT reason STREQUAL "")
    set(state "off (${reason})")
    set(MICROSCALE_BACKEND_OFF_${name} "${reason}")
    string(APPEND MICROSCALE_BACKEND_MACROS "/* #undef MICROSCALE_ENABLE_BACKEND_${backend} */\n")
  else()
    set(state "on")
    list(APPEND MICROSCALE_ENABLED_BACKENDS ${name})
    string(APPEND MICROSCALE_BACKEND_MACROS "#define MICROSCALE_ENABLE_BACKEND_${backend}\n")
  endif()
  list(APPEND MICROSCALE_BACKEND_SUMMARY "  backend ${name}: ${state}")
endforeach()

# microscale_add_backend(<name> SOURCES <file>... [OPTIONS <flag>...] [LIBRARIES <target>...] [PRIVATE_TO_TESTS])
#
# The library microscale_backend_<name> from sources of its own flags, without Kokkos, that define
# microscale::backend_<name>::backend(). It sees formats/ and the interface in dispatch/.
function(microscale_add_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PRIVATE_TO_TESTS" "" "SOURCES;OPTIONS;LIBRARIES")
  set(target microscale_backend_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  target_link_libraries(${target} PUBLIC microscale_formats PRIVATE ${arg_LIBRARIES})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/dispatch")
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-ffp-contract=off>"
                                           ${arg_OPTIONS})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  microscale_set_warnings(${target})
  if(NOT arg_PRIVATE_TO_TESTS)
    install(TARGETS ${target} EXPORT MicroscaleTargets)
  endif()
endfunction()

# microscale_write_backend_list(<file> <name>...)
#
# Generates the list of the named backends, in this order, for dispatch. Those for which MICROSCALE_BACKEND_OFF_<name>
# gives a reason are listed with it and not linked.
function(microscale_write_backend_list file)
  set(MICROSCALE_BACKEND_DECLARATIONS "")
  set(MICROSCALE_BACKEND_ENTRIES "")
  foreach(name IN LISTS ARGN)
    if(DEFINED MICROSCALE_BACKEND_OFF_${name})
      string(REPLACE "\\" "\\\\" reason "${MICROSCALE_BACKEND_OFF_${name}}")
      string(REPLACE "\"" "\\\"" reason "${reason}")
      string(APPEND MICROSCALE_BACKEND_ENTRIES "      {\"${name}\", nullptr, \"${reason}\"},\n")
    else()
      string(APPEND MICROSCALE_BACKEND_DECLARATIONS
             "namespace microscale::backend_${name} {\nconst Backend& backend();\n}\n")
      string(APPEND MICROSCALE_BACKEND_ENTRIES "      {\"${name}\", &microscale::backend_${name}::backend(), \"\"},\n")
    endif()
  endforeach()
  configure_file("${PROJECT_SOURCE_DIR}/dispatch/Microscale_BackendList.cpp.in" "${file}")
endfunction()

# Prints what was found and what will be built, with the reason for every backend that is off.
function(microscale_print_summary)
  message(STATUS "Microscale ${PROJECT_VERSION}")
  message(STATUS "  Kokkos ${Kokkos_VERSION}: ${Kokkos_DEVICES} (${Kokkos_DIR})")
  message(STATUS "  backend reference: on (always)")
  foreach(line IN LISTS MICROSCALE_BACKEND_SUMMARY)
    message(STATUS "${line}")
  endforeach()
  foreach(part IN ITEMS TESTS BENCHMARKS TOOLS EXAMPLES)
    string(TOLOWER ${part} label)
    message(STATUS "  ${label}: ${Microscale_ENABLE_${part}}")
  endforeach()
endfunction()
